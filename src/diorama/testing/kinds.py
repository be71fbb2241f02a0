"""Finds the components of a name, and the kind of an outsider's object by its members."""

import inspect
from typing import Any

from diorama.adapt.classifying import is_module
from diorama.core.catalogue import KINDS, Kind, entries, find, is_maker, of_family
from diorama.core.errors import InputError, did_you_mean
from diorama.core.spec import Spec

#: Names of the first argument of a function that is a model; a method's is `frames`, `module` or `model`.
_IMAGES = ("images", "image", "batch", "x")


def kind_of(target: Any, text: str) -> Kind:
    """The kind of a class or function; `text` is the user's spec, for errors."""
    signs: dict[Kind, tuple[str, ...]] = {
        "world": ("render", "sample"),
        "protocol": ("score",),
        "model": ("logits",),
        "method": ("decompose", "explain", "encode", "attribute", "solve", "load"),
    }
    for kind, names in signs.items():
        if any(hasattr(target, name) for name in names):
            return kind
    if is_module(target):
        return "model"
    if inspect.isfunction(target):
        first = next(iter(inspect.signature(target).parameters), "")
        return "model" if first in _IMAGES or is_maker(target, "model") else "method"
    raise InputError(f"{text}: cannot tell what it is; a world has render, a method decompose, a protocol score")


def named(parsed: Spec) -> list[tuple[Kind, str]]:
    """The components that a spec can mean: kinds and full names."""
    found = [(kind, name) for kind in KINDS for name in _matches(kind, parsed)]
    if not found:
        names = {n for kind in KINDS for e in entries(kind) for n in (e, e.rpartition("/")[2])}
        raise InputError(f"nothing is called {parsed.name!r}; {did_you_mean(parsed.name, sorted(names))} (diorama ls)")
    return found


def _matches(kind: Kind, parsed: Spec) -> list[str]:
    if of_family(kind, parsed.name):
        return [parsed.name]
    if ":" in parsed.name:
        return [parsed.name] if kind == kind_of(find("model", parsed).target, parsed.name) else []
    return [name for name in entries(kind) if parsed.name in (name, name.rpartition("/")[2])]
