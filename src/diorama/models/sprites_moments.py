"""A classifier of sprites by image moments: shape, scale, orientation and place without any training.

Area, centroid and the central moments of orders two to four of an image are compared with those of every combination of
shape, scale and orientation, rendered at nine sub-pixel places. The nearest combination, measured in standard deviations
over the places, is the most probable; the place is the centroid minus that combination's own offset. It judges the images
that decoders make (protocol `cg`), so it must be exact on real sprites and tolerate blurred ones. Orientation is
ambiguous: the first and the last value give the same image, and so do small squares turned by 90°.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from diorama.core.contracts import Model
from diorama.core.errors import InputError
from diorama.render.sprites import COUNTS, SHAPES, SIZE, are_counts, levels, silhouettes

#: The haze subtracted from every pixel, the standard deviation of a place in pixels, and the least one of a moment.
_HAZE, _PLACE, _LEAST = 0.1, 0.2, 0.02
#: The least log probability: differences below it are meaningless.
_NEVER = -50.0
_ORDERS = [(a, b) for n in (2, 3, 4) for a in range(n, -1, -1) for b in [n - a]]


@dataclass(frozen=True)
class SpritesMoments(Model):
    """Logits of the values of shape, scale, orientation, x and y, concatenated; `heads` is the number of values of each.

    counts  the world's counts: `sprites_moments(counts=(3, 2, 4, 3, 3))` for `sprites(counts=(3, 2, 4, 3, 3))`
    """

    counts: tuple[int, int, int, int, int] = COUNTS

    size = SIZE
    example = "diorama run -w sprites -M {} -m beta_vae -p cg"

    def __post_init__(self) -> None:
        if not are_counts(self.counts):
            raise InputError(
                f"sprites_moments: counts={self.counts!r} should be five whole numbers of at most {COUNTS}"
            )

    @property
    def heads(self) -> tuple[int, ...]:  # type: ignore[override]
        """The number of logits of each factor, in the world's order."""
        return tuple(self.counts)

    @property
    def classes(self) -> int:  # type: ignore[override]
        """The number of all logits."""
        return sum(self.counts)

    @cached_property
    def _levels(self) -> list[np.ndarray]:
        values = levels(self.counts)
        shapes = np.array([SHAPES.index(name) for name in values["shape"]])
        return [shapes, *(np.array(values[name]) for name in ("scale", "orientation", "x", "y"))]

    @cached_property
    def _templates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean moments (combinations, k), their deviation (k,), and the offset of the centroid (combinations, 2)."""
        shape, scale, turn = (np.array(c) for c in zip(*product(*self._levels[:3]), strict=True))
        sampled = []
        for x, y in product((0.5, 0.51, 0.52), repeat=2):  # thirds of a pixel
            place = [np.full(len(shape), v) for v in (x, y)]
            area, centre, moments = _moments(silhouettes(shape.astype(int), scale, turn, *place).astype(np.float32))
            offset = centre - (16 + 32 * np.array([x, y]))
            sampled.append(np.concatenate([area[:, None], moments, offset], axis=1))
        mean, deviation = np.mean(sampled, axis=0), np.std(sampled, axis=0).mean(axis=0)
        return mean[:, :-2], np.maximum(deviation[:-2], _LEAST), mean[:, -2:]

    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, 64, 64, 3) → (n, classes): log probabilities of the values of each factor."""
        if images.ndim != 4 or images.shape[1:] != (SIZE, SIZE, 3):
            raise InputError(f"images are {images.shape}: sprites_moments takes (n, {SIZE}, {SIZE}, 3)")
        return np.concatenate([self._logits(images[i : i + 64]) for i in range(0, len(images), 64)])

    def _logits(self, images: np.ndarray) -> np.ndarray:
        from scipy.special import log_softmax

        mean, deviation, offset = self._templates
        gray = np.clip((images.mean(axis=3) - _HAZE) / (1 - _HAZE), 0, 1)
        area, centre, moments = _moments(gray)
        features = np.concatenate([area[:, None], moments], axis=1)
        posterior = log_softmax(-0.5 * (((features[:, None] - mean) / deviation) ** 2).sum(axis=2), axis=1)
        table = posterior.reshape(len(images), *self.counts[:3])
        shapes = [_log_sum(table, (2, 3)), _log_sum(table, (1, 3)), _log_sum(table, (1, 2))]
        place = (centre - offset[posterior.argmax(axis=1)] - 16) / 32
        errors = [(place[:, i, None] - self._levels[3 + i]) * 32 / _PLACE for i in (0, 1)]
        places = [log_softmax(-0.5 * error**2, axis=1) for error in errors]
        return np.maximum(np.concatenate([*shapes, *places], axis=1), _NEVER).astype(np.float32)


def _moments(images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """√area (n,), centroid (n, 2) as x, y in pixels, and central moments (n, 12), each rooted to be a length."""
    mass = np.maximum(images.sum(axis=(1, 2), dtype=np.float64), 1e-6)
    line = np.arange(images.shape[1]) + 0.5
    centre = np.stack([images.sum(axis=1) @ line / mass, images.sum(axis=2) @ line / mass], axis=1)
    dx, dy = line - centre[:, :1], line - centre[:, 1:]
    powers = [np.einsum("nyx,nx,ny->n", images, dx**a, dy**b) / mass for a, b in _ORDERS]
    lengths = [np.sign(m) * np.abs(m) ** (1 / (a + b)) for m, (a, b) in zip(powers, _ORDERS, strict=True)]
    return np.sqrt(mass), centre, np.stack(lengths, axis=1)


def _log_sum(logs: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    top = logs.max(axis=axes, keepdims=True)
    return np.log(np.exp(logs - top).sum(axis=axes)) + top.reshape(top.shape[0], -1)
