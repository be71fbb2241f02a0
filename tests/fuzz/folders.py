"""Small good data sets, one for every reader: what the fuzzers damage. All are written on the spot, nothing is recorded."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from diorama.io.images import write_png

SIDE = 20


def picture(seed: int, side: int = SIDE) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2)


def _write(path: Path, ending: str, image: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(ending, image)[1].tobytes())


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def mit(root: Path) -> None:
    for i, file in enumerate(("diffuse", "original", "specular", "reflectance", "shading", "mask")):
        write_png(root / "box" / f"{file}.png", picture(i).astype(np.uint16) * 200 + 1)


def iiw(root: Path) -> None:
    points = [{"id": i, "x": 0.2 * i, "y": 0.3, "opaque": True} for i in (1, 2)]
    pairs = [{"point1": 1, "point2": 2, "darker": "1", "darker_score": 1.0}]
    for name, ending in (("7", ".png"), ("12", ".jpg")):
        _text(root / f"{name}.json", json.dumps({"intrinsic_points": points, "intrinsic_comparisons": pairs}))
        _write(root / f"{name}{ending}", ending, picture(1))


def saw(root: Path) -> None:
    _write(root / "saw_images_512" / "3.png", ".png", picture(2))
    for folder in ("saw_pixel_labels/one", "saw_splits"):
        (root / folder).mkdir(parents=True)
    np.save(root / "saw_pixel_labels" / "one" / "3.npy", np.full((SIDE, SIDE), 2, np.uint8))
    np.save(root / "saw_splits" / "test_ids.npy", np.array([3]))


def arap(root: Path) -> None:
    for name in ("input/alley", "reflectance/alley_albedo", "shading/alley_shading", "mask/alley_alpha"):
        _write(root / f"{name}.png", ".png", picture(3) | 128)


def multi_illumination(root: Path) -> None:
    _write(root / "kitchen" / "dir_0_mip2.jpg", ".jpg", picture(4))
    _write(root / "kitchen" / "materials_mip2.png", ".png", picture(5))


def photometric_stereo(root: Path) -> None:
    for name in ("cat.0", "cat.1", "cat.mask"):
        _write(root / "cat" / f"{name}.png", ".png", picture(6) | 128)
    _text(root / "lights.txt", "2\n0 0 1\n0 1 0\n")


def candle_recorded(root: Path) -> None:
    thing = {"object_type": "Cube", "color": "red", "size": 2, "rotation": 15, "bounds": [[1, 2], [3, 4]]}
    for i in range(2):
        _text(root / f"{i}.json", json.dumps({"scene": "indoor", "lights": "left", "objects": {"Cube_0": thing}}))
        _write(root / f"{i}.png", ".png", picture(i))


def funnybirds_recorded(root: Path) -> None:
    import random

    from diorama.worlds.birds.classes import draw_classes
    from diorama.worlds.birds.metadata import class_records, published_params, to_record

    classes, bird = draw_classes(random.Random(0)), next(published_params("test"))
    _text(root / "classes.json", json.dumps(class_records(classes)))
    _text(root / "dataset_test.json", json.dumps([to_record(bird, classes)]))
    for folder in ("test", "test_part_map"):
        _write(root / folder / "0" / "000000.png", ".png", picture(7))


def dsprites(root: Path) -> None:
    latents = np.array([[1, shape, 0.5, 0.0, 0.1, 0.2] for shape in (1.0, 2.0, 3.0)])
    images = np.random.default_rng(0).integers(0, 2, (3, 64, 64), np.uint8)
    root.mkdir(parents=True)
    np.savez_compressed(root / "d.npz", imgs=images, latents_values=latents)


def photos(root: Path) -> None:
    for i, name in enumerate(("cat/a.jpg", "cat/b.png", "dog/a.jpg", "dog/b.png")):
        _write(root / name, name[-4:], picture(i))
    _text(root / "list.txt", "cat/a.jpg\ndog/b.png\n")
    _text(root / "table.csv", "filename,label,subset\ncat/a.jpg,cat,val\ndog/b.png,dog,val\n")


def folder(root: Path) -> None:
    _write(root / "images" / "cat" / "a.jpg", ".jpg", picture(8))
    _write(root / "masks" / "cat" / "a" / "ear.png", ".png", picture(9)[:, :, 0])


def finished(root: Path) -> None:
    _write(root / "data" / "m.png", ".png", picture(10))
    heads = [*(f"filename_{i}" for i in range(4)), *(f"label_{i}" for i in range(4))]
    _text(root / "t.csv", f"filename,{','.join(heads)},target_class\nm.png,a,b,c,d,0,1,0,1,0\n")


def sets(root: Path) -> None:
    for i in range(3):
        _write(root / "duck_mat0temp2500" / f"{i}.png", ".png", picture(i))


def layers(root: Path) -> None:
    """Saved predictions for the first cases of mondrian(size=20)."""
    for i, ending in enumerate(("npz", "npy", "png")):
        values = np.random.default_rng(i).random((SIDE, SIDE, 3)).astype(np.float32)
        (root / f"0-0000{i}").mkdir(parents=True)
        if ending == "npz":
            np.savez(root / f"0-0000{i}.npz", reflectance=values, shading=values)
        for name in ("reflectance", "shading"):
            if ending == "npy":
                np.save(root / f"0-0000{i}" / f"{name}.npy", values)
            elif ending == "png":
                write_png(root / f"0-0000{i}" / f"{name}.png", (values * 65535).astype(np.uint16))


def meshes(root: Path) -> None:
    import trimesh

    root.mkdir(parents=True)
    for ending in ("obj", "ply", "glb"):
        trimesh.creation.box().export(root / f"box.{ending}")


def panoramas(root: Path) -> None:
    wide = np.hstack([picture(1), picture(2)])
    _write(root / "a.hdr", ".hdr", wide.astype(np.float32) / 255)
    _write(root / "b.png", ".png", wide)


def arrays(root: Path) -> None:
    """A file of Python's own serialisation, as dictionaries of weights were published in; written, never loaded."""
    import pickle

    root.mkdir(parents=True)
    kept = {"conv": {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.zeros(2, np.float32)}}
    (root / "w.bin").write_bytes(pickle.dumps(kept, protocol=3).replace(b"numpy._core", b"numpy.core"))


