"""A frame: the image of a scene, and the truth that was staged or measured."""

from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

import numpy as np

from diorama.core.errors import InputError
from diorama.core.scene import Scene, sealed

Encoding = Literal["linear", "srgb"]

#: Every name that may appear in `Frame.truth`.
TRUTH = (
    "label parts mask depth normal reflectance shading specular factors boxes cells lights".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """An image (h, w, 3) float32 with its encoding and its truth.

    `reflectance`, `shading` and `specular` are (h, w, 1) or (h, w, 3), `mask` is (h, w) bool. Staged worlds satisfy
    image = reflectance·shading + specular in linear light exactly; recorded ones up to one global scale and a residual.
    Frames are cached and shared: arrays, dictionaries and lists in them are read-only.
    """

    scene: Scene
    image: np.ndarray
    encoding: Encoding
    truth: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape[2] != 3 or self.image.dtype != np.float32:
            raise InputError(f"a frame's image is (h, w, 3) float32, not {self.image.shape} {self.image.dtype}")
        unknown = sorted(set(self.truth) - set(TRUTH))
        if unknown:
            raise InputError(f"unknown truth {unknown[0]!r}; the vocabulary is {', '.join(TRUTH)}")
        object.__setattr__(self, "image", _read_only(self.image))
        object.__setattr__(self, "truth", _read_only(self.truth))

    def blind(self) -> "Frame":
        """What a method gets of the frame: the image, the mask, and a scene without parameters (`sealed`).

        The mask is part of the question: released algorithms for photographs of objects take it.
        """
        shown = {"mask": self.truth["mask"]} if self.truth.get("mask") is not None else {}
        return Frame(sealed(self.scene), self.image, self.encoding, shown)

    @property
    def mask(self) -> np.ndarray:
        """Which pixels count: the truth's mask, or all of them."""
        mask = self.truth.get("mask")
        return np.ones(self.image.shape[:2], bool) if mask is None else np.asarray(mask)

    def linear(self) -> np.ndarray:
        """The image in linear light."""
        return self.image if self.encoding == "linear" else srgb_to_linear(self.image)

    def srgb(self) -> np.ndarray:
        """The image as a screen shows it."""
        return self.image if self.encoding == "srgb" else linear_to_srgb(self.image)


class _ReadOnlyDict(dict[Any, Any]):
    """A read-only dictionary."""

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        raise TypeError("a frame's truth cannot be written to: copy it first")

    def __reduce_ex__(self, version: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)  # copies are plain dictionaries, which can be changed

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse


class _ReadOnlyList(list[Any]):
    """A read-only list."""

    def __reduce_ex__(self, version: Any) -> tuple[Any, ...]:
        return list, (list(self),)

    _refuse = _ReadOnlyDict._refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = extend = insert = _refuse
    pop = remove = clear = sort = reverse = _refuse


def _read_only(value: Any) -> Any:
    """A read-only view of arrays, dictionaries and lists."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(value, _ReadOnlyDict | _ReadOnlyList):
        return value
    if isinstance(value, dict):
        return _ReadOnlyDict({name: _read_only(held) for name, held in value.items()})
    if isinstance(value, list):
        return _ReadOnlyList(map(_read_only, value))
    return tuple(map(_read_only, value)) if type(value) is tuple else value


def srgb_to_linear(x: np.ndarray) -> np.ndarray:
    """IEC 61966-2-1: x/12.92 below 0.04045, ((x + 0.055)/1.055)^2.4 above.

    >>> [round(float(v), 4) for v in srgb_to_linear(np.array([0.0, 0.5, 1.0]))]
    [0.0, 0.214, 1.0]
    """
    x = np.asarray(x)
    return np.where(x <= 0.04045, x / 12.92, ((np.maximum(x, 0) + 0.055) / 1.055) ** 2.4).astype(x.dtype)


def linear_to_srgb(x: np.ndarray) -> np.ndarray:
    """The inverse of `srgb_to_linear`, clipped to [0, 1].

    >>> [round(float(v), 4) for v in linear_to_srgb(np.array([0.0, 0.214, 2.0]))]
    [0.0, 0.5, 1.0]
    """
    x = np.clip(np.asarray(x), 0, 1)
    return np.where(x <= 0.0031308, x * 12.92, 1.055 * x ** (1 / 2.4) - 0.055).astype(x.dtype)


def channel_mean(image: np.ndarray) -> np.ndarray:
    """The mean over the last axis of an (h, w, 1 or 3) image, float64.

    >>> channel_mean(np.array([[[1.0, 2.0, 6.0]]]))
    array([[3.]])
    """
    if image.shape[-1] == 1:
        return image[..., 0].astype(np.float64)
    return (image[..., 0].astype(np.float64) + image[..., 1] + image[..., 2]) / 3


def residual(frame: Frame) -> float:
    """How far layers are from explaining the image: min over k of ‖I − C − k·R·S‖ / ‖I‖ on the mask.

    Zero for the truth of staged worlds; that of measured ones (MIT Intrinsic Images: 2 to 8 %) carries the error of the
    capture. Gray layers are held against the gray image.
    """
    index, truth = np.flatnonzero(frame.mask), frame.truth
    product = _masked_pixels(truth["reflectance"], index) * _masked_pixels(truth["shading"], index)
    image = _masked_pixels(frame.linear(), index)
    if product.shape[1] == 1:
        image = channel_mean(image)[:, None]
    target = image if truth.get("specular") is None else image - _masked_pixels(truth["specular"], index)
    scale = np.vdot(product, target) / np.maximum(np.vdot(product, product), 1e-300)
    return float(np.linalg.norm(target - scale * product) / np.maximum(np.linalg.norm(image), 1e-300))


def _masked_pixels(layer: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The masked pixels of an (h, w, c) layer as (n, c); by index, which is several times faster than by mask."""
    return layer.reshape(-1, layer.shape[2]).take(index, axis=0).astype(np.float64)
