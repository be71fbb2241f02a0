"""Rows survive torn writes and refuse NaN; 16-bit images survive reading, and damaged files are named."""

import os
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from diorama.core.errors import InputError
from diorama.core.rows import Row
from diorama.io.images import quantise, read_png, write_png
from diorama.io.row_files import read_rows, set_damaged_aside, write_part
from diorama.io.store import checksum, create_whole, remove_leftovers


@pytest.mark.parametrize(
    ("value", "status"), [(float("nan"), "ok"), (None, "ok"), ([], "ok"), ([1.0, float("inf")], "ok"), (1.0, "error")]
)
def test_a_value_is_finite_if_and_only_if_ok(value, status):
    with pytest.raises(ValueError, match="does not fit"):
        Row("c", "a", "m", value, status)


FOUR = {i: [Row("c", f"case{i}", "m", float(i))] for i in range(4)}


def said_nothing(line: str) -> None:
    pytest.fail(line)


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_part_that_was_cut_or_changed_is_set_aside_and_written_again(tmp_path_factory, place, byte):
    folder = tmp_path_factory.mktemp("cell")
    write_part(folder, "c", FOUR, said_nothing)
    (path,) = (folder / "rows").iterdir()
    whole = path.read_bytes()
    for damaged in (whole[: place % len(whole)], whole[: place % len(whole)] + bytes([byte])):
        assume(damaged != whole)
        path.write_bytes(damaged)
        assert read_rows(folder, "c") == {}
        said: list[str] = []
        set_damaged_aside(folder, "c", said.append)
        assert len(said) == 1 and "checksum" in said[0] and path.with_name(f"{path.name}.damaged").exists()
        write_part(folder, "c", FOUR, said_nothing)
        assert [row.value for row in read_rows(folder, "c").values()] == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe", b"[]", b"{}", b"null", b"[" * 100_000,
        b'{"case": 1, "metric": "m", "value": 1.0, "status": "ok", "reason": "", "at": "", "seconds": 0.0}',
        b'{"case": "a", "metric": "m", "value": "1", "status": "ok", "reason": "", "at": "", "seconds": 0.0}',
        b'{"case": "a", "metric": "m", "value": true, "status": "ok", "reason": "", "at": "", "seconds": 0.0}',
        b'{"case": "a", "metric": "m", "value": NaN, "status": "ok", "reason": "", "at": "", "seconds": 0.0}',
        b'{"case": "a", "metric": "m", "value": 1' + b"0" * 999 + b', "status": "ok", "reason": "", "at": "", "seconds": 0}',
        b'{"case": "a", "metric": "m", "value": 1.0, "status": ["ok"], "reason": "", "at": "", "seconds": 0.0}',
        b'{"case": "a", "metric": "m", "value": 1.0, "status": "ok", "reason": "", "at": "", "seconds": NaN}',
        b'{"case": "a", "metric": "m", "value": 1.0, "status": "ok", "reason": "", "at": ""}',
    ],
)  # fmt: skip
def test_lines_that_are_no_rows_make_a_part_damaged_even_with_the_right_checksum(tmp_path, line):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / f"000000-000000-0-{checksum(line)}.jsonl").write_bytes(line)
    said: list[str] = []
    set_damaged_aside(tmp_path, "c", said.append)
    assert len(said) == 1 and len(said[0]) < 500 and read_rows(tmp_path, "c") == {}


def test_a_later_part_takes_the_place_of_errors_and_of_nothing_else(tmp_path):
    bad, again = Row("c", "x", "m", None, "error", "why"), Row("c", "x", "m", None, "error", "why else")
    write_part(tmp_path, "c", {0: [bad], 1: [Row("c", "y", "m", 1.0)]}, said_nothing)
    write_part(tmp_path, "c", {0: [again]}, said_nothing)
    assert read_rows(tmp_path, "c")["x", "m"].reason == "why else"
    said: list[str] = []
    write_part(tmp_path, "c", {0: [Row("c", "x", "m", 2.0)], 1: [Row("c", "y", "m", 3.0)]}, said.append)
    assert {k: r.value for k, r in read_rows(tmp_path, "c").items()} == {("x", "m"): 2.0, ("y", "m"): 1.0}
    assert len(said) == 1 and "y, m has another value when computed again" in said[0]


