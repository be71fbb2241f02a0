"""Makes worlds from outsiders' objects: the members of an object decide which capabilities it gets."""

from typing import Any

from diorama.adapt.wrapping import has, require, wrapped
from diorama.core.capabilities import Labelled, Levelled, Listed, Lit, Parted, Sets
from diorama.core.contracts import World

#: The members by which a capability is recognised.
_SIGNS: dict[Any, tuple[str, ...]] = {
    Listed: ("__len__", "scene"),
    Parted: ("part_names", "part_ids"),
    Labelled: ("classes",),
    Levelled: ("levels",),
    Sets: ("__len__", "scene", "members"),
}


def world(given: Any, name: str) -> World:
    """A world from an object with `factors`, `truth`, `sample`, `do`, `render`, and optional members."""
    if isinstance(given, World):
        return given
    require(given, ("factors", "truth", "sample", "do", "render"), "world", name)
    bases = [capability for capability, signs in _SIGNS.items() if has(given, *signs)]
    if "label" in given.truth:
        bases.append(Labelled)
    if callable(getattr(given, "lights", None)):
        bases.append(Lit)
    return wrapped(given, dict.fromkeys([*bases, World]))
