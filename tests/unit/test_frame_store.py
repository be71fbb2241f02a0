"""Frames on disk: what comes back is what was rendered, within a budget, whatever happens to the files."""

import os
from collections import OrderedDict

import numpy as np
import pytest

import diorama
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.frame_store import rendered
from diorama.io.disk_cache import VARIABLE, DiskCache
from diorama.report.summary import read_results
from diorama.worlds.concepts import layers
from diorama.worlds.mondrian import Mondrian


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    """A cache folder of the test's own."""
    monkeypatch.setenv("DIORAMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def counted(monkeypatch):
    """Mondrian as a slow world; the scenes that it really renders."""
    really, asked = Mondrian.render, []

    def render(self, scenes):
        asked.extend(scenes)
        return really(self, scenes)

    monkeypatch.setattr(Mondrian, "slow", True)
    monkeypatch.setattr(Mondrian, "render", render)
    return asked


def world(size=20):
    return build("world", f"mondrian(size={size})")


def scenes(count):
    return [world().object.scene_at(0, i)[1] for i in range(count)]


def files(cache):
    return sorted((cache / "frames").glob("*.npz"))


def test_a_frame_comes_back_as_it_was(counted, cache):
    asked = scenes(3)
    first, again = (rendered(world(), asked) for _ in range(2))
    assert len(counted) == 3 and len(files(cache)) == 3
    for old, new, scene in zip(first, again, asked, strict=True):
        assert new.scene == scene and new.encoding == old.encoding and list(new.truth) == list(old.truth)
        assert new.image.tobytes() == old.image.tobytes() and not new.image.flags.writeable
        for name, value in old.truth.items():
            assert type(new.truth[name]) is type(value)
            assert np.array_equal(new.truth[name], value)
            if isinstance(value, np.ndarray):
                assert new.truth[name].dtype == value.dtype and new.truth[name].flags.c_contiguous


def test_only_what_is_missing_is_rendered_and_the_order_stays(counted):
    asked = scenes(4)
    rendered(world(), asked[1:3])
    found = rendered(world(), [*asked, asked[0]])
    assert [frame.scene for frame in found] == [*asked, asked[0]]
    assert len(counted) == 4


def test_another_world_has_other_frames(counted):
    for size in (20, 24):
        rendered(world(size), scenes(1))
    assert len(counted) == 2


def test_quick_worlds_keep_nothing(cache):
    rendered(world(), scenes(2))
    assert not files(cache)


def cut(path):
    path.write_bytes(path.read_bytes()[:-40])


def emptied(path):
    path.write_bytes(b"")


def flipped(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 255
    path.write_bytes(bytes(data))


def of_something_else(path):
    np.savez(path, other=np.zeros(3))


def replaced_by_a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("harm", [cut, emptied, flipped, of_something_else, replaced_by_a_folder])
def test_a_damaged_file_is_rendered_again(counted, cache, harm):
    (good,) = rendered(world(), scenes(1))
    (path,) = files(cache)
    harm(path)
    (again,) = rendered(world(), scenes(1))
    assert len(counted) == 2
    assert np.array_equal(again.image, good.image)


def test_the_longest_unused_go_first(cache, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0.1")  # about 105 kB
    noise = np.random.default_rng(0).random(2500)  # 20 kB, hard to compress
    used = DiskCache()
    for i in range(5):
        used.keep(i, {"a": noise + i})
    for path in files(cache):
        os.utime(path, (1, 1))
    assert used.recall(3) is not None
    DiskCache().keep(5, {"a": noise + 5})
    assert sum(path.stat().st_size for path in files(cache)) <= 0.1 * 2**20
    assert used.recall(3) is not None and used.recall(5) is not None


def test_nothing_is_kept_where_there_is_no_room(counted, cache, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    for _ in range(2):
        rendered(world(), scenes(1))
    assert len(counted) == 2 and not files(cache)
    monkeypatch.delenv(VARIABLE)
    cache.parent.joinpath("file").write_text("not a folder")
    monkeypatch.setenv("DIORAMA_CACHE", str(cache.parent / "file"))
    assert len(rendered(world(), scenes(1))) == 1


@pytest.mark.parametrize("said", ["much", "-1", "nan", "inf"])
def test_a_wrong_budget_is_named(counted, monkeypatch, said):
    monkeypatch.setenv(VARIABLE, said)
    with pytest.raises(InputError, match=VARIABLE):
        rendered(world(), scenes(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tabletop(size=16, samples=2)", "test_scenes(scenes=2, size=16, samples=2)"])
def test_rows_are_the_same_with_and_without(name, tmp_path, monkeypatch, cache):
    found = []
    for out, megabytes in (("without", "0"), ("first", "64"), ("again", "64")):
        monkeypatch.setenv(VARIABLE, megabytes)
        monkeypatch.setattr(layers, "HELD", OrderedDict())  # what this process remembers
        diorama.run([name], ["constant", "retinex_gray"], ["lmse"], [], 2, 0, False, str(tmp_path / out), 1)
        cells = read_results(tmp_path / out).cells
        found.append([(row.case, row.metric, row.at, row.value, row.status) for cell in cells for row in cell.rows])
        assert bool(files(cache)) == (megabytes == "64")
    assert found[0] == found[1] == found[2] and found[0]
