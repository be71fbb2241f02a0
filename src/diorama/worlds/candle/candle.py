"""CANDLE: one of five objects on a floor in a panorama, with a lamp; six factors and the causes behind them (staged).

Reddy, Godfrey L, Balasubramanian: On Causally Disentangled Representations (AAAI 2022), and the CANDLE data set before
it: 5 objects × 5 colours × 3 sizes × 6 rotations × 3 scenes × 3 lights = 4,050 combinations. Solids, paints, lamp, floor
places, camera and its jitter are those of the released simulator; the sets are Diorama's own unless `hdri` names a
folder of panoramas. The panorama is both background and light, the lamp adds a second shadow, and of the floor only the
shadows on it are visible.

    world = Candle()
    scene = world.sample(rng)
    frames = world.render([scene, world.do(scene, color="red"), world.do(scene, light="left")])

Depth, normals and parts (1 on the object) are those of object and floor. Boxes are x0, y0, x1, y1 from the top left:
`object` is tight, `loose` is the published one, made before the camera's jitter and not cut off at the image's edge.
Rotation is visible on the cube only, unless `marked`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from diorama.core.bounds import Within
from diorama.core.capabilities import Confounded
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.worlds.candle import graph
from diorama.worlds.candle.factors import NAMES, SCENES, grid, known, level_of, levels, values_of

Confounding = Literal["none", "pairs", "semantic", "semantic_commented", "gaussian", "one_to_all"]


@dataclass(frozen=True, slots=True)
class Candle(Confounded):
    """Images of `width` by ¾·`width` pixels.

    width         width of the images in pixels; published 320
    samples       light paths per pixel of the object; more give less noise
    scenes        number of the sixteen sets that are used; the paper has 3
    hdri          folder of panoramas that replace Diorama's own sets; None for ours
    confounding   how `sample` couples factors: none; pairs, the paper's object and colour (1,620 images); semantic, the
                  rule of the later data set (12,546 images of sixteen scenes; semantic_commented follows its comments);
                  gaussian, which couples both factors in `couple`; one_to_all, which couples the first of them to all
    sigma         width of the gaussian coupling, factors scaled to 0 … 1; small is strong
    couple        the two factors that gaussian and one_to_all confound
    hidden        strength of the unobserved cause of light and scene, 0 (none) to 1
    rotation_bug  takes degrees for radians, like the released simulator
    marked        paints stripes on the object, which make rotation visible on every shape
    lamp          power of the lamp in watts, 0 for none; published 5000

    `sample` depends on confounding and hidden cause, `do` does not.
    """

    width: Annotated[int, Within(16, 4096)] = 320
    samples: Annotated[int, Within(1, 65536)] = 48
    scenes: Annotated[int, Within(1, len(SCENES))] = 3
    hdri: str | None = None
    confounding: Confounding = "none"
    sigma: float = 0.2
    couple: tuple[str, str] = ("object", "color")
    hidden: float = 0.0
    rotation_bug: bool = False
    marked: bool = False
    lamp: Annotated[float, Within(0, 1e6)] = 5000.0

    cite = ("reddy2022", "trauble2021")
    located = ("hdri",)
    layouts: ClassVar[dict[str, str]] = {"candle": "diorama.worlds.candle.layout:write_numbered"}
    slow = True
    drawn: ClassVar[int | None] = 250
    quick: ClassVar[dict[str, int]] = {"width": 64, "samples": 4}
    truth: ClassVar[tuple[str, ...]] = (
        *("mask", "parts", "reflectance", "shading", "specular", "depth", "normal", "lights", "factors", "boxes"),
    )
    factors: ClassVar[dict[str, str]] = {
        **{name: ", ".join(map(str, known(name))) for name in NAMES if name != "scene"},
        "scene": f"{', '.join(SCENES[:3])}, … (the first `scenes` of sixteen)",
        "position": "[x, y] of the object on the floor in metres; +x is left, −y is far",
        "camera": "[up, left]: the jitter in degrees, each −1 to 1",
    }
    #: The causal graph: the causes of each variable; see `diorama.worlds.candle.graph`.
    graph: ClassVar[dict[str, tuple[str, ...]]] = graph.GRAPH

    def __post_init__(self) -> None:
        if self.hdri is not None and not Path(self.hdri).expanduser().is_dir():
            raise InputError(f"candle: hdri={self.hdri!r}: there is no such folder")
        if len(self.couple) != 2:
            raise InputError(f"candle: couple={self.couple!r}: name two factors, e.g. ('object', 'color')")
        self.weights()  # refuses impossible settings

    @property
    def height(self) -> int:
        """The height of the images in pixels."""
        return round(self.width * 3 / 4)

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The values of every factor, in the order of the published numbering."""
        return {name: known(name, self.scenes) for name in NAMES}

    def fingerprint(self) -> str:
        """The digest of the panorama files, so that keys depend on their content and not on their path."""
        from diorama.io.digests import files_digest
        from diorama.worlds.candle.panoramas import panorama_files

        if self.hdri is None:
            return ""
        files = panorama_files(self.hdri)
        return files_digest({files[name] for name in SCENES[: self.scenes]}, Path(self.hdri).expanduser())

    # Causes

    def weights(self) -> np.ndarray:
        """The probability of every combination, not normalised, in the published order."""
        rows = grid(self.scenes)
        chosen = {
            "none": lambda: np.ones(len(rows)),
            "pairs": lambda: graph.pairs(rows),
            "semantic": lambda: graph.semantic(rows),
            "semantic_commented": lambda: graph.semantic(rows, as_commented=True),
            "gaussian": lambda: graph.coupled(rows, *self.couple, self.sigma),
            "one_to_all": lambda: graph.one_to_all(rows, self.couple[0], self.sigma),
        }[self.confounding]()
        return chosen * graph.hidden(rows, self.hidden)

    def confounded(self, scene: Scene) -> bool:
        """Whether the world's confounding leaves a scene in; for a world without confounding, whether "pairs" does."""
        rows = grid(self.scenes)
        weights = graph.pairs(rows) if self.confounding == "none" else self.weights()
        return bool(weights[graph.matches(rows, {name: scene.params[name] for name in NAMES})][0] > 0)

    def sample(self, rng: np.random.Generator) -> Scene:
        """A scene drawn under the world's confounding."""
        return self._drawn(rng, self.weights())

    def sample_given(self, rng: np.random.Generator, **values: Any) -> Scene:
        """Conditioning: a scene among those that have the values."""
        return self._drawn(rng, graph.condition(grid(self.scenes), self.weights(), **values))

    def sample_do(self, rng: np.random.Generator, **values: Any) -> Scene:
        """Intervention: a scene with these values set; the other factors are drawn as without the intervention."""
        return self._drawn(rng, graph.intervene(grid(self.scenes), self.weights(), **values))

    def numbered(self, index: int, seed: int = 0) -> Scene:
        """Combination `index` of the published order, with the place and jitter drawn from (seed, index)."""
        if not 0 <= index < np.prod(levels(self.scenes)):
            raise InputError(
                f"candle: there is no image {index}; {self.scenes} scenes have 0 to {np.prod(levels(self.scenes)) - 1}"
            )
        return self._staged(rng(seed, "candle", index), grid(self.scenes)[index])

    def _drawn(self, rng: np.random.Generator, weights: np.ndarray) -> Scene:
        rows = grid(self.scenes)
        return self._staged(rng, rows[int(graph.draw(rng, rows, weights, 1)[0])])

    def _staged(self, rng: np.random.Generator, row: np.ndarray) -> Scene:
        from diorama.worlds.candle.stage import floor_place

        factors = values_of(row.tolist())
        jitter = [round(float(v), 4) for v in rng.uniform(-0.5, 0.5, 2)]
        return Scene("candle", {**factors, "position": list(floor_place(rng, factors["scene"])), "camera": jitter})

    def do(self, scene: Scene, /, **changes: Any) -> Scene:
        """The scene with some factors changed and everything else, place and jitter included, unchanged."""
        checked = {}
        for name, value in changes.items():
            if name in NAMES:
                checked[name] = known(name)[level_of(name, value, self.scenes)]
            elif name in ("position", "camera"):
                checked[name] = _pair(name, value, *((-40.0, 8.0) if name == "position" else (-1.0, 1.0)))
            else:
                raise InputError(f"candle cannot change {name!r}; {did_you_mean(name, list(self.factors))}")
        return scene.changed(checked)

    # Pictures

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """Trace every scene, all with the same random numbers, so that two images differ only by what was changed."""
        return [self._frame(scene) for scene in scenes]

    def _frame(self, scene: Scene) -> Frame:
        from diorama.worlds.candle.panoramas import panorama
        from diorama.worlds.candle.stage import LAMPS, loose_box, picture_of, visible_box

        p, size = scene.params, (self.width, self.height)
        found = picture_of(
            p,
            panorama(p["scene"], self.hdri, self.width),
            size,
            self.samples,
            (self.lamp, self.marked, self.rotation_bug),
        )
        boxes = {"object": visible_box(found["mask"]), "loose": loose_box(p, self.rotation_bug, *size)}
        truth = {
            **{name: found[name] for name in ("mask", "reflectance", "shading", "specular", "depth", "normal")},
            "parts": found["mask"].astype(np.uint8),
            "lights": [list(LAMPS[p["light"]])],
            "factors": {name: p[name] for name in NAMES},
            "boxes": boxes,
        }
        return Frame(scene, found["image"], "linear", truth)


def _pair(name: str, value: Any, low: float, high: float) -> list[float]:
    if np.shape(value) != (2,) or not all(isinstance(v, int | float) and low <= v <= high for v in value):
        raise InputError(f"candle: {name}={value!r}: give two numbers from {low:g} to {high:g}")
    return [float(v) for v in value]
