"""What every public metric gives: a number, its interval, and how many things it was measured on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diorama.metrics.intervals import interval, wilson


@dataclass(frozen=True, slots=True)
class Measurement:
    """A number with its 95 % interval.

    `interval` is None where there is none: fewer than three things were measured, or the metric's docstring says why not.
    `n` is how many things the number is of; `each` are the single values, where `value` is their mean; `values` are
    related numbers by name, the first is the number itself; `matrix` is what a score of codes was read from (latents,
    factors). A number that does not exist is NaN, and `reason` says why.

    >>> Measurement("lmse", 0.03125, (0.02, 0.04), 12)
    lmse 0.0312 [0.0200, 0.0400], n = 12
    """

    name: str
    value: float
    interval: tuple[float, float] | None
    n: int
    values: dict[str, float] = field(default_factory=dict)
    each: np.ndarray | None = None
    matrix: np.ndarray | None = None
    reason: str = ""

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        ends = f" [{_short(self.interval[0])}, {_short(self.interval[1])}]" if self.interval else ""
        more = {k: v for k, v in self.values.items() if k != self.name}
        rest = "; " + ", ".join(f"{k} {_short(v)}" for k, v in more.items()) if more else ""
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.name} {_short(self.value)}{ends}, n = {self.n}{why}{rest}"


def _short(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.6g}"


def mean_of(name: str, each: Any, bounds: tuple[float | None, float | None] = (0.0, 1.0), why: str = "") -> Measurement:
    """The mean over things that have a value, with the bootstrap-t interval of all tables; NaN are left out."""
    values = np.asarray(each, np.float64)
    known = values[~np.isnan(values)]
    if not len(known):
        return Measurement(name, float("nan"), None, 0, each=values, reason=why or "nothing has a value")
    ends = interval(known).within(*bounds)
    both = None if ends.lo is None or ends.hi is None else (ends.lo, ends.hi)
    return Measurement(name, float(known.mean()), both, len(known), each=values)


def share_of(name: str, right: Any) -> Measurement:
    """The share of things that are true, with Wilson's interval."""
    flags = np.asarray(right, bool)
    if not len(flags):
        return Measurement(name, float("nan"), None, 0, reason="there is nothing to count")
    return Measurement(
        name, float(flags.mean()), wilson(int(flags.sum()), len(flags)), len(flags), each=flags.astype(float)
    )


def resampled(
    name: str, statistic: Callable[[np.ndarray], float], n: int, seed: int, resamples: int, values: dict[str, float]
) -> Measurement:
    """A statistic of the indices of n things; the interval is ± 1.96 standard errors over bootstrap resamples."""
    value = statistic(np.arange(n))
    generator = np.random.default_rng(seed)
    draws = np.array([statistic(generator.integers(0, n, n)) for _ in range(resamples if n > 2 else 0)])
    known = draws[~np.isnan(draws)]
    error = 1.96 * float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    ends = None if np.isnan(error) or np.isnan(value) else (value - error, value + error)
    return Measurement(name, value, ends, n, values)


def images_of(given: Any, name: str) -> list[np.ndarray]:
    """One image (h, w) or (h, w, 1 or 3), a stack of them, or a list, as a list of (h, w, channels)."""
    if isinstance(given, Sequence):
        return [image for one in given for image in images_of(one, name)]
    array = np.asarray(given)
    if array.ndim == 3 and array.shape[2] not in (1, 3):
        array = array[..., None]
    if array.ndim == 2:
        array = array[..., None]
    if array.ndim not in (3, 4):
        raise ValueError(f"{name} has shape {array.shape}: give (h, w), (h, w, channels), a stack or a list of images")
    return [array] if array.ndim == 3 else list(array)


def masks_of(given: Any, images: list[np.ndarray], name: str = "mask") -> list[np.ndarray]:
    """A mask for every image: (h, w) for all, a stack, a list; None is every pixel."""
    if given is None:
        return [np.ones(image.shape[:2], bool) for image in images]
    if isinstance(given, Sequence):
        masks = [np.asarray(mask, bool) for mask in given]
    else:
        array = np.asarray(given, bool)
        masks = [array] * len(images) if array.ndim == 2 else list(array)
    if [m.shape for m in masks] != [i.shape[:2] for i in images]:
        raise ValueError(f"{name} does not fit the images: give (h, w) booleans for each")
    return masks


def paired_images(truth: Any, estimate: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images of truth and estimate side by side."""
    left, right = images_of(truth, "truth"), images_of(estimate, "estimate")
    if len(left) != len(right):
        raise ValueError(f"truth has {len(left)} images, estimate {len(right)}: give as many of both")
    for a, b in zip(left, right, strict=True):
        if a.shape[:2] != b.shape[:2]:
            raise ValueError(f"truth is {a.shape[1]}×{a.shape[0]}, estimate {b.shape[1]}×{b.shape[0]}: give one size")
    return list(zip(left, right, strict=True))