def pictures_in_exr(root: Path) -> None:
    """Saved predictions as EXR, for the first case of mondrian(size=20)."""
    import OpenEXR

    kinds = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
    (root / "0-00000").mkdir(parents=True)
    for i, name in enumerate(("reflectance", "shading")):
        values = np.random.default_rng(i).random((SIDE, SIDE, 3)).astype(np.float32)
        OpenEXR.File(kinds, {"RGB": values}).write(str(root / "0-00000" / f"{name}.exr"))


def codes(root: Path) -> None:
    root.mkdir(parents=True)
    values = np.random.default_rng(0).random((4, 3))
    np.save(root / "c.npy", values)
    np.savez(root / "c.npz", codes=values, names=np.array(["0", "1", "2", "3"]))


def weights(root: Path) -> None:
    """A state dict in both kinds of file."""
    import torch
    from safetensors.torch import save_file

    root.mkdir(parents=True)
    kept = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2)).state_dict()
    save_file(kept, root / "w.safetensors")
    torch.save({"state_dict": kept, "model": "resnet50"}, root / "w.pt")


@dataclass(frozen=True)
class Reader:
    """A good folder, and the command lines, or the function, that read it (`{}` stands for the folder)."""

    write: Callable[[Path], None]
    commands: tuple[tuple[str, ...], ...] = ()
    read: Callable[[Path], object] | None = None


def _render(*specs: str) -> tuple[tuple[str, ...], ...]:
    return tuple(("render", spec, "-n", "3", "-o", "out") for spec in specs)


def _meshes(root: Path) -> None:
    from diorama.worlds.tabletop.meshes import mesh_named, mesh_names

    for name in mesh_names(str(root)):
        mesh_named(name, str(root), "y")


def _panoramas(root: Path) -> None:
    from diorama.worlds.candle.panoramas import panorama_files, read_panorama

    for path in set(panorama_files(str(root)).values()):
        read_panorama(path)


def _arrays(root: Path) -> None:
    from diorama.io.array_files import read_arrays

    read_arrays(root / "w.bin")


def _codes(root: Path) -> None:
    from diorama.core.catalogue import build
    from diorama.core.frame import Frame
    from diorama.core.scene import Scene

    frame = Frame(Scene("codes", {}), np.zeros((4, 4, 3), np.float32), "linear")
    for ending in ("npy", "npz"):
        method = build("method", f"represent/predictions(codes={root}/c.{ending})").object
        method.load("2", frame, None)


def _weights(root: Path) -> None:
    """A broken file is one line, whichever file it is."""
    from diorama.adapt.state_dicts import read_state

    for ending in ("safetensors", "pt"):
        for tensor in read_state(str(root / f"w.{ending}"), "checkpoint").values():
            tensor.sum()


_PREDICTIONS = (
    *("run", "-w", "mondrian(size=20)", "-m", "decompose/predictions(folder=d)", "-p", "lmse", "-n", "3", "-o", "out"),
)

READERS: dict[str, Reader] = {
    "mit_intrinsic": Reader(
        mit, _render(*(f"mit_intrinsic(root=d, objects=('box',), image={image})" for image in ("diffuse", "original")))
    ),
    "iiw": Reader(iiw, _render("iiw(root=d)")),
    "saw": Reader(saw, _render("saw(root=d)", "saw(root=d, split=all)")),
    "arap": Reader(arap, _render("arap(root=d)")),
    "multi_illumination": Reader(multi_illumination, _render("multi_illumination(root=d)")),
    "photometric_stereo": Reader(photometric_stereo, _render("photometric_stereo(root=d)")),
    "candle_recorded": Reader(candle_recorded, _render("candle_recorded(root=d)")),
    "funnybirds_recorded": Reader(funnybirds_recorded, _render("funnybirds_recorded(root=d)")),
    "dsprites": Reader(dsprites, _render("dsprites(npz=d/d.npz)")),
    "photos": Reader(photos, _render(*(f"photos(source=d{end}, size=16)" for end in ("", "/list.txt", "/table.csv")))),
    "photo_folder": Reader(photos, _render("photo_folder(root=d, size=16)")),
    "folder": Reader(folder, _render("folder(images=d/images, masks=d/masks)")),
    "mosaic": Reader(finished, _render("mosaic(source=d/t.csv)")),
    "natural_concepts": Reader(sets, _render("natural_concepts(root=d, kind=folder, min_images=1, size=16)")),
    "predictions": Reader(layers, (_PREDICTIONS,)),
    "exr": Reader(pictures_in_exr, ((*_PREDICTIONS[:-3], "1", "-o", "out"),)),
    "codes": Reader(codes, read=_codes),
    "weights": Reader(weights, read=_weights),
    "meshes": Reader(meshes, read=_meshes),
    "panoramas": Reader(panoramas, read=_panoramas),
    "array_files": Reader(arrays, read=_arrays),
}  # fmt: skip
