"""Concept sets on disk in their authors' layout: one flat folder of 8-bit sRGB images per set, negatives in `randoms`.

OUT/<set>/000.png …                  8-bit sRGB; values above white are clipped
OUT/<set>.json                       what the set shows, image by image; written last, so that a set with it is complete
OUT/linear/<set>_<layer>.npy         optional: (n, h, w, 3) float32 linear image, reflectance, shading, specular
OUT/randoms/<case>.png               the scenes of a world that has no sets
OUT/figure3.svg                      samples of each kind of set with the path of the lamp
"""

from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.capabilities import Sets
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.progress import Progress
from diorama.core.scene import Scene
from diorama.core.writing import Writing
from diorama.io.files import read_json
from diorama.io.images import quantise, read_png, write_png
from diorama.io.locks import locked
from diorama.io.names import case_path
from diorama.io.sheet import contact_sheet
from diorama.io.store import write_json
from diorama.worlds.concepts.figure import figure3

_AT_ONCE = 25  # frames of a set that are held at once
_SHEET = 64  # negatives on the contact sheet
#: What a manifest says of every image, besides its file.
_VARYING = ("light_angle", "temperature", "member")


def write_concepts(ask: Writing, linear: bool = False) -> Path:
    """Write concept sets with the paper's folder names, or the scenes of another world as their `randoms`.

    8-bit sRGB; with `linear` also the linear layers as NPY. Resumes where it stopped. The world
    `natural_concepts(root=…, kind=folder)` reads the folder.
    """
    ask.unchanged("concepts")
    world, out = ask.world, ask.out
    if not isinstance(world.object, Sets):
        return contact_sheet(write_randoms(world.object, ask.count, ask.seed, out, ask.progress)).written(out)
    write_sets(world.object, world.label, world.digest, min(ask.count, len(world.object)), out, linear, ask.progress)
    (out / "figure3.svg").write_text(figure3(world.object), encoding="utf-8")
    return out / "figure3.svg"


def write_linear(ask: Writing) -> Path:
    """Write concept sets with the linear layers."""
    return write_concepts(ask, linear=True)


def write_sets(world: Any, label: str, digest: str, count: int, out: Path, linear: bool, progress: Progress) -> None:
    """Write those of the first `count` sets that are missing, and the manifest of all sets in the folder."""
    with locked(out / ".lock"):
        _claim(out / "manifest.json", {"world": label, "digest": digest})
        for i in range(count):
            name, concept = world.scene(i)
            name = case_path(Path(), name).as_posix()
            if not (out / f"{name}.json").exists() or (linear and not _stack(out, name, "image").exists()):
                _write_set(world, name, concept, out, linear)
            progress(i + 1, count)
        done = sorted(path.stem for path in out.glob("*.json") if path.stem != "manifest")
        write_json(out / "manifest.json", {"world": label, "digest": digest, "sets": done})


def _claim(file: Path, made_by: dict[str, str]) -> None:
    """Refuse to mix a folder with the sets of another world."""
    held = read_json(file) if file.exists() else made_by
    known = held if isinstance(held, dict) else {}
    if known.get("digest") != made_by["digest"]:
        raise InputError(f"{file.parent} holds sets of {known.get('world', 'another world')}; choose another -o")
    write_json(file, held)


def _write_set(world: Any, name: str, concept: Scene, out: Path, linear: bool) -> None:
    members = world.members(concept)
    stacks: dict[str, Any] = {}
    for start in range(0, len(members), _AT_ONCE):
        for k, frame in enumerate(world.render(members[start : start + _AT_ONCE]), start):
            write_png(out / name / f"{k:03d}.png", quantise(frame.srgb(), 8))
            for layer in ("reflectance", "shading", "specular", "image") if linear else ():
                values = _layer(frame, layer)
                if layer not in stacks:
                    stacks[layer] = _opened(_stack(out, name, layer), (len(members), *values.shape))
                stacks[layer][k] = values
    for layer, stack in stacks.items():  # "image" is written last: if it exists, the other layers are complete
        stack.flush()
        _part(_stack(out, name, layer)).replace(_stack(out, name, layer))
    images = [{"image": f"{name}/{k:03d}.png", **_said(member)} for k, member in enumerate(members)]
    write_json(out / f"{name}.json", {"set": concept.to_json(), "images": images})


def _opened(path: Path, shape: tuple[int, ...]) -> Any:
    """An .npy file of this shape to be filled frame by frame, under a temporary name."""
    path.parent.mkdir(exist_ok=True)
    return np.lib.format.open_memmap(_part(path), "w+", np.float32, shape)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}")


def _said(member: Scene) -> dict[str, Any]:
    said = {key: member.params[key] for key in _VARYING if key in member.params}
    if "objects" in member.params:
        said["paint"] = [thing["paint"] for thing in member.params["objects"]]
    return said


def _stack(out: Path, name: str, layer: str) -> Path:
    return out / "linear" / f"{name}_{layer}.npy"


def _layer(frame: Frame, layer: str) -> np.ndarray:
    if layer != "image" and layer not in frame.truth:
        raise InputError(f"{frame.scene.world} has no true {layer}: write --layout concepts, without linear layers")
    return frame.linear() if layer == "image" else frame.truth[layer]


def write_randoms(world: Any, count: int, seed: int, out: Path, progress: Progress) -> list[np.ndarray]:
    """Write missing scenes as negatives; gives a few of them as pictures."""
    shown: list[Path] = []
    count = min(count, world.length or count)
    for i in range(count):
        name, scene = world.scene_at(seed, i)
        path = case_path(out / "randoms", name, ".png")
        if not path.exists():
            write_png(path, quantise(world.render([scene])[0].srgb(), 8))
        shown += [path] if len(shown) < _SHEET else []
        progress(i + 1, count)
    return [read_png(path).astype(np.float32) / 255 for path in shown]
