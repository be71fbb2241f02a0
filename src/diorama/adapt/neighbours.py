"""Imports users' files and the modules beside them: two folders may each have a `helper.py`, and each imports its own."""

import builtins
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError
from diorama.core.guard import attempt, no_exit
from diorama.core.scene import digest

#: The modules that were imported from each folder, by name.
_IMPORTED: dict[Path, dict[str, types.ModuleType]] = {}


def load_file(path: Path) -> types.ModuleType:
    """The module of a file, which may import its neighbours; an edited file is loaded again.

    A file that another one has imported as its neighbour is not executed again: its classes are the same for both.
    """
    own = _IMPORTED.setdefault(path.parent, {})
    known = own.get(path.stem)
    if known and known.__name__ == path.stem and not _is_edited(known):
        return known
    name = f"diorama_file_{digest(str(path))[:12]}"
    loader = importlib.util.spec_from_file_location(name, path)
    if loader is None or loader.loader is None:
        raise InputError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(loader)
    # imports inside its functions run later, and must find the neighbours too
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": partial(_import, path.parent)}
    sys.modules[name] = module
    with _own_modules(path.parent), no_exit():
        outcome = attempt(partial(loader.loader.exec_module, module))
    if outcome.error:
        raise InputError(f"{path} cannot be imported: {outcome.reason}") from outcome.error
    own[path.stem] = module
    vars(module)["__diorama_time__"] = _mtime(module)
    return module


def _import(folder: Path, name: str, *rest: Any, **named: Any) -> Any:
    top = name.partition(".")[0]
    if not top or top in sys.stdlib_module_names or not _is_neighbour(folder, top):
        return builtins.__import__(name, *rest, **named)
    with _own_modules(folder):
        return builtins.__import__(name, *rest, **named)


def _is_neighbour(folder: Path, top: str) -> bool:
    return (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file()


@contextmanager
def _own_modules(folder: Path) -> Iterator[None]:
    """Inside, `import` finds the modules of this folder first; afterwards `sys.modules` is as before."""
    own = _IMPORTED.setdefault(folder, {})
    others = [held for other, held in _IMPORTED.items() if other != folder]
    hidden = {n: m for held in others for n, m in held.items() if sys.modules.get(n) is m}
    for name in (*hidden, *own):
        sys.modules.pop(name, None)
    if any(_is_edited(module) for module in own.values()):
        own.clear()
    sys.modules.update(own)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            if _is_from(module, folder) and _is_neighbour(folder, name.partition(".")[0]):
                own[name] = module
                vars(module).setdefault("__diorama_time__", _mtime(module))
        sys.modules.update(hidden)


def _is_from(module: types.ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None) or ""
    inside = file.startswith(f"{folder}{os.sep}")  # not by Path: this is called for every loaded module
    return inside and "site-packages" not in file and not module.__name__.startswith("diorama")


def _mtime(module: types.ModuleType) -> int:
    return Path(module.__file__ or "").stat().st_mtime_ns


def _is_edited(module: types.ModuleType) -> bool:
    return attempt(lambda: _mtime(module)).value != vars(module).get("__diorama_time__")
