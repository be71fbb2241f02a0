"""Answers: the types of what methods return about a frame, each with a check of its shape and values.

A new kind of answer is one class, here or elsewhere, and one conversion for each family of protocols that accepts it
(`part_importance` and `important_parts` for parts, `evidence_map` for mosaics), registered by its type.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.core.errors import AnswerError


class Answer(ABC):
    """What a method says about one frame."""

    __slots__ = ()

    #: Written beside every value that is scored from the answer, e.g. how exact a sampled map is.
    note: str = ""

    @abstractmethod
    def check(self, size: tuple[int, int]) -> None:
        """Called by the bench: raise AnswerError unless the answer is finite and fits a frame of `size` (h, w)."""


@dataclass(frozen=True, slots=True, eq=False)
class Heatmap(Answer):
    """An attribution map (h, w) or (h, w, c); `signed` says whether negative values mean negative evidence."""

    values: np.ndarray
    signed: bool
    note: str = ""

    def check(self, size: tuple[int, int]) -> None:
        """One, three or six channels."""
        check_array("heat map", self.values, [size, (*size, 1), (*size, 3), (*size, 6)])


@dataclass(frozen=True, slots=True, eq=False)
class Mask(Answer):
    """A binary map (h, w): the pixels that the method calls important."""

    values: np.ndarray

    def check(self, size: tuple[int, int]) -> None:
        """One value for each pixel."""
        check_array("mask", self.values, [size])


@dataclass(frozen=True, slots=True, eq=False)
class Boxes(Answer):
    """Boxes (n, 4) as x0, y0, x1, y1 with the far edge excluded, and one weight each.

    `examples` are pictures (n, h, w, 3) of the prototype that each box resembles, for reports; None: unknown.
    """

    corners: np.ndarray
    weights: np.ndarray
    examples: np.ndarray | None = None

    def check(self, size: tuple[int, int]) -> None:
        """As many weights, and examples if there are any, as boxes."""
        n = len(self.corners)
        check_array("box corners", self.corners, [(n, 4)])
        check_array("box weights", self.weights, [(n,)])
        if self.examples is not None and (self.examples.ndim != 4 or len(self.examples) != n):
            raise AnswerError(f"examples of boxes have shape {self.examples.shape}, expected ({n}, h, w, 3)")


@dataclass(frozen=True, slots=True, eq=False)
class Similarity(Answer):
    """A map (h, w) of similarity to prototypes, and the boxes (n, 4) around the most similar places."""

    values: np.ndarray
    corners: np.ndarray

    def check(self, size: tuple[int, int]) -> None:
        """One value for each pixel."""
        check_array("similarity map", self.values, [size])
        check_array("box corners", self.corners, [(len(self.corners), 4)])


@dataclass(frozen=True, slots=True, eq=False)
class PartScores(Answer):
    """How important each part of an object is, (parts,), in the world's order."""

    values: np.ndarray

    def check(self, size: tuple[int, int]) -> None:
        """One row of numbers."""
        check_array("part scores", self.values, [(int(np.size(self.values)),)])


@dataclass(frozen=True, slots=True, eq=False)
class Layers(Answer):
    """An intrinsic decomposition in linear light: reflectance, shading and optional specular, each (h, w, 1 or 3)."""

    reflectance: np.ndarray
    shading: np.ndarray
    specular: np.ndarray | None = None

    def check(self, size: tuple[int, int]) -> None:
        """Layers of the frame's size."""
        named = {"reflectance": self.reflectance, "shading": self.shading, "specular": self.specular}
        for name, layer in named.items():
            if layer is not None:
                check_array(name, layer, [(*size, 1), (*size, 3)])


@dataclass(frozen=True, slots=True, eq=False)
class Code(Answer):
    """A representation (m,) of one frame, or (n, m) of a draw of frames."""

    z: np.ndarray

    def check(self, size: tuple[int, int]) -> None:
        """One row of numbers."""
        check_array("code", self.z, [(int(np.size(self.z)),)])


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity(Answer):
    """Directional derivatives along a concept vector, one per test image."""

    values: np.ndarray

    def check(self, size: tuple[int, int]) -> None:
        """One row of numbers."""
        check_array("sensitivities", self.values, [(int(np.size(self.values)),)])


def as_array(found: Any) -> np.ndarray:
    """A numpy array from one, a list, or a torch tensor on any device."""
    return found.detach().cpu().numpy() if hasattr(found, "detach") else np.asarray(found)


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


def check_answer(answer: Any, size: tuple[int, int]) -> None:
    """Raise AnswerError unless something is an answer that fits a frame of `size` (h, w)."""
    if not isinstance(answer, Answer):
        raise AnswerError(f"the method returned {type(answer).__name__}, not an answer (Heatmap, Layers, Code …)")
    answer.check(size)
