"""Sprites: a square, ellipse or heart of some size, angle and place; dSprites re-rendered, 737,280 combinations (staged)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from diorama.core.capabilities import Levelled, Listed
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.render.sprites import COUNTS, NAMES, SHAPES, SIZE, are_counts, levels, silhouettes

_RANGES = {"scale": (0.05, 1.0), "orientation": (-1e6, 1e6), "x": (0.0, 1.0), "y": (0.0, 1.0)}


@dataclass(frozen=True)
class Sprites(Listed, Levelled):
    """White on black, 64 × 64, not antialiased; drawn by rules recovered from published frames of dSprites.

    counts  numbers of evenly spaced values of shape, scale, orientation, x and y; the original has (3, 6, 40, 32, 32)
    sigma   width of the coupling of two factors, both scaled to 0 … 1: a combination (a, b) is kept with probability
            exp(−(a − b)² / 2σ²) (Träuble et al. 2021); None for no coupling
    couple  the two factors that `sigma` couples

    Images are not those of dSprites bit for bit: 97 % of its squares and ellipses are reproduced exactly, hearts within 3
    pixels. Orientations 0 and 39 (2π) give one image, as in the original. The i-th scene is the i-th of a fixed shuffle and
    is named by its index in the published order; `do` also takes values between the levels.
    """

    counts: tuple[int, int, int, int, int] = COUNTS
    sigma: float | None = None
    couple: tuple[str, str] = ("scale", "x")

    cite = ("matthey2017",)
    staged = True
    factors: ClassVar[dict[str, str]] = {
        "shape": ", ".join(SHAPES),
        "scale": "0.5 to 1 (any above 0.05)",
        "orientation": "radians, anticlockwise",
        "x": "0 (left) to 1",
        "y": "0 (top) to 1",
    }
    truth: ClassVar[tuple[str, ...]] = ("factors",)
    size = SIZE

    def __post_init__(self) -> None:
        if not are_counts(self.counts):
            raise InputError(f"sprites: counts={self.counts!r} should be five whole numbers of at most {COUNTS}")
        if self.sigma is not None and not self.sigma > 0:
            raise InputError(f"sprites: sigma={self.sigma!r} should be above 0, or left out for independent factors")
        for name in self.couple:
            if name not in NAMES:
                raise InputError(f"sprites: couple names {name!r}; {did_you_mean(name, list(NAMES))}")

    @cached_property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The values of every factor, in the published order."""
        return levels(self.counts)

    @cached_property
    def _order(self) -> np.ndarray:
        """The indices of the combinations that confounding leaves, in the fixed shuffle."""
        total = int(np.prod(self.counts))
        order = rng("sprites", total).permutation(total)
        if self.sigma is None:
            return order
        place = np.stack(np.unravel_index(order, self.counts), axis=1)
        a, b = (place[:, NAMES.index(n)] / max(self.counts[NAMES.index(n)] - 1, 1) for n in self.couple)
        return order[rng("sprites", "couple", total).random(total) < np.exp(-((a - b) ** 2) / (2 * self.sigma**2))]

    def __len__(self) -> int:
        return len(self._order)

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th scene of the shuffle, named by its index in the published order."""
        number = int(self._order[index])
        return f"{number:06d}", self.numbered(number)

    def numbered(self, number: int) -> Scene:
        """Combination `number` of the published order: shape varies slowest, then scale, orientation, x, y."""
        if not 0 <= number < np.prod(self.counts):
            raise InputError(f"sprites: there is no combination {number}; there are {int(np.prod(self.counts))}")
        place = np.unravel_index(number, self.counts)
        return Scene("sprites", {name: v[int(i)] for (name, v), i in zip(self.levels.items(), place, strict=True)})

    def sample(self, rng: np.random.Generator) -> Scene:
        """One of the combinations."""
        return self.numbered(int(self._order[rng.integers(len(self))]))

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The same sprite with some factors set, between the levels too."""
        for name, value in changes.items():
            if name not in NAMES:
                raise InputError(f"sprites cannot change {name!r}; {did_you_mean(name, list(NAMES))}")
            if name == "shape" and value not in SHAPES:
                raise InputError(f"sprites: shape={value!r}; {did_you_mean(str(value), list(SHAPES))}")
            if name != "shape" and not (isinstance(value, int | float) and _inside(name, value)):
                low, high = _RANGES[name]
                raise InputError(f"sprites: {name}={value!r} should be a number from {low:g} to {high:g}")
        return scene.changed({name: value if name == "shape" else float(value) for name, value in changes.items()})

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """Draw the sprites."""
        shape = np.array([SHAPES.index(s.params["shape"]) for s in scenes], int)
        rest = [np.array([s.params[name] for s in scenes], float) for name in NAMES[1:]]
        images = silhouettes(shape, *rest)[..., None].astype(np.float32).repeat(3, axis=3)
        return [Frame(s, image, "srgb", {"factors": dict(s.params)}) for s, image in zip(scenes, images, strict=True)]


def _inside(name: str, value: float) -> bool:
    low, high = _RANGES[name]
    return low <= value <= high
