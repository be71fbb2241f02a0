"""The digest of an outsider's component beside its source: weights, arrays, files it reads.

It covers the attributes of the object and of its classes, the globals and closures that its functions read, and the content
of every existing file whose path is found. Objects that cannot be hashed make the state unknown.
"""

import hashlib
import os
import secrets
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.guard import attempt
from diorama.io.digests import file_digest

_SESSION = "DIORAMA_SESSION"
#: The most files of a folder that is hashed (by name, size and time of change); a larger folder is unknown.
_MOST_FILES = 20_000
_PLAIN = (bool, int, float, complex, bytes, type(None), type(Ellipsis), np.generic, np.dtype)
#: Types in annotations, which a dataclass stores.
_ANNOTATIONS = (types.UnionType, types.GenericAlias)
#: Attributes of a class that Python sets itself, some of them only after the first use.
_NO_STATE = frozenset(
    (
        *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__slots__", "__slotnames__"),
        *("__abstractmethods__", "_abc_impl", "__static_attributes__", "__firstlineno__"),
    )
)


@dataclass
class StateDigest:
    """The digest of everything reachable from some objects; `unknown` has the types that could not be hashed."""

    folder: Path
    unknown: list[str] = field(default_factory=list)
    _total: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))
    _seen: dict[int, Any] = field(default_factory=dict)

    def digest(self) -> str:
        """The digest; if something cannot be hashed, one that is valid only in this process and those it starts."""
        if self.unknown:
            self._total.update(os.environ.setdefault(_SESSION, secrets.token_hex(8)).encode())
        return self._total.hexdigest()

    def add(self, value: Any) -> None:
        """Hash a value and everything it refers to."""
        self._add_text(type(value).__name__)
        if isinstance(value, (*_PLAIN, *_ANNOTATIONS)):
            self._add_text(repr(value))
        elif isinstance(value, str | Path):
            self._hash_path(value)
        elif id(value) not in self._seen:
            self._seen[id(value)] = value  # kept alive, so that its id is not given to another object
            self._hash_value(value)

    def leave_out(self, value: Any) -> None:
        """Skip a value that a key contains already."""
        self._seen[id(value)] = value

    def _add_text(self, text: str) -> None:
        self._total.update(f"{text}\0".encode("utf-8", "backslashreplace"))

    def _hash_path(self, value: str | Path) -> None:
        found = _existing_path(str(value), self.folder)
        if found is None:
            self._add_text(str(value))
        elif found.is_file():
            self._add_text(file_digest(found))
        elif found.resolve() in (self.folder, *self.folder.parents):
            # `Path(__file__).parent`: files in it count only if the component names them
            self._add_text("where the component is")
        else:
            self._hash_listing(found)

    def _hash_listing(self, folder: Path) -> None:
        for i, path in enumerate(sorted(folder.rglob("*"))):
            if i >= _MOST_FILES:
                self.unknown.append(f"a folder of more than {_MOST_FILES} files")
                return
            status = path.lstat()
            self._add_text(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns if path.is_file() else 0}")

    def _hash_value(self, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.dtype != object:
            self._hash_array(value)
        elif _is_tensor(value):
            self._hash_array(np.asarray(value.detach().cpu().resolve_conj().view(_int_type(value)).numpy()))
        elif isinstance(value, dict | types.MappingProxyType):  # a dataclass's fields have the latter
            for name, held in value.items():
                self.add(name)
                self.add(held)
        elif isinstance(value, set | frozenset):
            self._add_text(repr(sorted(map(repr, value))))
        elif isinstance(value, list | tuple):
            for held in value:
                self.add(held)
        elif isinstance(value, types.FunctionType):
            self._hash_function(value)
        elif isinstance(value, type):
            self._hash_class(value)
        elif isinstance(value, types.ModuleType):
            self._add_text(value.__name__.rpartition("diorama_file_")[0])
        elif isinstance(value, property | classmethod | staticmethod | types.MethodType):
            self.add(getattr(value, "fget", None) or getattr(value, "__func__", None))
            self.add(getattr(value, "__self__", None))
        else:
            self._hash_object(value)

    def _hash_array(self, array: np.ndarray) -> None:
        self._add_text(f"{array.dtype} {array.shape}")
        self._total.update(np.ascontiguousarray(array).tobytes())

    def _hash_function(self, function: types.FunctionType) -> None:
        """Hash defaults, closure, and the globals that the code names; for a library's function only its name."""
        self._add_text(function.__qualname__)
        if not self._ours(function.__code__.co_filename):
            return
        self.add((function.__defaults__, function.__kwdefaults__, dict(vars(function))))
        for cell in function.__closure__ or ():
            self.add(attempt(lambda cell=cell: cell.cell_contents).value)  # type: ignore[misc]
        names, texts = set[str](), set[str]()
        for code in codes(function.__code__):
            names |= set(code.co_names)
            texts |= {text for text in code.co_consts if isinstance(text, str)}
        for text in sorted(texts):
            if _existing_path(text, self.folder):
                self.add(text)
        self._hash_globals(function.__globals__, names)

    def _hash_globals(self, space: dict[str, Any], names: set[str]) -> None:
        for name in sorted(names & space.keys()):
            self._add_text(name)
            self.add(space[name])
            if isinstance(space[name], types.ModuleType) and self._ours(getattr(space[name], "__file__", "") or ""):
                self._hash_globals(vars(space[name]), names)

    def _hash_class(self, given: type) -> None:
        self._add_text(given.__qualname__)
        for part in given.__mro__:
            if self._ours(getattr(sys.modules.get(part.__module__), "__file__", "") or "") or _users(part, self._ours):
                for name, held in vars(part).items():
                    if name not in _NO_STATE:
                        self._add_text(name)
                        if not isinstance(held, types.MemberDescriptorType | types.GetSetDescriptorType):
                            self.add(held)

    def _hash_object(self, value: Any) -> None:
        """Hash an object by what `copy` would need to copy it."""
        self.add(type(value))
        parts = attempt(lambda: value.__reduce_ex__(2))
        if parts.error:
            self.unknown.append(type(value).__name__)
        elif isinstance(parts.value, str):
            self._add_text(parts.value)
        else:
            made, given, *rest = parts.value
            self._add_text(getattr(made, "__qualname__", type(made).__name__))
            self.add([part for part in given if part is not type(value)])
            for held in rest:
                self.add(list(held) if isinstance(held, Iterator) else held)

    def _ours(self, file: str) -> bool:
        return bool(file) and self.folder in Path(file).parents and "site-packages" not in file


def _users(part: type, ours: Any) -> bool:
    """Whether a class is the user's, by the files of its functions; for classes whose module was removed."""
    functions = (held for held in vars(part).values() if isinstance(held, types.FunctionType))
    return any(ours(function.__code__.co_filename) for function in functions)


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code object of a function, and those of the functions inside it."""
    yield code
    for held in code.co_consts:
        if isinstance(held, types.CodeType):
            yield from codes(held)


def _existing_path(text: str, folder: Path) -> Path | None:
    """The file or folder with a path, relative to here or to the component's folder; a bare word counts as no path."""
    if not 0 < len(text) < 1000 or "\0" in text or not any(c in text for c in "./\\") or not text.strip("./\\ "):
        return None
    places = (Path(text).expanduser, lambda: folder / text)
    found = (attempt(lambda p=p: (q := p()).exists() and q).value for p in places)  # type: ignore[misc]
    return next((place for place in found if place), None)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _int_type(tensor: Any) -> Any:
    """The integer type with the width of a tensor's values: numpy has no bfloat16."""
    torch = sys.modules["torch"]
    return {1: torch.uint8, 2: torch.int16, 4: torch.int32}.get(tensor.element_size(), torch.int64)
