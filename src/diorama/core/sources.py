"""Facts about source files for keys: the digest of their code, and the modules they import; cached between processes.

Parsing the package takes seconds, so the facts are cached in `sources.json` of the cache folder by each file's size, times
and inode. Changing a file changes at least its ctime, which cannot be set; but the clock of the file system is coarse, so a
file that changed less than two seconds before it was read is not cached.
"""

import ast
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diorama.core.scene import digest
from diorama.io.files import cache_folder
from diorama.io.store import write_whole

#: Raised when facts are computed differently.
VERSION = 1
#: How long a file must have been unchanged before it is cached, in nanoseconds.
SETTLED = 2 * 10**9
#: The most files in the cache.
MOST = 2000


@dataclass(frozen=True, slots=True)
class Facts:
    """The digest of a file's code, and the modules and names it imports for more than its annotations."""

    syntax: str
    imports: tuple[str, ...]


class Cache:
    """Facts by path and stamp, from this process or an earlier one."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[list[int], Facts]] | None = None
        self.fresh = False

    def recall(self, path: Path, stamp: list[int]) -> Facts | None:
        """The facts of a file, if they are cached with this stamp."""
        if self.known is None:
            self.known = _read(_cache_file())
        kept = self.known.get(str(path))
        return kept[1] if kept and kept[0] == stamp else None

    def keep(self, path: Path, stamp: list[int], facts: Facts) -> None:
        """Add the facts of a file, unless it changed in the last two seconds."""
        if self.known is not None and time.time_ns() - max(stamp[1:3]) > SETTLED:
            self.known[str(path)] = (stamp, facts)
            self.fresh = True

    def write(self) -> None:
        """Write the cache for later processes if it has new facts and its folder is writable."""
        if self.fresh and self.known:
            last = list(self.known.items())[-MOST:]
            files = {path: [stamp, facts.syntax, list(facts.imports)] for path, (stamp, facts) in last}
            try:
                write_whole(_cache_file(), json.dumps({"version": VERSION, "files": files}).encode())
            except OSError:
                return
            self.fresh = False


CACHE = Cache()


def facts(path: Path) -> Facts:
    """The facts of a source file as it is now."""
    stamp = _stamp(path)
    known = CACHE.recall(path, stamp)
    if known is None:
        tree = ast.parse(path.read_bytes(), filename=str(path))
        imports = _imports(tree)
        known = Facts(_syntax(path.stem, tree), imports)
        CACHE.keep(path, stamp, known)
    return known


def _cache_file() -> Path:
    return cache_folder() / "sources.json"


def _stamp(path: Path) -> list[int]:
    seen = os.stat(path)
    return [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino]


def _read(path: Path) -> dict[str, tuple[list[int], Facts]]:
    """The cache that an earlier process wrote; empty if the file is absent, damaged or of another version."""
    try:
        found: Any = json.loads(path.read_bytes())
        files = found["files"] if found["version"] == VERSION else {}
        return {
            name: (stamp, Facts(str(syntax), tuple(map(str, imports))))
            for name, (stamp, syntax, imports) in files.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}


def _imports(tree: ast.Module) -> tuple[str, ...]:
    """The modules and names that a file imports for more than its annotations.

    Imports under TYPE_CHECKING count in a module that loads its names lazily (`__getattr__`): nothing else names them. An
    imported name that is used nowhere counts too: it is a re-export.
    """
    lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    typed, noted = set() if lazy else _within(_typing_only(tree)), _within(_annotations(tree))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in typed]
    idle = {n.id for n in names if id(n) in noted} - {n.id for n in names if id(n) not in noted}
    found: list[str] = []
    for node in (n for n in ast.walk(tree) if id(n) not in typed):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if (a.asname or a.name.split(".")[0]) not in idle]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            live = [a.name for a in node.names if (a.asname or a.name) not in idle]
            found += [node.module] * bool(live) + [f"{node.module}.{name}" for name in live]
    return tuple(found)


def _typing_only(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from node.body


def _annotations(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg) and a.annotation)
            yield from [node.returns] if node.returns else []
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation


def _within(nodes: Iterable[ast.AST]) -> set[int]:
    return {id(inner) for node in nodes for inner in ast.walk(node)}


def _syntax(stem: str, tree: ast.Module) -> str:
    """The digest of the code without docstrings and annotations; changes the tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _documented(node):
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return digest([stem, ast.dump(tree)])


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
