"""Files that nobody should have written: each is one line that names it, and costs neither memory nor a hang."""

import gc
import json
import os
import struct
import subprocess
import sys
import tracemalloc
import zlib

import cv2
import numpy as np
import pytest

from diorama.core.catalogue import build
from diorama.core.errors import Excluded, InputError
from diorama.core.scene import Scene, digest
from diorama.core.spec import parse
from diorama.io.files import limit, read_bytes, read_json
from diorama.io.images import decode, read_image, read_png, write_png
from diorama.io.saved import read_archive, read_array


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(header, pixels=b""):
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(pixels)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def photo(seed=0, size=(60, 80)):
    noise = np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2)


def jpeg(progressive=0, seed=0):
    return cv2.imencode(".jpg", photo(seed), [cv2.IMWRITE_JPEG_PROGRESSIVE, progressive])[1].tobytes()


def test_a_header_that_promises_gigabytes_is_refused_before_decoding(tmp_path):
    (tmp_path / "big.png").write_bytes(png(struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)))
    tracemalloc.start()
    with pytest.raises(InputError, match=r"60000×60000 pixels takes .* DIORAMA_MAX_MB") as raised:
        read_png(tmp_path / "big.png")
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()
    assert len(str(raised.value)) < 500


def test_a_jpeg_header_that_promises_gigabytes_is_refused():
    data = bytearray(jpeg())
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", 60_000, 60_000)
    with pytest.raises(InputError, match="60000×60000"):
        decode(bytes(data), "x.jpg")


def test_the_limit_can_be_set(tmp_path, monkeypatch):
    write_png(tmp_path / "x.png", photo(size=(400, 400)))
    monkeypatch.setenv("DIORAMA_MAX_MB", "1.5")
    with pytest.raises(InputError, match=r"more than the 2 MB|DIORAMA_MAX_MB"):
        read_png(tmp_path / "x.png")
    monkeypatch.setenv("DIORAMA_MAX_MB", "2")
    assert read_png(tmp_path / "x.png").shape == (400, 400, 3)
    monkeypatch.setenv("DIORAMA_MAX_MB", "much")
    with pytest.raises(InputError, match="DIORAMA_MAX_MB='much'"):
        limit()


@pytest.mark.parametrize("header", [b"\0\0", b"", struct.pack(">IIBBBBB", 0, 5, 8, 2, 0, 0, 0)])
def test_a_png_header_of_the_wrong_size_is_damage(header):
    with pytest.raises(InputError, match=r"x\.png"):
        decode(png(header), "x.png")


