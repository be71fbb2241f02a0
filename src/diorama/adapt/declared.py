"""Checks a component's declarations once, when it is built: a wrong type gives one line and not a failed run."""

from collections.abc import Callable
from typing import Any

from diorama.core.errors import InputError
from diorama.core.frame import TRUTH
from diorama.core.guard import attempt, one_line


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, str) for v in value)


def _changes(value: Any) -> bool:
    """Whether something is a list of parameters by name."""
    dicts = isinstance(value, list | tuple) and all(isinstance(v, dict) for v in value)
    return dicts and all(isinstance(k, str) for v in value for k in v)


def _grid(value: Any) -> bool:
    return _changes(value) and len({tuple(point) for point in value}) <= 1 and all(value)


def _positive_int(value: Any) -> bool:
    return type(value) is int and value > 0


_Check = tuple[Callable[[Any], bool], str]
#: For each kind: the attributes that may be declared, the test for each, and the description of valid values.
_NOTE: _Check = (lambda v: isinstance(v, str), "a text")
_SIZE: _Check = (lambda v: v is None or _positive_int(v), "a side in pixels, or None")
_DECLARED: dict[str, dict[str, _Check]] = {
    "method": {
        "grid": (_grid, 'a list of parameter sets that name the same parameters, ({"k": 0.1}, {"k": 0.2})'),
        "views": (_changes, 'a list of changes, ({"light": 1}, {"light": 2})'),
        "note": _NOTE,
    },
    "model": {"classes": (_positive_int, "a whole number"), "size": _SIZE, "note": _NOTE},
    "world": {
        "factors": (lambda v: isinstance(v, dict), "a dictionary: name → what it may be set to"),
        "truth": (lambda v: _texts(v) and set(v) <= set(TRUTH), f"a list of {', '.join(TRUTH)}"),
        "__len__": (callable, "a method"),
        "note": _NOTE,
    },
    "protocol": {
        "metrics": (lambda v: _texts(v) and len(v) > 0, "a list of names"),
        "needs": (lambda v: _texts([t for t in v if not isinstance(t, type)]), "a list of truth and kinds of worlds"),
        "track": (lambda v: isinstance(v, str), "explain, decompose, concept, represent or an empty text"),
        "direction": (lambda v: v in ("lower", "higher"), "'lower' or 'higher'"),
        "range": (lambda v: isinstance(v, list | tuple) and len(v) == 2, "the lowest and the highest value"),
    },
}


#: The members without which a world or protocol cannot be planned.
_REQUIRED = {
    "world": ("factors", "truth", "do", "render"),
    "protocol": ("track", "needs", "metrics", "direction", "range", "version", "case", "score"),
}


def check_declared(kind: str, component: Any, name: str) -> None:
    """Raise InputError if a declaration is missing, is invalid, or cannot be read."""
    lacking = [member for member in _REQUIRED.get(kind, ()) if not hasattr(component, member)]
    if lacking:
        raise InputError(f"{name} is no {kind}: it has no {', '.join(lacking)} (diorama.core.contracts)")
    for attribute, (fits, wanted) in _DECLARED[kind].items():
        found = attempt(lambda attribute=attribute: getattr(component, attribute))  # type: ignore[misc]
        if isinstance(found.error, AttributeError):
            continue
        if found.error or attempt(lambda fits=fits, found=found: fits(found.value)).value is not True:  # type: ignore[misc]
            shown = found.reason or one_line(attempt(lambda found=found: repr(found.value)).value)[:120]  # type: ignore[misc]
            raise InputError(f"{name}: {attribute} is {shown}, and has to be {wanted}")
    if kind == "world" and hasattr(component, "__len__"):
        counted = attempt(lambda: len(component))
        if counted.error:
            raise InputError(f"{name} cannot count its scenes: {counted.reason}")
