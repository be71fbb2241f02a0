"""Content keys: what a component is, by its parameters, its source, its data and its libraries; never by its label.

The source of a component is that of its module and of every first-party module it imports, as abstract syntax without
docstrings and annotations, so that formatting, comments, documentation and types change no key; what is imported for an
annotation alone does not count. What can change values without being imported by a component is the engine.
"""

import ast
import importlib.metadata
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from diorama.core.scene import digest

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Root:
    """A first-party tree: modules named `package.…` live under `folder` (`package` empty: the folder's own modules)."""

    package: str
    folder: Path

    def file(self, module: str) -> Path | None:
        """The file of a module of this tree, or None."""
        if self.package:
            if module.split(".", maxsplit=1)[0] != self.package:
                return None
            module = module[len(self.package) + 1 :]
        base = self.folder.joinpath(*module.split(".")) if module else self.folder
        for path in (base.with_suffix(".py") if module else base, base / "__init__.py"):
            if path.is_file():
                return path
        return None


OURS = Root("diorama", _PACKAGE)
#: What can change values although no component imports it; hashed as it is, its imports are not followed.
ENGINE = (
    *("core/answers", "core/bench", "core/cases", "core/contracts", "core/controls", "core/device", "core/fits"),
    *("core/folds", "core/frame", "core/guard", "core/rows", "core/run", "core/watch"),
    *("adapt/classifying", "adapt/explaining", "adapt/folding"),
)


def engine_key(root: Root = OURS) -> str:
    """The digest of the engine: how cases are put together, asked, fitted and scored."""
    paths = [root.folder / f"{name}.py" for name in ENGINE]
    return digest([_syntax(path, path.stat().st_mtime_ns) for path in paths])


def source_key(path: Path, root: Root = OURS) -> dict[str, object]:
    """The digest of a module's source with everything first-party it imports, and the libraries all of them use."""
    roots = (root,) if root == OURS else (root, OURS)
    files, libraries = _closure(path.resolve(), roots)
    parts = [_syntax(f, f.stat().st_mtime_ns) for f in files]
    return {"source": digest(sorted(parts)), "libraries": {name: version(name) for name in sorted(libraries)}}


def _closure(start: Path, roots: tuple[Root, ...]) -> tuple[set[Path], set[str]]:
    files, libraries, todo = set[Path](), set[str](), [start]
    while todo:
        path = todo.pop()
        if path in files:
            continue
        files.add(path)
        for module in _imports(path, path.stat().st_mtime_ns):
            found = next((f for r in roots if (f := r.file(module))), None)
            if found:
                todo.append(found.resolve())
            elif (top := module.split(".")[0]) not in sys.stdlib_module_names and top not in {r.package for r in roots}:
                libraries.add(top)
    return files, libraries


@cache
def _tree(path: Path, mtime: int) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


@cache
def _imports(path: Path, mtime: int) -> tuple[str, ...]:
    """The modules and names that a file imports for more than its annotations.

    A block for type checkers counts in a module that loads its names lazily (`__getattr__`): nothing else names them. An
    imported name that is used nowhere is there for others to import, and counts too.
    """
    tree = _tree(path, mtime)
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


@cache
def _syntax(path: Path, mtime: int) -> str:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _documented(node):
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    return digest([path.stem, ast.dump(tree)])


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None


@cache
def version(library: str) -> str:
    """The major.minor of the distribution that provides a top-level module, or "absent"."""
    for distribution in _distributions().get(library, [library]):
        try:
            return ".".join(importlib.metadata.version(distribution).split(".")[:2])
        except importlib.metadata.PackageNotFoundError:
            continue
    return "absent"


@cache
def _distributions() -> dict[str, list[str]]:
    return {top: sorted(set(names)) for top, names in importlib.metadata.packages_distributions().items()}
