"""Answers that were computed elsewhere, given as arrays: maps, codes or layers, by case."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from diorama.core.answers import Answer, Code, Heatmap, Layers, as_array
from diorama.core.contracts import Method, Saved
from diorama.core.errors import InputError
from diorama.core.frame import Frame

#: The keys that distinguish a dictionary of layers from one of cases.
_LAYERS = ("reflectance", "shading")


def is_array(given: Any) -> bool:
    """Whether something is an answer, an array of numpy, a tensor of torch, or a list or dictionary of them."""
    if isinstance(given, Answer) or type(given).__module__.split(".")[0] in ("numpy", "torch"):
        return isinstance(given, Answer | np.ndarray) or type(given).__name__ == "Tensor"
    if isinstance(given, Mapping):
        return len(given) > 0 and all(map(is_array, given.values()))
    return isinstance(given, list | tuple) and len(given) > 0 and all(map(is_array, given))


class Arrays(Saved):
    """One answer for each case: rows of an array in the order of the cases, or a dictionary by the names of cases.

    Maps are (cases, h, w) or (cases, h, w, c), codes (frames, latents), layers a dictionary of `reflectance` and
    `shading`, each (cases, h, w, 1 or 3). Maps for several classes of a case are named by (case, class).
    """

    def __init__(self, given: Any, names: Sequence[str]):
        self.rows = _by_case(given, names)
        self.targeted = any(isinstance(key, tuple) for key in self.rows)

    def for_track(self, track: str) -> Method:
        """The arrays as answers of a track."""
        if track not in _READ:
            raise InputError(f"arrays cannot be judged by protocols of the {track} track: give an object with solve")
        made = copy.copy(self)
        made.track = track
        return made

    def load(self, case: str, frame: Frame, target: int | None) -> Answer:
        """The array given for a case and class, as an answer of the track."""
        found = self.rows.get((case, target), self.rows.get(case))
        if found is None:
            raise InputError(f"there is no answer for case {case!r}: {len(self.rows)} were given")
        return found if isinstance(found, Answer) else _READ[self.track](found, frame)


def _map(found: Any, frame: Frame) -> Heatmap:
    values = as_array(found)
    if values.ndim == 3 and values.shape[0] in (1, 3) and values.shape[1:] == frame.image.shape[:2]:
        values = values.transpose(1, 2, 0)  # torch and captum have the channels first
    return Heatmap(values, signed=bool((values < 0).any()))


def as_layers(given: Any) -> Layers:
    """Layers from `Layers`, from a dictionary of arrays, or from (reflectance, shading)."""
    if isinstance(given, Layers):
        return given
    pair = [given[name] for name in _LAYERS] if isinstance(given, Mapping) else list(given)
    if len(pair) != 2:
        raise InputError(f"a decomposition is (reflectance, shading), not {len(pair)} arrays")
    layers = [as_array(layer) for layer in pair]
    return Layers(*(layer[:, :, None] if layer.ndim == 2 else layer for layer in layers))


#: The functions that convert an array to an answer, by track.
_READ: dict[str, Callable[[Any, Frame], Answer]] = {
    "explain": _map,
    "decompose": lambda found, frame: as_layers(found),
    "represent": lambda found, frame: Code(as_array(found).astype(np.float64)),
}


def _by_case(given: Any, names: Sequence[str]) -> dict[Any, Any]:
    if isinstance(given, Mapping) and set(given) <= set(_LAYERS):
        missing = [name for name in _LAYERS if name not in given]
        if missing:
            raise InputError(f"the saved layers lack {missing[0]}: give reflectance and shading")
        return dict(zip(names, ({k: v[i] for k, v in given.items()} for i in range(len(names))), strict=True))
    if isinstance(given, Mapping):
        return dict(given)
    return dict(zip(names, given, strict=True))
