"""Answers: what a method says about a frame, and the check that it said it properly."""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from diorama.core.errors import AnswerError


@dataclass(frozen=True, slots=True, eq=False)
class Heatmap:
    """An attribution map (h, w) or (h, w, c); `signed` says whether negative values mean negative evidence.

    A `note` is kept beside every value that is scored from the map, e.g. how exact a sampled map is.
    """

    values: np.ndarray
    signed: bool
    note: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """A binary map (h, w): the pixels that the method calls important."""

    values: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Boxes (n, 4) as x0, y0, x1, y1 with the far edge excluded, and one weight each."""

    corners: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """An intrinsic decomposition in linear light: reflectance, shading and optional specular, each (h, w, 1 or 3)."""

    reflectance: np.ndarray
    shading: np.ndarray
    specular: np.ndarray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """A representation (m,) of one frame, or (n, m) of a draw of frames."""

    z: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """Directional derivatives along a concept vector, one per test image."""

    values: np.ndarray


Answer = Heatmap | Mask | Boxes | Layers | Code | Sensitivity


def check_array(name: str, array: Any, shapes: list[tuple[int, ...]]) -> None:
    """Raise AnswerError unless `array` is a finite numeric array of one of the shapes."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        kind = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else type(array).__name__
        raise AnswerError(f"{name} is {kind}, not a numeric numpy array")
    if shapes and array.shape not in shapes:
        raise AnswerError(f"{name} has shape {array.shape}, expected {' or '.join(map(str, shapes))}")
    bad = array.size - int(np.isfinite(array).sum())
    if bad:
        raise AnswerError(f"{name} has {bad} of {array.size} values that are NaN or infinite")


@singledispatch
def check_answer(answer: Any, size: tuple[int, int]) -> None:
    """Raise AnswerError unless the answer is finite and fits a frame of `size` (h, w)."""
    raise AnswerError(f"the method returned {type(answer).__name__}, not an answer (Heatmap, Layers, Code …)")


@check_answer.register
def _(answer: Heatmap, size: tuple[int, int]) -> None:
    check_array("heat map", answer.values, [size, (*size, 1), (*size, 3), (*size, 6)])


@check_answer.register
def _(answer: Mask, size: tuple[int, int]) -> None:
    check_array("mask", answer.values, [size])


@check_answer.register
def _(answer: Boxes, size: tuple[int, int]) -> None:
    n = len(answer.corners)
    check_array("box corners", answer.corners, [(n, 4)])
    check_array("box weights", answer.weights, [(n,)])


@check_answer.register
def _(answer: Layers, size: tuple[int, int]) -> None:
    for name in ("reflectance", "shading", "specular"):
        layer = getattr(answer, name)
        if layer is not None:
            check_array(name, layer, [(*size, 1), (*size, 3)])


@check_answer.register
def _(answer: Code, size: tuple[int, int]) -> None:
    check_array("code", answer.z, [(int(np.size(answer.z)),)])


@check_answer.register
def _(answer: Sensitivity, size: tuple[int, int]) -> None:
    check_array("sensitivities", answer.values, [(int(np.size(answer.values)),)])
