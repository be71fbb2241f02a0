"""Which kind of component something from outside is: told by what it can do."""

import inspect
from typing import Any

from diorama.adapt.classifying import is_module
from diorama.core.catalogue import Kind, is_maker
from diorama.core.errors import InputError

#: What a function that is a model calls its argument; a method's is `frames`, `module` or `model`.
_IMAGES = ("images", "image", "batch", "x")


def kind_of(target: Any, text: str) -> Kind:
    """The kind of a class or function; `text` is what the user wrote."""
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
