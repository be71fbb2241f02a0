"""Content keys: the digest of a component's parameters, source, data and libraries; its label plays no part.

The source of a component is that of its module and of every first-party module it imports, as abstract syntax without
docstrings and annotations, so that formatting, comments, documentation and types change no key; imports that only
annotations use do not count. Modules that can change values although no component imports them are the engine.
"""

import importlib.metadata
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from diorama.core import sources
from diorama.core.scene import digest

_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Root:
    """A tree of source files: modules named `package.…` are under `folder` (`package` empty: the folder's own modules)."""

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
#: The engine's modules are hashed; their imports are not followed.
ENGINE = (
    *("core/answers", "core/asking", "core/bench", "core/cases", "core/contracts", "core/controls", "core/device"),
    *("core/fits", "core/folds", "core/frame", "core/frame_store", "core/guard", "core/memory", "core/rows"),
    *("core/run", "core/watch", "adapt/classifying", "adapt/engines", "adapt/explaining", "adapt/folding"),
)


def engine_key(root: Root = OURS) -> str:
    """The digest of the engine's source."""
    paths = [root.folder / f"{name}.py" for name in ENGINE]
    return digest([sources.facts(path).syntax for path in paths])


def source_key(path: Path, root: Root = OURS) -> dict[str, object]:
    """The digest of a module's source and of all first-party modules it imports, with the libraries that these use."""
    roots = (root,) if root == OURS else (root, OURS)
    files, libraries = closure(path.resolve(), roots)
    parts = [sources.facts(f).syntax for f in files]
    sources.CACHE.write()
    return {"source": digest(sorted(parts)), "libraries": {name: version(name) for name in sorted(libraries)}}


def closure(start: Path, roots: tuple[Root, ...]) -> tuple[set[Path], set[str]]:
    """The first-party files that a file imports, directly or through others, and the libraries they import."""
    files, libraries, todo = set[Path](), set[str](), [start]
    while todo:
        path = todo.pop()
        if path in files:
            continue
        files.add(path)
        for module in sources.facts(path).imports:
            found = next((f for r in roots if (f := r.file(module))), None)
            if found:
                todo.append(found.resolve())
            elif (top := module.split(".")[0]) not in sys.stdlib_module_names and top not in {r.package for r in roots}:
                libraries.add(top)
    return files, libraries


#: Distributions whose name is not that of their module. Listing all distributions to find them would be slow.
CALLED = {
    "cv2": ("opencv-contrib-python", "opencv-contrib-python-headless", "opencv-python", "opencv-python-headless"),
    "PIL": ("pillow",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
}


@cache
def version(library: str) -> str:
    """The major.minor of the distribution that provides a top-level module, or "absent"."""
    for distribution in _distributions_of(library):
        try:
            return ".".join(importlib.metadata.version(distribution).split(".")[:2])
        except importlib.metadata.PackageNotFoundError:
            continue
    return "absent"


def _distributions_of(library: str) -> Iterator[str]:
    """Distributions that may provide a module, most likely ones first: the full list is slow to build."""
    yield library
    yield from CALLED.get(library, ())
    yield from distributions().get(library, [])


@cache
def distributions() -> dict[str, list[str]]:
    """The installed distributions that provide each top-level module."""
    return {top: sorted(set(names)) for top, names in importlib.metadata.packages_distributions().items()}
