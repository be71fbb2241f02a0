"""Stage small scenes whose truth is known, change one thing, and score what a vision model says about itself."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

#: The module of each public name, read from the stub beside this file. Modules are imported on first access.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_MODULE = {name: module for module, name in re.findall(r"^from (diorama\.\S+) import (\w+)", _STUB, re.MULTILINE)}
#: Packages that are public as they are.
_PACKAGES = ("data", "lab", "metrics")
__all__ = list(_MODULE)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"diorama.{name}")
    if name not in _MODULE:
        raise AttributeError(f"module 'diorama' has no attribute {name!r}")
    return getattr(import_module(_MODULE[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES, "__version__"]
