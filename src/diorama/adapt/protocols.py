"""Makes protocols from outsiders' objects."""

from typing import Any

from diorama.adapt.wrapping import require, wrapped
from diorama.core.contracts import Protocol


def protocol(given: Any, name: str) -> Protocol:
    """A protocol from an object with `track`, `metrics` and `score`, and optional members."""
    if isinstance(given, Protocol):
        return given
    require(given, ("track", "metrics", "score"), "protocol", name)
    return wrapped(given, [Protocol])
