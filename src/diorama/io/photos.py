"""Labelled photos in a folder, and the one split into photos to learn from and photos held out.

photos/cat/0.jpg   photos/dog/0.jpg        a sub-folder is a class
photos/cat.0.jpg   photos/dog.0.jpg        without sub-folders the class is what stands before the first dot (Kaggle)
"""

from pathlib import Path

from diorama.core.errors import InputError
from diorama.core.scene import rng

ENDINGS = (".png", ".jpg", ".jpeg")
Photos = dict[str, list[Path]]


def labelled(folder: Path) -> Photos:
    """The photos of every class, classes and files in alphabetical order."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}; give a folder of class folders with photos")
    files = sorted(p for p in folder.glob("*/*") if _is_photo(p)) or sorted(
        p for p in folder.glob("*.*.*") if _is_photo(p)
    )
    if not files:
        raise InputError(f"{folder} holds no photos in class folders ({', '.join(ENDINGS)})")
    found: Photos = {}
    for path in files:
        found.setdefault(_class(path, folder), []).append(path)
    return dict(sorted(found.items()))


def _is_photo(path: Path) -> bool:
    return path.suffix.lower() in ENDINGS and path.is_file()


def _class(path: Path, folder: Path) -> str:
    return path.name.partition(".")[0] if path.parent == folder else path.parent.name


def split(folder: Path, train: int, seed: int) -> tuple[Photos, Photos]:
    """`train` photos of every class, and all others. A photo's place depends on seed, class and file name alone:
    more training photos only add to fewer, and the split is the same on every machine."""
    if train < 0:
        raise InputError(f"train={train}: give how many photos of every class are learnt from")
    learnt: Photos = {}
    held_out: Photos = {}
    for name, files in labelled(folder).items():
        if len(files) <= train:
            raise InputError(f"class {name!r} of {folder} has {len(files)} photos: train={train} leaves none held out")
        drawn = sorted(files, key=lambda path: rng(seed, "photo split", name, path.name).random())
        learnt[name], held_out[name] = sorted(drawn[:train]), sorted(drawn[train:])
    return learnt, held_out
