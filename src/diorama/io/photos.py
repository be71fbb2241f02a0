"""Photos: reads them, crops them to squares, finds labelled ones in a folder and splits them for training.

photos/cat/0.jpg   photos/dog/0.jpg        a sub-folder is a class
photos/cat.0.jpg   photos/dog.0.jpg        without sub-folders the class is the name up to the first dot (Kaggle)
"""

from functools import lru_cache
from pathlib import Path

import numpy as np

from diorama.core.errors import Excluded, InputError
from diorama.core.scene import rng
from diorama.io.images import read_rgb

ENDINGS = (".png", ".jpg", ".jpeg")
Photos = dict[str, list[Path]]


def labelled(folder: Path) -> Photos:
    """The photos of every class, classes and files in alphabetical order."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}; give a folder of class folders with photos")
    files = pictures(folder, "*/*") or pictures(folder, "*.*.*")
    if not files:
        raise InputError(f"{folder} holds no photos in class folders ({', '.join(ENDINGS)})")
    found: Photos = {}
    for path in files:
        name = path.name.partition(".")[0] if path.parent == folder else path.parent.name
        found.setdefault(name, []).append(path)
    return dict(sorted(found.items()))


def pictures(folder: Path, below: str = "**/*") -> list[Path]:
    """The photos in a folder and its sub-folders, or those of another pattern, in the order of their paths."""
    return sorted(path for path in folder.glob(below) if path.suffix.lower() in ENDINGS and path.is_file())


def split(folder: Path, train: int, seed: int) -> tuple[Photos, Photos]:
    """`train` photos of every class, and all others. The order of drawing depends on seed, class and file name alone: a
    larger `train` only adds photos, and the split is the same on every machine."""
    if train < 0:
        raise InputError(f"train={train}: give the number of training photos of every class")
    learnt: Photos = {}
    held_out: Photos = {}
    for name, files in labelled(folder).items():
        if len(files) <= train:
            raise InputError(f"class {name!r} of {folder} has {len(files)} photos: train={train} leaves none held out")
        drawn = sorted(files, key=lambda path: rng(seed, "photo split", name, path.name).random())
        learnt[name], held_out[name] = sorted(drawn[:train]), sorted(drawn[train:])
    return learnt, held_out


def read_photo(path: Path) -> np.ndarray:
    """A JPEG or PNG as (h, w, 3) uint8, without EXIF rotation. Raises Excluded, with its name, if it is damaged."""
    try:
        return read_rgb(path)
    except InputError as error:
        raise Excluded(f"{path.name} cannot be used: {error}") from error


def fitted(image: np.ndarray, size: int, crop: bool) -> np.ndarray:
    """(h, w, 3) uint8 → (size, size, 3): with `crop` the centre after resizing to 8/7 of `size`, else the whole image."""
    side = round(size * 256 / 224) if crop else size
    resized = image if image.shape[:2] == (side, side) else _resize(image, side)
    start = (side - size) // 2
    return resized[start : start + size, start : start + size]


def _resize(image: np.ndarray, side: int) -> np.ndarray:
    """Resize to a square; each pixel is a weighted mean of those it covers."""
    rows, columns = _triangle_weights(image.shape[0], side), _triangle_weights(image.shape[1], side)
    across = np.einsum("hwc,xw->hxc", image.astype(np.float32), columns, optimize=True)
    return np.rint(np.clip(np.einsum("hxc,yh->yxc", across, rows, optimize=True), 0, 255)).astype(np.uint8)


@lru_cache(maxsize=256)
def _triangle_weights(old: int, new: int) -> np.ndarray:
    """(new, old) weights of a triangle filter, as wide as a new pixel where the image shrinks; rows sum to one."""
    scale = max(old / new, 1.0)
    centres = (np.arange(new) + 0.5) * old / new
    weights = np.maximum(1 - np.abs(np.arange(old) + 0.5 - centres[:, None]) / scale, 0)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
