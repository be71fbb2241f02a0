"""Colour: sRGB to linear light and back, bytes, and the tint of a black body."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray


def to_linear(encoded: ArrayLike) -> NDArray[np.floating]:
    """sRGB values 0..1 to linear light (IEC 61966-2-1).

    >>> float(to_linear(0.5).round(4))
    0.214
    """
    v = _floats(encoded)
    return np.where(v <= 0.04045, v / 12.92, ((np.maximum(v, 0) + 0.055) / 1.055) ** 2.4).astype(v.dtype)


def to_srgb(linear: ArrayLike) -> NDArray[np.floating]:
    """Linear light to sRGB values, without clipping above 1 (IEC 61966-2-1).

    >>> float(to_srgb(0.214).round(3))
    0.5
    """
    v = _floats(linear)
    return np.where(v <= 0.0031308, 12.92 * v, 1.055 * np.maximum(v, 0) ** (1 / 2.4) - 0.055).astype(v.dtype)


def to_bytes(linear: ArrayLike) -> NDArray[np.uint8]:
    """Linear light to sRGB bytes: clip, encode, round to nearest.

    >>> to_bytes([0.0, 0x88 / 255, 2.0]).tolist()
    [0, 193, 255]
    """
    return (to_srgb(np.clip(linear, 0, 1)) * 255 + 0.5).astype(np.uint8)


@cache
def byte_table() -> tuple[NDArray[np.floating], NDArray[np.uint8]]:
    """For kernels: the linear value at which each byte begins, and the byte at the left end of each of 4096 bins."""
    begins = to_linear((np.arange(257) - 0.5) / 255)
    begins[0], begins[256] = -np.inf, np.inf
    return begins, (np.searchsorted(begins, np.arange(4097) / 4096, "right") - 1).clip(0, 255).astype(np.uint8)


def black_body(kelvin: float) -> NDArray[np.float64]:
    """Linear sRGB of a black body, luminance 1, negative channels clipped to 0.

    Planck's law through the CIE 1931 observer in the multi-lobe fit of Wyman, Sloan and Shirley (JCGT 2013).

    >>> black_body(6500).round(2).tolist()
    [1.04, 0.98, 1.03]
    """
    nm = np.arange(380.0, 781.0, 5.0)
    power = nm**-5.0 / np.expm1(1.438777e7 / (nm * kelvin))
    x = (
        1.056 * _lobe(nm, 599.8, 37.9, 31.0)
        + 0.362 * _lobe(nm, 442.0, 16.0, 26.7)
        - 0.065 * _lobe(nm, 501.1, 20.4, 26.2)
    )
    y = 0.821 * _lobe(nm, 568.8, 46.9, 40.5) + 0.286 * _lobe(nm, 530.9, 16.3, 31.1)
    z = 1.217 * _lobe(nm, 437.0, 11.8, 36.0) + 0.681 * _lobe(nm, 459.0, 26.0, 13.8)
    xyz = np.array([power @ x, power @ y, power @ z]) / (power @ y)
    return np.clip(_XYZ_TO_SRGB @ xyz, 0, None)


_XYZ_TO_SRGB = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])


def _lobe(x: NDArray[np.float64], mean: float, left: float, right: float) -> NDArray[np.float64]:
    return np.exp(-0.5 * ((x - mean) / np.where(x < mean, left, right)) ** 2)


def _floats(values: ArrayLike) -> NDArray[np.floating]:
    array = np.asarray(values)
    return array if np.issubdtype(array.dtype, np.floating) else array.astype(float)
