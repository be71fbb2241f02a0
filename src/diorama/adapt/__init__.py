"""Turns outsiders' objects into components when they are built; after that no code checks which members they have."""

from typing import Any

from diorama.adapt.declared import check_declared
from diorama.adapt.methods import method
from diorama.adapt.models import model
from diorama.adapt.protocols import protocol
from diorama.adapt.worlds import world
from diorama.core.contracts import Contract

_KINDS: dict[str, Any] = {"world": world, "method": method, "protocol": protocol}


def adapt(kind: str, given: Any, name: str, side: int | None = None) -> Contract:
    """An object that keeps the contract of its kind, made from any object; InputError if that is impossible.

    `side` is the size of the images that a network will be given, for networks that do not say their input size.
    """
    made = model(given, name, side) if kind == "model" else _KINDS[kind](given, name)
    check_declared(kind, made, name)
    return made
