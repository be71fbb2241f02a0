"""Paint for tabletop objects, in linear reflectance: a flat colour, a procedural pattern, or an image of a folder."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.core.frame import srgb_to_linear
from diorama.core.scene import canonical, rng

#: sRGB colours of the studio's paint pots.
POTS = "d1495b edae49 66a182 2e6f95 8d5a97 f28f3b c8553d 588b8b 9bc53d 5b85aa e8c1c5 f4d35e 3f7d6e b56576".split()  # noqa: SIM905
PATTERNS = ("stripes", "checks", "dots", "patches")
IMAGES = (".jpg", ".jpeg", ".png")
_SIDE = 256  # texels of a pattern; the larger side of an image
_DARKEST, _LIGHTEST = 0.03, 0.88  # the range of real paint, which leaves room for highlights


def pot(index: int) -> list[float]:
    """The linear reflectance of a paint pot.

    >>> pot(1)
    [0.846873, 0.423268, 0.066626]
    """
    values = np.frombuffer(bytes.fromhex(POTS[index]), np.uint8) / 255
    return srgb_to_linear(values).round(6).clip(_DARKEST, _LIGHTEST).tolist()


def draw_colour(generator: np.random.Generator) -> list[float]:
    """A paint pot, a little lighter or darker."""
    colour = np.array(pot(int(generator.integers(len(POTS)))))
    return (colour * generator.uniform(0.8, 1.1)).clip(_DARKEST, _LIGHTEST).round(6).tolist()


def draw_pattern(generator: np.random.Generator) -> dict[str, Any]:
    """A pattern of two or three pots."""
    chosen = generator.choice(len(POTS), 3, replace=False).tolist()
    return {
        "pattern": PATTERNS[int(generator.integers(len(PATTERNS)))],
        "colours": [pot(i) for i in chosen],
        "count": int(generator.integers(4, 9)),
        "seed": int(generator.integers(2**31)),
    }


def image_names(folder: str) -> tuple[str, ...]:
    """The images under a folder, by their path in it."""
    root = Path(folder).expanduser()
    names = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.suffix.lower() in IMAGES)
    if not names:
        raise InputError(f"textures={folder!r} holds no image; put PNG or JPEG files there")
    return tuple(names)


def texture_of(paint: dict[str, Any], folder: str | None) -> np.ndarray:
    """The (h, w, 3) linear texture of a pattern or an image."""
    return _cached(canonical(paint), folder)


@lru_cache(maxsize=64)
def _cached(text: str, folder: str | None) -> np.ndarray:
    import json

    paint = json.loads(text)
    return _image(paint["image"], folder) if "image" in paint else _pattern(paint)


def _image(name: str, folder: str | None) -> np.ndarray:
    from diorama.io.images import read_rgb, resize

    if folder is None:
        raise InputError(f"texture {name!r} needs its folder; give textures=… to the tabletop")
    stored = read_rgb(Path(folder).expanduser() / name)
    scale = min(1.0, _SIDE / max(stored.shape[:2]))
    small = resize(stored, max(1, round(stored.shape[1] * scale)), max(1, round(stored.shape[0] * scale)))
    return srgb_to_linear(small.astype(np.float32) / 255).clip(_DARKEST, _LIGHTEST)


def _pattern(paint: dict[str, Any]) -> np.ndarray:
    y, x = (np.mgrid[:_SIDE, :_SIDE] + 0.5) / _SIDE
    n, colours = paint["count"], np.array(paint["colours"], np.float32)
    if paint["pattern"] == "patches":
        index = _patches(x, y, 6 * n, paint["seed"]) % len(colours)
    elif paint["pattern"] == "dots":
        index = (np.hypot((2 * n * x) % 1 - 0.5, (n * y) % 1 - 0.5) < 0.3).astype(int)
    elif paint["pattern"] == "checks":
        index = (np.floor(2 * n * x) + np.floor(n * y)).astype(int) % 2
    else:
        index = np.floor(n * y * 1.5).astype(int) % len(colours)
    return colours[index]


def _patches(x: np.ndarray, y: np.ndarray, count: int, seed: int) -> np.ndarray:
    """The index of the nearest random site, on a sheet whose left and right edges are joined."""
    sites = rng(seed, "patches").random((count, 2))
    across = np.abs(x[..., None] - sites[:, 0])
    return (np.minimum(across, 1 - across) ** 2 + (y[..., None] - sites[:, 1]) ** 2).argmin(axis=2)
