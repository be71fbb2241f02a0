"""Wraps an outsider's object in a contract's class that forwards to the members which the object has."""

import types
from collections.abc import Iterable
from typing import Any

from diorama.core.errors import InputError
from diorama.core.guard import attempt


def wrapped(given: Any, bases: Iterable[type]) -> Any:
    """An instance of the classes with the members of `given`; members it lacks are the contract's defaults."""
    kept = _most_derived(list(bases))
    names = {name for base in kept for name in _members(base) if has(given, name)}
    for name in sorted(names):
        _check_verb(given, kept, name)
    return type(type(given).__name__, kept, {name: _member(given, name) for name in names})()


def _check_verb(given: Any, bases: tuple[type, ...], name: str) -> None:
    """Raise InputError if a member is a method in the contract but not in the object."""
    ours = next((getattr(base, name) for base in bases if hasattr(base, name)), None)
    theirs = attempt(lambda: getattr(given, name)).value
    if isinstance(ours, types.FunctionType) and not callable(theirs):
        raise InputError(f"{type(given).__name__}: {name} is {type(theirs).__name__}, and has to be a method")


def require(given: Any, names: Iterable[str], kind: str, name: str) -> None:
    """Raise InputError that names the missing members."""
    lacking = [n for n in names if not has(given, n)]
    if lacking:
        raise InputError(f"{name} is no {kind}: it has no {', '.join(lacking)} (see diorama.core.contracts)")


def has(given: Any, *names: str) -> bool:
    """Whether an object has all of some members; one that raises when read counts as present, and fails when used."""
    found = [attempt(lambda name=name: getattr(given, name)).error for name in names]  # type: ignore[misc]
    return not any(isinstance(error, AttributeError) for error in found)


def _members(base: type) -> set[str]:
    """The public members of a contract, and its length."""
    every = {name for c in base.__mro__ for name in (*vars(c), *vars(c).get("__annotations__", ()))}
    return {name for name in every if not name.startswith("_") or name == "__len__"}


def _member(given: Any, name: str) -> Any:
    if name == "__len__":
        return lambda self: len(given)
    if callable(attempt(lambda: getattr(given, name)).value):
        return staticmethod(getattr(given, name))
    return property(lambda self: getattr(given, name))


def _most_derived(bases: list[type]) -> tuple[type, ...]:
    """The classes, less those that are a base of another one in the list."""
    return tuple(b for b in bases if not any(o is not b and issubclass(o, b) for o in bases))
