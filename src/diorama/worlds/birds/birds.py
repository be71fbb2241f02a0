"""FunnyBirds: toon birds in fifty classes, from which any part or background object can be removed (staged).

Hesse, Schaub-Meyer, Roth: FunnyBirds, a synthetic vision dataset for a part-based analysis of explainable AI methods
(ICCV 2023). Geometry of the scene, camera, lamp, shading, outline and draw order are the published ones; the part
meshes are Diorama's own unless `parts` names a folder with the official GLB files. Nothing casts a shadow, so removing a
part uncovers what is behind it and changes nothing else.

    world = Birds()
    scene = world.sample(rng)
    frames = world.render([scene, world.do(scene, beak=None), world.do(scene, background_without=3)])

The part map `truth["parts"]` is 0 where there is nothing, 1 body, 2 beak, 3 and 4 eyes, 5 and 6 feet, 7 tail, 8 and 9
wings, and 10 + i for background object i; the first of a pair is the viewer's left. The outline belongs to no part: the
map shows the surfaces without it, as published.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from diorama.core.bounds import Within
from diorama.core.capabilities import Parted
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.io.digests import files_digest
from diorama.worlds.birds.classes import BACKGROUND, IDS, PARTS, SUB_PARTS, SUBSETS, draw_classes
from diorama.worlds.birds.metadata import Split, published_params
from diorama.worlds.birds.scenes import FACTORS, MOST_OBJECTS, change, check_params, draw_params, flat_factors


@dataclass(frozen=True, slots=True)
class Birds(Parted):
    """Toon birds on a plain ground, with their part map, depth and boxes.

    size          side of the square images in pixels; the paper has 256
    antialias     five samples per pixel of the image, sixteen above 128 pixels; False takes one
    parts         folder with the official GLB files; None for Diorama's own meshes
    split         test shows whole birds; train removes n ~ U{0..5} random parts from half of them, like the published
                  training set
    classes_seed  seed of the list of fifty classes
    objects       largest number of background objects; their number is drawn from U{0..objects}, published 34
    classes       number of classes used, 2 to 50: the first of the list, with labels 0 to classes − 1

    After construction `world.classes` holds the variants of each class; seed 0 gives the published ones.
    """

    size: Annotated[int, Within(8, 4096)] = 128
    antialias: bool = True
    parts: str | None = None
    split: Split = "test"
    classes_seed: int = 0
    objects: Annotated[int, Within(0, MOST_OBJECTS)] = 34
    classes: Sequence[Mapping[str, int]] = field(default=50, hash=False, repr=False)  # type: ignore[arg-type]

    cite = ("hesse2023",)
    located = ("parts",)
    layouts: ClassVar[dict[str, str]] = {
        "funnybirds": "diorama.worlds.birds.layout:write_layout",
        "figures": "diorama.worlds.birds.figures:write_figures",
    }
    factors: ClassVar[dict[str, str]] = FACTORS
    truth: ClassVar[tuple[str, ...]] = ("label", "parts", "mask", "depth", "boxes", "factors")
    part_names: ClassVar[tuple[str, ...]] = PARTS
    #: The ids of each part in `truth["parts"]`; background object i is `background_id + i`.
    part_ids: ClassVar[dict[str, tuple[int, ...]]] = {
        part: tuple(IDS[sub] for sub in subs) for part, subs in SUB_PARTS.items()
    }
    background_id = BACKGROUND

    def __post_init__(self) -> None:
        if self.parts is not None and not Path(self.parts).is_dir():
            raise InputError(f"parts={self.parts!r}: no such folder; give the one that holds bird01.glb")
        object.__setattr__(self, "classes", _first_classes(self.classes, self.classes_seed))

    def fingerprint(self) -> str:
        """The digest of the part files, so that keys depend on their content and not on their path."""
        return "" if self.parts is None else files_digest(Path(self.parts).rglob("*.glb"), Path(self.parts))

    def sample(self, rng: np.random.Generator) -> Scene:
        """A scene drawn with the published distributions."""
        return Scene("birds", draw_params(rng, self.classes, self.objects, self.split == "train"))

    def published(self, per_class: int | None = None) -> Iterator[Scene]:
        """The scenes of the published split, in order (seed 0: the published data set itself)."""
        every = published_params(self.split, self.classes_seed, per_class)
        return (Scene("birds", params) for params in every if params["label"] < len(self.classes))

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The scene with some factors changed; see `Birds.factors` for their names and values."""
        return Scene(scene.world, change(scene.params, changes, self.classes))

    def subsets(self, scene: Scene) -> dict[tuple[str, ...], Scene]:
        """All 32 part interventions by the parts they keep; () is the bare body."""
        return {kept: self.do(scene, **{p: None for p in PARTS if p not in kept}) for kept in SUBSETS}

    def removals(self, scene: Scene) -> dict[int, Scene]:
        """The scene without each background object, by the object's index."""
        shown = (i for i, thing in enumerate(scene.params["background"]) if thing is not None)
        return {i: self.do(scene, background_without=i) for i in shown}

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """The frames of the scenes; those with one camera and lamp share one set of layers."""
        for scene in scenes:
            check_params(scene.params, len(self.classes))
        from diorama.worlds.birds.rendering import render_params

        images = render_params([scene.params for scene in scenes], self.size, self.antialias, self.parts)
        return [_frame(scene, arrays) for scene, arrays in zip(scenes, images, strict=True)]


def _first_classes(asked: Any, seed: int) -> tuple[Mapping[str, int], ...]:
    """The first classes of a seed, given their number, or a tuple of them as `dataclasses.replace` passes."""
    count = len(asked) if isinstance(asked, tuple) else asked
    if not isinstance(count, int) or isinstance(count, bool) or not 2 <= count <= len(_classes(seed)):
        raise InputError(f"classes={asked!r}: give how many of the fifty classes there are, 2 to {len(_classes(seed))}")
    return tuple(dict(bird) for bird in _classes(seed)[:count])


@lru_cache(maxsize=16)
def _classes(seed: int) -> tuple[Mapping[str, int], ...]:
    return draw_classes(random.Random(seed))


def _frame(scene: Scene, arrays: Mapping[str, np.ndarray]) -> Frame:
    parts = arrays["parts"]
    truth = {
        "label": scene.params["label"],
        "parts": parts,
        "mask": (parts > 0) & (parts < Birds.background_id),
        "depth": arrays["depth"],
        "boxes": boxes(parts),
        "factors": flat_factors(scene.params),
    }
    return Frame(scene, arrays["image"].astype(np.float32) / 255, "srgb", truth)


def boxes(parts: np.ndarray) -> dict[str, list[int]]:
    """The box x0, y0, x1, y1 (far edge excluded) of everything visible in a part map, by name.

    >>> boxes(np.array([[0, 2, 2], [0, 2, 12]], np.uint8))
    {'beak': [1, 0, 3, 2], 'background02': [2, 1, 3, 2]}
    """
    from scipy.ndimage import find_objects

    found = enumerate(find_objects(parts), start=1)
    return {part_name(i): [x.start, y.start, x.stop, y.stop] for i, (y, x) in ((i, s) for i, s in found if s)}


def part_name(index: int) -> str:
    """The name of an id of the part map.

    >>> part_name(4), part_name(12)
    ('eye02', 'background02')
    """
    if index >= Birds.background_id:
        return f"background{index - Birds.background_id:02d}"
    return ("empty", *IDS)[index]
