"""Rows survive torn writes and refuse NaN; 16-bit images survive reading, and damaged files are named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diorama.core.errors import InputError
from diorama.core.images import quantise, read_png, write_png
from diorama.core.rows import Row, append_rows, read_rows


@pytest.mark.parametrize(
    ("value", "status"), [(float("nan"), "ok"), (None, "ok"), ([], "ok"), ([1.0, float("inf")], "ok"), (1.0, "error")]
)
def test_a_value_is_finite_if_and_only_if_ok(value, status):
    with pytest.raises(ValueError, match="does not fit"):
        Row("c", "a", "m", value, status)


@given(st.integers(0, 400))
def test_whatever_a_crash_leaves_is_read_and_continued(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("cell")
    path = folder / "rows" / "0-of-1.jsonl"
    append_rows(path, [Row("c", f"case{i}", "m", float(i)) for i in range(4)])
    whole = path.read_bytes()
    path.write_bytes(whole[: min(cut, len(whole))])
    survivors = read_rows(folder, "c")
    complete = path.read_bytes().count(b"\n")
    assert [row.value for row in survivors.values()] == [float(i) for i in range(complete)]
    append_rows(path, [Row("c", f"case{i}", "m", float(i)) for i in range(complete, 4)])
    assert [row.value for row in read_rows(folder, "c").values()] == [0.0, 1.0, 2.0, 3.0]


def test_a_later_row_takes_the_place_of_an_error_and_of_nothing_else(tmp_path):
    append_rows(tmp_path / "rows" / "a.jsonl", [Row("c", "x", "m", None, "error", "why"), Row("c", "y", "m", 1.0)])
    append_rows(tmp_path / "rows" / "b.jsonl", [Row("c", "x", "m", 2.0), Row("c", "y", "m", 3.0)])
    assert {k: r.value for k, r in read_rows(tmp_path, "c").items()} == {("x", "m"): 2.0, ("y", "m"): 1.0}


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
