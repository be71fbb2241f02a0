"""Makes models from torch modules, plain functions, and objects that keep the contract without deriving from it."""

from typing import Any

from diorama.adapt import classifying
from diorama.adapt.wrapping import has, wrapped
from diorama.core.contracts import Model


def model(given: Any, name: str, side: int | None = None) -> Model:
    """A model from a torch module, a function images → logits, or an object with `logits` and `classes`."""
    if isinstance(given, Model):
        return given
    if has(given, "logits") and not classifying.is_module(given):
        return wrapped(given, [Model])
    return classifying.adapt(given, name, side)
