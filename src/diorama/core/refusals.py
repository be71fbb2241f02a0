"""Finds out why a world, model, method and protocol do not fit together: one line, before anything is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from diorama.core.capabilities import Labelled
from diorama.core.catalogue import Component
from diorama.core.contracts import Explainer

if TYPE_CHECKING:
    from diorama.core.plan import Cell


def lacking(world: Component, protocol: Component) -> str:
    """Why a protocol cannot be used on a world at all, or an empty string."""
    needs = protocol.object.needs
    lacking = ", ".join(t for t in needs if isinstance(t, str) and t not in world.object.truth)
    if lacking:
        remedy = "; compose one: -w 'mosaic(source=…)' takes a folder, a table or a world" if "cells" in lacking else ""
        return f"{protocol.name} needs the truth {lacking}, which {world.name} does not have{remedy}"
    other: Any = next((t for t in needs if isinstance(t, type) and not isinstance(world.object, t)), None)
    if other:
        return f"{protocol.name} needs {other.in_words}, which {world.name} is not"
    fixed = ", ".join(f for f in protocol.object.changes if f not in world.object.factors)
    return f"{protocol.name} changes {fixed}, which {world.name} cannot" if fixed else ""


def refusal(cell: Cell) -> str:
    """Why a cell makes no sense, or an empty string."""
    protocol, world = cell.protocol.object, cell.world.object
    if cell.model and (reason := _model_refusal(cell.world, cell.model)):
        return reason
    if cell.method is None:
        return ""
    method, model = cell.method.object, cell.model.object if cell.model else None
    if method.track and method.track != protocol.track:
        return f"{cell.method.name} is of the {method.track} track, {cell.protocol.name} judges {protocol.track}"
    if cell.model and method.gradients and not cell.model.object.differentiable:
        return f"{cell.method.name} needs gradients, which {cell.model.name}, a function, does not have"
    factors = {name for view in method.views for name in view}
    unknown = sorted(factors - set(world.factors))
    if unknown:
        return f"{cell.method.name} needs views by {', '.join(unknown)}, which {cell.world.name} cannot change"
    if model and isinstance(cell.asked.object, Explainer) and (reason := cell.asked.object.refuses(model)):
        return reason
    return protocol.refuses(world, model, cell.asked.object)


def _was_fitted_on(model: Component, world: Component) -> str:
    """Why a model cannot be judged on photos that it was fitted on (found by content), or an empty string."""
    learnt: frozenset[str] = model.object.learnt
    shown: frozenset[str] = world.object.contents if learnt else frozenset()
    if not learnt & shown:
        return ""
    count, fix = f"{len(learnt & shown)} of the {len(shown)}", f"{world.name}(…, {model.object.leave_out})"
    reason = f"{model.name} was fitted on {count} photos that {world.name} shows"
    return f"{reason}: write {fix} to leave them out, or show other photos"


def _model_refusal(world: Component, model: Component) -> str:
    """Why a model cannot be asked about a world's images, or an empty string: their size, or the number of classes."""
    wanted, size = model.object.size, world.object.size
    if wanted and size and size != wanted:
        return f"{model.name} takes {wanted}×{wanted} images: write {world.name}({world.object.sized(wanted)})"
    if wanted and not size and world.seen_size not in (None, (wanted, wanted)):
        high, wide = world.seen_size
        return f"{model.name} takes {wanted}×{wanted} images, those of {world.name} are {wide}×{high}"
    known, classes = len(world.object.classes) if isinstance(world.object, Labelled) else 0, model.object.classes
    if known not in (0, classes):
        on = "FOLDER_OF_CLASS_FOLDERS" if world.object.length is not None else f"{str(world.spec)!r}"
        fit = f'fit one for these with -M "head(backbone={model.name}, on={on})"'
        return f"{model.name} has {classes} classes, {world.name} has {known}: {fit}"
    return _was_fitted_on(model, world)
