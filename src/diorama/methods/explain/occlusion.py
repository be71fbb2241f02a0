"""Occlusion: how much the target's logit drops when a window of the image is hidden."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.core.answers import Answer, Heatmap
from diorama.core.errors import InputError
from diorama.methods.explain.passes import OncePerImage, Output, all_outputs, backend_of


@dataclass(frozen=True, slots=True)
class Occlusion(OncePerImage):
    """f(x) − f(x with a window hidden), averaged over the windows that cover a pixel; signed, (h, w).

    window    side of the hidden square in pixels; 16 as Rao et al. 2022
    stride    pixels by which it moves; 8 as Rao et al. 2022; the last windows are cut off at the edge
    baseline  gray of the hidden square, 0 (black) to 1
    output    f: the target's logit or its probability
    """

    cite = ("zeiler2014", "rao2022")

    window: int = 16
    stride: int = 8
    baseline: float = 0.0
    output: Output = "logit"

    def __post_init__(self) -> None:
        if not 1 <= self.stride <= self.window:
            raise InputError(f"occlusion: window={self.window}, stride={self.stride}: 1 ≤ stride ≤ window is needed")

    def explain_targets(self, model: Any, image: np.ndarray, targets: Sequence[int]) -> list[Answer]:
        """Heat maps (h, w) of one image (h, w, 3) for several targets, from one set of passes."""
        backend, windows = backend_of(model), self._windows(image.shape[0], image.shape[1])
        (original,) = backend.put(image)

        def altered(piece: range) -> Any:
            copies = backend.copies(original, len(piece))
            for copy, k in zip(copies, piece, strict=True):
                copy[windows[k]] = self.baseline
            return copies

        whole = backend.outputs(original[None], self.output)
        outputs = backend.join([whole, all_outputs(backend, image.shape, len(windows), altered, self.output)])
        of_targets = backend.get(outputs[:, list(targets)])[0]
        drops = of_targets[:1] - of_targets[1:]
        return [Heatmap(_spread(windows, drop, image.shape[:2]), signed=True) for drop in drops.T]

    def _windows(self, height: int, width: int) -> list[tuple[slice, slice]]:
        down, right = (range(0, max(n - self.window, 0) + self.stride, self.stride) for n in (height, width))
        return [(slice(y, y + self.window), slice(x, x + self.window)) for y in down for x in right]


def _spread(windows: list[tuple[slice, slice]], drops: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    """The mean drop over the windows that cover a pixel."""
    total, count = np.zeros(size), np.zeros(size)
    for window, drop in zip(windows, drops, strict=True):
        total[window] += drop
        count[window] += 1
    return (total / count).astype(np.float32)
