"""Makes torchvision importable with a torch that its compiled operators were not built for.

The default wheel of torchvision then stops with "operator torchvision::nms does not exist" (pytorch/vision#9077, #9085).
Only the detection operators are compiled; models and transforms work once the missing operators have been declared.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # every start of Python imports this file, and importlib.abc takes 30 ms
    from collections.abc import Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType

#: The operators that torchvision describes at import, compiled or not.
_SCHEMAS = {name: f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor" for name in ("nms", "qnms")}
_declared: list[Any] = []  # a torch.library.Library undeclares its operators when it is collected


def make_importable() -> None:
    """Make every later `import torchvision` declare the compiled operators if they cannot be loaded.

    Call it before torchvision, timm, zennit or a user's file is imported. The call itself imports nothing, and it
    changes nothing if torchvision can be imported anyway.
    """
    if not any(map(_is_ours, sys.meta_path)):
        sys.meta_path.insert(0, TorchvisionFinder())


def _is_ours(finder: object) -> bool:
    """Whether an import finder is of this class, or of the copy of this file that `scripts/torchvision_shim` installs."""
    return type(finder).__name__ == TorchvisionFinder.__name__


class TorchvisionFinder:
    """Finds torchvision with the other finders, and gives it a loader that tries twice."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of torchvision; None for everything else."""
        if fullname != "torchvision":
            return None
        others = [finder for finder in sys.meta_path if not _is_ours(finder)]
        found = next((s for finder in others if (s := finder.find_spec(fullname, path, target))), None)
        if found is not None and found.loader is not None:
            found.loader = _RetryingLoader(found.loader)  # type: ignore[assignment]  # a Loader in all but name
        return found


class _RetryingLoader:
    """Executes torchvision; if that fails for lack of its operators, declares them and executes it again."""

    def __init__(self, loader: Loader):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Done by the real loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Done by the real loader, which the module then refers to."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        try:
            self.loader.exec_module(module)
        except RuntimeError as error:
            if "torchvision::" not in str(error):
                raise
            _remove_submodules()
            _declare()
            self.loader.exec_module(module)


def _remove_submodules() -> None:
    """Remove the submodules that the failed import left in `sys.modules`."""
    for name in [n for n in sys.modules if n.startswith("torchvision.")]:
        del sys.modules[name]


def _declare() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in _SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            library.define(schema)
    _declared.append(library)
