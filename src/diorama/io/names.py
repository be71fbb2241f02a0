"""File names from names in data: the name of a case, an image or a table never leads out of its folder."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from diorama.core.errors import InputError

#: Characters that stay unchanged in a file name, besides letters and digits.
_PLAIN = " _-.,@()+=#"
#: The most bytes of one file name (file systems take 255, and endings are added), and the most folders of a name.
_LONGEST, _DEEPEST = 180, 6


def readable(text: object) -> str:
    """A text that can be encoded: lone surrogates are written as escapes.

    >>> readable("caf\\udce9")
    'caf\\\\udce9'
    """
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def case_path(base: Path, key: str, ending: str = "") -> Path:
    """The file of a case key below a folder; two keys never share one.

    >>> case_path(Path("keep"), "set/003", ".npz").as_posix(), case_path(Path("keep"), "../x", ".npz").as_posix()
    ('keep/set/003.npz', 'keep/%2E%2E/x.npz')
    """
    parts = readable(key).split("/")
    names = [_safe(part) for part in parts] if len(parts) <= _DEEPEST else [_safe(readable(key))]
    return base.joinpath(*names[:-1], names[-1] + ending)


def _safe(part: str) -> str:
    """One part as a file name: special characters percent-encoded, a long name cut and ended by a hash."""
    kept = "".join(c if c.isalnum() or c in _PLAIN else "".join(f"%{b:02X}" for b in c.encode()) for c in part)
    if set(kept) <= {"."}:  # empty, . and ..
        kept = kept.replace(".", "%2E") or "%"
    if len(kept.encode()) <= _LONGEST:
        return kept
    number = hashlib.blake2b(part.encode(), digest_size=8).hexdigest()
    return kept.encode()[: _LONGEST - 20].decode(errors="ignore") + "~" + number  # short names have no tilde


def inside(base: Path, name: str) -> Path:
    """The file below a folder that a table, list or scene names; InputError if the name leads out of it."""
    parts = Path(name).parts
    if "\0" in name or not parts or Path(name).is_absolute() or ".." in parts:
        raise InputError(f"{readable(name)[:200]!r} is no file below {base}: names of files may not lead out of it")
    return base / name


def distinct(files: Iterable[str], folders: bool = False) -> dict[str, str]:
    """A unique name for every file: without folder and ending where that is unique.

    With `folders` the folders always stay in the name.

    >>> distinct(["a/m1.png", "b/m1.png", "b/m2.png"])
    {'a/m1.png': 'a__m1', 'b/m1.png': 'b__m1', 'b/m2.png': 'm2'}
    >>> distinct(["cat.png", "cat.jpg", "a/dog.png", "a__dog.png"])
    {'cat.png': 'cat.png', 'cat.jpg': 'cat.jpg', 'a/dog.png': 'dog', 'a__dog.png': 'a__dog'}
    """
    listed = list(dict.fromkeys(files))
    found: dict[str, str] = {}
    for short in (_joined, str) if folders else (_stem, _joined, str):
        taken = Counter(short(file) for file in listed if file not in found) + Counter(found.values())
        found |= {file: short(file) for file in listed if file not in found and taken[short(file)] == 1}
    return {file: found[file] for file in listed}


def _stem(file: str) -> str:
    return PurePosixPath(file).stem


def _joined(file: str) -> str:
    return str(PurePosixPath(file).with_suffix("")).replace("/", "__")


def check_distinct(names: Iterable[str], of: str) -> None:
    """Raise InputError if two cases have the same name: they would share a row."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{of} has two cases called {readable(name)[:200]!r}: rename one: each has its own row")
        seen.add(name)
