"""Foreign things made ours, once, when they are built: after that nobody asks what members an object has."""

from typing import Any

from diorama.adapt.declared import check_declared
from diorama.adapt.methods import method
from diorama.adapt.models import model
from diorama.adapt.protocols import protocol
from diorama.adapt.worlds import world
from diorama.core.contracts import Contract

_KINDS: dict[str, Any] = {"world": world, "method": method, "protocol": protocol}


def adapt(kind: str, given: Any, name: str, side: int | None = None) -> Contract:
    """An object of the contract of its kind, from one of ours or an outsider's; refused by name where that cannot be.

    `side` is that of the images a network will be asked about, where that is known and the network does not say.
    """
    made = model(given, name, side) if kind == "model" else _KINDS[kind](given, name)
    check_declared(kind, made, name)
    return made