@pytest.mark.parametrize("progressive", [0, 1])
@pytest.mark.parametrize("end", [b"", b"\xff\xd9"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_truncated_jpeg_is_no_picture(progressive, end, share):
    data = jpeg(progressive)
    assert decode(data, "x").shape == (60, 80, 3)
    with pytest.raises(InputError, match="x"):
        decode(data[: int(share * len(data))] + end, "x")


def test_pixels_are_those_of_another_decoder():
    from io import BytesIO

    from PIL import Image

    for data in (jpeg(0), jpeg(1)):
        theirs = np.asarray(Image.open(BytesIO(data)).convert("RGB")).astype(int)
        assert np.abs(decode(data, "x") - theirs).max() <= 3  # libjpeg and libjpeg-turbo differ by an IDCT's rounding


def test_decoders_stay_silent(capfd):
    with pytest.raises(InputError):
        decode(jpeg()[:900] + b"\xff\xd9", "x")
    decode(jpeg()[:-2] + b"stray bytes" + b"\xff\xd9", "x")  # a camera's padding is no damage
    assert capfd.readouterr().err == ""


def test_other_formats_are_not_handed_to_the_decoder():
    bmp = cv2.imencode(".bmp", photo())[1].tobytes()
    with pytest.raises(InputError, match="neither a PNG nor a JPEG"):
        decode(bmp, "x.png")


def test_pipes_devices_and_folders_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    (tmp_path / "folder.png").mkdir()
    for name in ("pipe.png", "zero.png", "folder.png"):
        for read in (read_image, read_array, read_bytes, read_json):
            with pytest.raises(InputError, match="not a regular file"):
                read(tmp_path / name)
    with pytest.raises(InputError, match="is missing"):
        read_image(tmp_path / "none.png")


def test_photo_folders_with_a_pipe_in_them(tmp_path, diorama):
    (tmp_path / "a" / "x").mkdir(parents=True)
    write_png(tmp_path / "a" / "x" / "good.png", photo())
    os.mkfifo(tmp_path / "a" / "x" / "pipe.png")
    (tmp_path / "a" / "x" / "zero.jpg").symlink_to("/dev/zero")
    (tmp_path / "m" / "x" / "good").mkdir(parents=True)
    write_png(tmp_path / "m" / "x" / "good" / "ear.png", np.full((60, 80), 255, np.uint8))
    done = diorama("render", "folder(images=a, masks=m)", "-o", "out")
    assert (done.returncode, done.stderr) == (0, "") or "not a regular file" in done.stderr, done.stderr


def test_a_name_that_is_not_text_is_read_but_not_staged(tmp_path, diorama):
    base = os.fsencode(tmp_path)
    os.makedirs(base + b"/photos/cat")
    with open(base + b"/photos/cat/caf\xe9.png", "wb") as file:
        file.write(cv2.imencode(".png", photo())[1].tobytes())
    found = next((tmp_path / "photos" / "cat").iterdir())
    assert read_png(found).shape == (60, 80, 3)  # cv2.imread crashed here
    done = diorama("render", "photos(source=photos)", "-o", "out")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "not UTF-8" in done.stderr, done.stderr


def test_render_of_good_photos_and_of_a_damaged_one(tmp_path, diorama):
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "0.jpg").write_bytes(jpeg(seed=len(name)))
    (tmp_path / "photos" / "dog" / "1.jpg").write_bytes(jpeg()[:700])
    done = diorama("render", "photos(source=photos, size=32)", "-o", "out")
    assert (done.returncode, done.stderr) == (0, "")
    cases = json.loads((tmp_path / "out" / "manifest.json").read_text())["cases"]
    assert [case.get("targets") for case in cases] == [[0], [1], None]
    assert "1.jpg" in cases[2]["excluded"] and read_png(tmp_path / "out" / "contact.png").shape[2] == 3


@pytest.mark.parametrize("layout", ["flat", "mit"])
def test_render_keeps_no_frames(tmp_path, layout):
    from diorama.core.catalogue import build
    from diorama.core.frame import Frame
    from diorama.core.writing import Writing
    from diorama.layouts import write

    world, alive = build("world", "mondrian(size=32)" if layout == "flat" else "tabletop(size=8, samples=1)"), []
    before = sum(type(thing) is Frame for thing in gc.get_objects())

    def progress(done, total):
        alive.append(sum(type(thing) is Frame for thing in gc.get_objects()) - before)

    write(layout, Writing(world, 4, 0, {}, tmp_path, progress))
    assert len(alive) == 4 and max(alive) <= alive[0]
    assert len(json.loads((tmp_path / "manifest.json").read_text())["cases"]) == 4


def npy(shape, kind="<f8"):
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head


def test_an_array_that_promises_terabytes_or_objects_is_refused(tmp_path):
    (tmp_path / "big.npy").write_bytes(npy((10**6, 10**6)))
    with pytest.raises(InputError, match="DIORAMA_MAX_MB"):
        read_array(tmp_path / "big.npy")
    (tmp_path / "short.npy").write_bytes(npy((10, 10)))
    with pytest.raises(InputError, match="ends early"):
        read_array(tmp_path / "short.npy")
    np.save(tmp_path / "pickled.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        read_array(tmp_path / "pickled.npy")
    np.save(tmp_path / "good.npy", np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    assert read_array(tmp_path / "good.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
    np.savez_compressed(tmp_path / "good.npz", a=np.arange(3), b=np.eye(2))
    assert sorted(read_archive(tmp_path / "good.npz", ["a", "b", "c"])) == ["a", "b"]


def test_latents_that_are_not_finite_are_refused(tmp_path):
    from diorama.worlds.recorded.dsprites import Dsprites

    latents = np.array([[1, 1, 0.5, 0, 0, 0], [1, 2, np.nan, 0, 0, 0]])
    np.savez(tmp_path / "d.npz", imgs=np.zeros((2, 64, 64), np.uint8), latents_values=latents)
    with pytest.raises(InputError, match="not finite"):
        Dsprites(str(tmp_path / "d.npz"))


def test_labels_of_finished_mosaics_have_a_limit(tmp_path):
    from diorama.worlds.mosaic.files import Finished

    write_png(tmp_path / "a.png", photo(size=(64, 64)))
    heads = [*(f"filename_{i}" for i in range(4)), *(f"label_{i}" for i in range(4))]
    for label, said in ((10**12, "below 1000000"), ("7" * 5000, "below 1000000"), ("007", "write it as 7")):
        cells = ",".join(["p"] * 4 + ["7", str(label), "1", "2"])
        (tmp_path / "t.csv").write_text(f"filename,{','.join(heads)},target_class\na.png,{cells},7\n")
        with pytest.raises(InputError, match=said):
            _ = Finished(tmp_path / "t.csv").mosaics
    (tmp_path / "t.csv").write_text(f"filename,{','.join(heads)},target_class\na.png\n")
    with pytest.raises(InputError, match="line 2"):
        Finished(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "spec",
    [
        "concepts(scenes=1000000000000000000)",
        "concepts(images=10000000000)",
        "iiw(root=.)",
        "arap(root=.)",
        "saw(root=.)",
    ],
)
def test_worlds_too_large_or_empty_are_one_line(spec, diorama):
    done = diorama("render", spec, "-o", "out")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and len(done.stderr) < 500, done.stderr


def test_a_binary_mesh_is_one_line(tmp_path, diorama):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "x.obj").write_bytes(bytes(np.random.default_rng(0).integers(0, 256, 5000, np.uint8)))
    done = diorama("render", "tabletop(meshes=m, size=16, samples=1)", "-n", "1", "-o", "out")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr


# Values


@pytest.mark.parametrize(
    "value", ["1e999", "-1e999", "(1, 1e999)", "{'a': [1e999]}", "{[]: 1}", "1j", "{1}", "b'x'", "..."]
)
def test_values_that_cannot_be_written_down_are_refused(value):
    with pytest.raises(InputError, match="cannot read the value"):
        parse(f"retinex_gray(threshold={value})")


def test_scenes_with_values_that_are_no_json():
    for bad in (float("inf"), float("nan"), {1j}, "\ud800", [[float("inf")]]):
        with pytest.raises(InputError) as raised:
            _ = Scene("w", {"x": bad}).key
        assert len(str(raised.value)) < 500
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputError, match="nested"):
        digest(deep)


def test_a_plan_nested_three_thousand_deep_is_one_line(tmp_path, diorama):
    (tmp_path / "p.toml").write_text("worlds = " + "[" * 3000 + "]" * 3000)
    done = diorama("run", "p.toml")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and len(done.stderr) < 500, done.stderr[-300:]


def test_brackets_three_thousand_deep_and_long_numbers_are_one_line(tmp_path, diorama):
    with pytest.raises(InputError, match="nested"):
        parse("a(b=" + "[" * 3000 + "]" * 3000 + ")")
    (tmp_path / "p.toml").write_text("cases = " + "9" * 5000)
    done = diorama("run", "p.toml")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr[-300:]


def test_an_array_header_that_is_no_literal_is_damage(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 3), np.uint8))
    data = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(data.replace(b"}", b"("))
    with pytest.raises(InputError, match=r"x\.npy"):
        read_array(tmp_path / "x.npy")


