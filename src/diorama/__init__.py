"""Stage small scenes whose truth is known, change one thing, and score what a vision model says about itself."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from diorama import data as data
    from diorama import lab as lab
    from diorama import metrics as metrics
    from diorama.api import evaluate, run
    from diorama.core.answers import Boxes, Code, Heatmap, Layers, Mask, Sensitivity
    from diorama.core.bench import Bench
    from diorama.core.cases import Case, Panel, Score
    from diorama.core.catalogue import build
    from diorama.core.contracts import Decomposer, World, scene_at
    from diorama.core.errors import AnswerError, Excluded, InputError, Undefined
    from diorama.core.frame import Frame
    from diorama.core.guard import Note
    from diorama.core.plan import Plan
    from diorama.core.rows import Row
    from diorama.core.scene import Scene, rng
    from diorama.data.look import look
    from diorama.data.traverse import traverse
    from diorama.data.views import world
    from diorama.results import Results
    from diorama.testing.check import check_component
    from diorama.training.tune import tune

#: Where each public name lives. Nothing is imported before it is asked for.
_HOME = {
    "api": ("evaluate", "run"),
    "results": ("Results",),
    "core.answers": ("Boxes", "Code", "Heatmap", "Layers", "Mask", "Sensitivity"),
    "core.bench": ("Bench",),
    "core.catalogue": ("build",),
    "core.cases": ("Case", "Panel", "Score"),
    "core.contracts": ("Decomposer", "World", "scene_at"),
    "core.errors": ("AnswerError", "Excluded", "InputError", "Undefined"),
    "core.frame": ("Frame",),
    "core.guard": ("Note",),
    "core.plan": ("Plan",),
    "core.rows": ("Row",),
    "core.scene": ("Scene", "rng"),
    "data.look": ("look",),
    "data.traverse": ("traverse",),
    "data.views": ("world",),
    "testing.check": ("check_component",),
    "training.tune": ("tune",),
}
#: Packages that are public as they are.
_PACKAGES = ("data", "lab", "metrics")
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [  # noqa: RUF022 - in the order of _HOME
    "evaluate", "run", "Results", "Boxes", "Code", "Heatmap", "Layers", "Mask", "Sensitivity", "Bench", "build", "Case",
    "Decomposer", "Panel",
    "Score", "World", "scene_at", "AnswerError", "Excluded", "InputError", "Undefined", "Frame", "Note", "Plan", "Row",
    "Scene", "rng", "look", "traverse", "world", "check_component", "tune",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"diorama.{name}")
    if name not in _MODULE:
        raise AttributeError(f"module 'diorama' has no attribute {name!r}")
    return getattr(import_module(f"diorama.{_MODULE[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, *_PACKAGES, "__version__"]
