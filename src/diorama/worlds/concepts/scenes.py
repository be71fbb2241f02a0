"""The base scenes of concept sets: which solids stand on the table, and how they are painted and lit.

With the meshes of Gupta et al. (2022) the ten single solids and ten triples are theirs. Cube and Sphere need no file; cow
and rocker-arm replace happy and max-planck where those files are missing, also in names.
"""

from typing import Any

import numpy as np

from diorama.core.frame import srgb_to_linear
from diorama.core.scene import rng
from diorama.worlds.tabletop.meshes import PLAIN, mesh_names

SOLIDS = (
    "Cube Sphere happy homer max-planck nefertiti spot stanford-bunny suzanne teapot".split()  # noqa: SIM905
)
TRIPLES = (
    ("Cube", "happy", "stanford-bunny"),
    ("Sphere", "Cube", "teapot"),
    ("Sphere", "nefertiti", "max-planck"),
    ("happy", "homer", "Sphere"),
    ("happy", "homer", "max-planck"),
    ("happy", "max-planck", "spot"),
    ("homer", "max-planck", "suzanne"),
    ("max-planck", "stanford-bunny", "teapot"),
    ("nefertiti", "spot", "suzanne"),
    ("spot", "stanford-bunny", "suzanne"),
)
SUBSTITUTES = {"happy": "cow", "max-planck": "rocker-arm"}
#: Degrees right of the camera of the four lamps of Δa, and of the sweep of Δi: 22 to each side, the centre left out.
LAMPS = (-45.0, -15.0, 15.0, 45.0)
SWEEP = tuple(float(a) for a in range(-44, 45, 2) if a)
TEMPERATURES = (2500, 4500, 6500)
_DARKEST, _LIGHTEST = 0.03, 0.88


def casts(objects: int, count: int, folder: str | None) -> list[tuple[str, tuple[str, ...]]]:
    """The name and the meshes of each base scene; a repeated name gets a number.

    >>> casts(1, 11, None)[-2:]
    [('Sphere', ('Sphere',)), ('duck-2', ('duck',))]
    """
    files = _paper_files(folder)
    if files:
        lists = [tuple(files[n] for n in names) for names in (TRIPLES if objects == 3 else [(n,) for n in SOLIDS])]
    else:
        names = [*mesh_names(folder), *(("Sphere",) if folder is None else ())]
        lists = [_drawn(names, objects, i) for i in range(count)]
    chosen = [lists[i % len(lists)] for i in range(count)]
    plain = ["_".join(name.rpartition(".")[0] or name for name in cast) for cast in chosen]
    again = [plain[:i].count(name) + 1 for i, name in enumerate(plain)]
    return [(f"{n}-{k}" if k > 1 else n, cast) for n, k, cast in zip(plain, again, chosen, strict=True)]


def _drawn(names: list[str], objects: int, index: int) -> tuple[str, ...]:
    if objects == 1:
        return (names[index % len(names)],)
    order = rng("concept triples", index).permutation(len(names))
    return tuple(names[i] for i in np.resize(order, objects))


def _paper_files(folder: str | None) -> dict[str, str]:
    """The file of each solid of the paper, if a folder has them all; else empty."""
    if folder is None:
        return {}
    stems = {name.rpartition(".")[0]: name for name in mesh_names(folder)} | {n: n for n in PLAIN}
    found = {name: stems.get(name) or stems.get(SUBSTITUTES.get(name, "")) for name in SOLIDS}
    return {name: file for name, file in found.items() if file} if all(found.values()) else {}


def paints(seed: int, base: str, index: int, surface: str, count: int, textures: str | None) -> list[Any]:
    """The index-th paint job of a base scene: for each object a random colour, pattern or picture."""
    from diorama.worlds.tabletop.paint import draw_pattern, image_names

    generator = rng(seed, "concept paint", base, surface, index)
    if surface == "rgb":
        colours = srgb_to_linear(generator.uniform(0.1, 1.0, (count, 3)))
        return colours.clip(_DARKEST, _LIGHTEST).round(6).tolist()
    if textures is None:
        return [draw_pattern(generator) for _ in range(count)]
    names = image_names(textures)
    return [{"image": names[i]} for i in generator.integers(len(names), size=count)]