def test_candle_keeps_its_panoramas_where_it_is_told(tmp_path, monkeypatch):
    from diorama.io.files import cache_folder

    monkeypatch.setenv("DIORAMA_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("DIORAMA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    assert cache_folder() == tmp_path / "users" / "diorama"


def test_a_damaged_photo_is_excluded_by_name(tmp_path):
    from diorama.io.photos import read_photo

    (tmp_path / "x.jpg").write_bytes(jpeg()[:500] + b"\xff\xd9")
    with pytest.raises(Excluded, match=r"x\.jpg"):
        read_photo(tmp_path / "x.jpg")


def test_reading_pictures_needs_no_stderr(tmp_path):
    (tmp_path / "x.jpg").write_bytes(jpeg())
    code = "import os, sys; os.close(2); from pathlib import Path; from diorama.io.images import read_image;"
    code += f"print(read_image(Path({str(tmp_path / 'x.jpg')!r})).shape)"
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        == "(60, 80, 3)\n"
    )


@pytest.mark.parametrize(
    "damaged", ['[{"class_idx": 0, "parts": {"beak": 1}}]', '[{"parts": 3}]', "7", '[{"parts": {"eye": []}}]']
)
def test_a_class_list_without_a_part_is_named(tmp_path, damaged):
    from tests.fuzz.folders import funnybirds_recorded
    from tests.fuzz.harness import diorama

    funnybirds_recorded(tmp_path / "d")
    (tmp_path / "d" / "classes.json").write_text(damaged)
    ended = diorama(["render", "funnybirds_recorded(root=d)", "-n", "1", "-o", "out"], tmp_path)
    assert (ended.code, ended.violation()) == (2, "") and "classes.json" in ended.err


@pytest.mark.parametrize("named", ["subprocess:Popen(args=['touch', 'ran'])", "mosaic(source='./evil.py:World')"])
def test_a_list_of_scenes_cannot_name_code(tmp_path, named, monkeypatch):
    """A file of cases is data: it may come from a colleague."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("open('ran', 'w')\n")
    line = {"world": named, "scene": {"world": "birds", "params": {}}}
    (tmp_path / "cases.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match="names code"):
        build("world", f"scenes(file={tmp_path / 'cases.jsonl'})")
    assert not (tmp_path / "ran").exists()
