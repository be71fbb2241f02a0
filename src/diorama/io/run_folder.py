"""The layout of a run directory, and checks whether a directory is one. Nothing here builds components."""

import json
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError
from diorama.io.store import content, is_temporary

#: The version of the layout. Directories of other versions are refused.
SCHEMA = 2
#: What a run that was killed before it wrote run.json may leave in a directory.
_FIRST = ("lock", "locks", "plan.toml", "cells", "fits")


def cell_folder(run: Path, key: str) -> Path:
    """The folder of a cell."""
    return run / "cells" / key[:2] / key


def read_document(path: Path) -> dict[str, Any]:
    """The object in a JSON file; ValueError if it holds none."""
    try:
        found = json.loads(content(path))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise ValueError("it holds no object")
    return found


def damage(path: Path) -> str:
    """What is wrong with a JSON file of a run, or an empty string."""
    try:
        read_document(path)
    except ValueError as error:
        return " ".join(str(error).split())[:120] or "it is no JSON"
    return ""


_TEXTS, _LISTS = ("world", "protocol", "key", "control", "direction", "at"), {"metrics": str, "points": dict}


def manifest_damage(path: Path) -> str:
    """What is wrong with a cell's manifest, or an empty string."""
    try:
        found = read_document(path)
    except (OSError, ValueError) as error:
        return " ".join(str(error).split())[:120] or "it is no JSON"
    wrong = [name for name in _TEXTS if not isinstance(found.get(name), str)]
    wrong += [name for name, kind in _LISTS.items() if not _is_list_of(found.get(name), kind)]
    return f"it has no {wrong[0]}" if wrong else ""


def _is_list_of(value: Any, kind: type) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(v, kind) for v in value)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a cell; None if it is absent or damaged (the next run writes it again)."""
    return None if manifest_damage(folder / "manifest.json") else read_document(folder / "manifest.json")


def check_layout(folder: Path) -> None:
    """Raise InputError if a directory is neither empty nor a run directory of this layout."""
    path = folder / "run.json"
    if not path.exists():
        others = [p for p in folder.iterdir() if not (p.name in _FIRST or is_temporary(p) or p.suffix == ".damaged")]
        if others:
            raise InputError(f"{folder} holds other files: choose a new or empty directory with -o")
        return
    if damage(path):
        return  # `diorama run` sets the damaged file aside, other commands report it
    schema = read_document(path).get("schema")
    if schema != SCHEMA:
        raise InputError(
            f"{folder} was written by another version of diorama (layout {str(schema)[:20]}, this one is {SCHEMA}):"
            " choose another directory with -o, or delete it"
        )


def check_readable(folder: Path) -> None:
    """Raise InputError if a directory is no run directory of this layout with readable results."""
    for name in ("plan.toml", "run.json", "cells.json"):
        path = folder / name
        if not path.is_file():
            raise InputError(
                f"{folder} is not a run directory: it has no {name}"
                f" (diorama run PLAN.toml -o {folder} --prepare makes one without computing anything)"
            )
        if path.suffix == ".json" and (why := damage(path)):
            raise InputError(f"{path} is damaged ({why}): `diorama run {folder}/plan.toml -o {folder}` repairs it")
    check_layout(folder)


def is_run(folder: Path) -> bool:
    """Whether a folder looks like a run directory, judged by the names in it."""
    return folder.is_dir() and any((folder / name).exists() for name in ("run.json", "cells.json", "cells"))