def test_a_second_part_that_differs_only_in_seconds_is_not_written(tmp_path):
    write_part(tmp_path, "c", FOUR, said_nothing)
    slower = {i: [replace(row, seconds=9.0) for row in rows] for i, rows in FOUR.items()}
    write_part(tmp_path, "c", slower, said_nothing)
    assert len(list((tmp_path / "rows").iterdir())) == 1


def test_leftovers_of_dead_writers_are_removed_and_those_of_living_ones_are_not(tmp_path):
    host = os.uname().nodename
    dead = subprocess.Popen(["true"])
    dead.wait()
    gone, living, elsewhere, old, other = (
        tmp_path / "deep" / name
        for name in (
            f".{dead.pid}-0@{host}.tmp", f".{os.getpid()}-0@{host}.tmp", ".1-0@elsewhere.tmp", ".2-0@elsewhere.tmp", ".x.tmp"
        )
    )  # fmt: skip
    for path in (gone, living, elsewhere, old, other):
        path.parent.mkdir(exist_ok=True)
        path.write_text("half")
    os.utime(old, (0, 0))
    assert remove_leftovers(tmp_path) == 2
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == sorted(
        [living.name, elsewhere.name, other.name]
    )


def test_of_two_that_create_a_file_the_first_wins(tmp_path):
    assert create_whole(tmp_path / "a" / "x", b"first") and not create_whole(tmp_path / "a" / "x", b"second")
    assert [path.read_bytes() for path in (tmp_path / "a").iterdir()] == [b"first"]


@pytest.fixture
def sixteen(tmp_path):
    image = np.random.default_rng(0).integers(0, 65536, (9, 7, 3)).astype(np.uint16)
    write_png(tmp_path / "x.png", image)
    return tmp_path / "x.png", image


def test_sixteen_bit_colour_survives_and_pillow_would_cut_it(sixteen):
    from PIL import Image

    path, image = sixteen
    assert np.array_equal(read_png(path, bits=16), image)
    assert np.array_equal(np.asarray(Image.open(path)), (image >> 8).astype(np.uint8))


def test_the_real_files_have_more_than_eight_bits(mit_root):
    image = read_png(mit_root / "box" / "diffuse.png", bits=16)
    assert (
        image.dtype == np.uint16 and len(np.unique(image % 257)) > 100
    )  # 8-bit data stretched to 16 are multiples of 257


def test_alpha_is_dropped_and_gray_stays_gray(tmp_path):
    import cv2

    rgba = np.random.default_rng(0).integers(0, 256, (5, 4, 4)).astype(np.uint8)
    cv2.imwrite(str(tmp_path / "a.png"), rgba)
    assert np.array_equal(read_png(tmp_path / "a.png"), rgba[:, :, 2::-1])
    write_png(tmp_path / "g.png", rgba[:, :, 0])
    assert np.array_equal(read_png(tmp_path / "g.png"), rgba[:, :, 0])


def test_a_truncated_file_is_named_at_every_length(sixteen):
    path, _ = sixteen
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"x\.png is (truncated|not a PNG)"):
            read_png(path)


def test_a_flipped_bit_is_found(sixteen):
    path, _ = sixteen
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="damaged"):
        read_png(path)


def test_eight_bits_are_refused_where_sixteen_are_needed(tmp_path):
    write_png(tmp_path / "y.png", quantise(np.ones((3, 3, 3)), 8))
    with pytest.raises(InputError, match=r"y\.png has 8 bits per channel, expected 16"):
        read_png(tmp_path / "y.png", bits=16)
