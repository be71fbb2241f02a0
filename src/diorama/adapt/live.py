"""Live objects as components: a network, a function, an array, an object of any library, without a file that makes it.

The key is computed from the object: the code of its functions and classes, its attributes, its weights, the versions of its
libraries. If part of the object cannot be hashed, the key holds for this process only: the object can be used, but later
runs do not reuse its results.
"""

import copy
import dataclasses
import inspect
import sys
import sysconfig
import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from diorama.adapt import adapt
from diorama.adapt.classifying import is_module
from diorama.adapt.state import StateDigest, codes
from diorama.core import keys, spec
from diorama.core.catalogue import LIVE, Component, Kind, build, entries, parameters
from diorama.core.errors import InputError, tell
from diorama.core.guard import attempt


def component(kind: Kind, given: Any, name: str = "", side: int | None = None) -> Component:
    """A component from a spec or a live object, with the user's `name` for it if there is one.

    An object or class of Diorama, or a class of captum, becomes a spec. `side` is the size of the images to come, for
    networks that do not say their input size.
    """
    if isinstance(given, Component):
        return dataclasses.replace(given, shown=name or given.shown)
    if isinstance(given, str):
        return build(kind, f"{name}={given}" if name else given)
    if made := _of_ours(kind, given) or _of_captum(kind, given):
        return dataclasses.replace(build(kind, made), shown=name)
    label = name or default_name(given)
    found = Live(kind, spec.Spec(f"{LIVE}{label}"), label, type(given), Path(), keys.OURS, label, given, side)
    _ = found.object  # so that mistakes in it are found here
    return found


def listed(given: Any) -> list[tuple[str, Any]]:
    """Names and components from a single component, a list, or a dictionary by name.

    >>> listed("rise"), listed({"mine": print}), listed(())
    ([('', 'rise')], [('mine', <built-in function print>)], [])
    """
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [(str(name), one) for name, one in given.items()]
    return [("", one) for one in (given if isinstance(given, list | tuple) else [given])]


def default_name(given: Any) -> str:
    """The label of a live object that the user did not name.

    >>> default_name(print), default_name(lambda: 0), default_name([0.5])
    ('print', 'function', 'list')
    """
    name = str(getattr(given, "__name__", type(given).__name__))
    return "function" if name == "<lambda>" else name


@dataclass(frozen=True)
class Live(Component):
    """A component whose object exists already. Networks are copied, so that the user's stays unchanged."""

    given: Any = None
    side: int | None = None

    @cached_property
    def params(self) -> dict[str, Any]:
        """The fields of a dataclass; other objects have no named parameters."""
        fields = dataclasses.fields(self.made) if dataclasses.is_dataclass(self.made) else ()
        return {field.name: getattr(self.made, field.name) for field in fields}

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """Empty: the object exists already."""
        return {}

    def with_default(self, **params: Any) -> "Live":
        """The component itself: a live object takes no parameters."""
        return self

    @cached_property
    def made(self) -> Any:
        """The object; a class is called without arguments, unless it is a factory of attributors."""
        if not inspect.isclass(self.given) or hasattr(self.given, "attribute"):
            return self.given
        outcome = attempt(self.given)
        if outcome.error:
            raise InputError(f"{self.name}() fails without arguments ({outcome.reason}): give an object of the class")
        return outcome.value

    @cached_property
    def object(self) -> Any:
        """The object adapted to its contract; any failure becomes an InputError of one line."""
        outcome = attempt(lambda: adapt(self.kind, self.made, self.name, self.side))
        if isinstance(outcome.error, InputError):
            raise outcome.error
        if outcome.error:
            raise InputError(f"{self.name} cannot be used as a {self.kind}: {outcome.reason}") from outcome.error
        return outcome.value

    def at(self, point: dict[str, Any]) -> Any:
        """The object with some attributes changed."""
        changed = copy.copy(self.made)
        for name, value in point.items():
            object.__setattr__(changed, name, value)  # a frozen dataclass too
        return adapt(self.kind, changed, self.name)

    @cached_property
    def key(self) -> dict[str, Any]:
        """Everything that identifies the object, as far as it can be hashed."""
        state = _LiveState(Path.cwd())
        if (failed := attempt(lambda: state.add(self.given))).error:
            state.unknown.append(failed.reason)
        if state.unknown:
            tell(
                f"{self.name} holds {state.unknown[0]}, which cannot be hashed: its results are not reused by later runs"
            )
        own = sorted(str(keys.source_key(path)["source"]) for path in state.sources)
        versions = {name: keys.version(name) for name in sorted(state.libraries)}
        target = f"{LIVE}{type(self.given).__name__}"
        return {"target": target, "data": state.digest(), "source": own, "libraries": versions}


class _LiveState(StateDigest):
    """The state of an object without a source file of its own: with its code, and the libraries it uses."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.libraries: set[str] = set()
        self.sources: set[Path] = set()

    def _hash_function(self, function: types.FunctionType) -> None:
        if self._ours(function.__code__.co_filename):
            for code in codes(function.__code__):
                self.add((code.co_code, code.co_names, code.co_varnames, code.co_freevars))
                self.add([const for const in code.co_consts if not isinstance(const, types.CodeType)])
        else:
            self._record_library(function.__module__)
        super()._hash_function(function)

    def _hash_class(self, given: type) -> None:
        self._record_library(given.__module__)
        super()._hash_class(given)

    def _hash_object(self, value: Any) -> None:
        if is_module(value):  # without `training`: the network is used in eval mode anyway
            self.add(type(value))
            self.add({name: held for name, held in vars(value).items() if name != "training"})
        else:
            super()._hash_object(value)

    def _record_library(self, module: str | None) -> None:
        """Record the library that a module is of; for modules of Diorama their source file."""
        top = (module or "").split(".")[0]
        file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
        if top == "diorama":
            self.sources.add(Path(file))
        elif top and top not in sys.stdlib_module_names and not self._ours(file):
            self.libraries.add(top)

    def _ours(self, file: str) -> bool:
        """Whether code is the user's: not Diorama's or of an installed library. In notebooks the file does not exist."""
        return bool(file) and not any(Path(file).is_relative_to(place) for place in _INSTALLED)


_INSTALLED = [Path(place) for place in {*sysconfig.get_paths().values(), str(keys.OURS.folder)} if place != sys.prefix]


def _of_ours(kind: Kind, given: Any) -> spec.Spec | None:
    """The spec of an object or class of this package whose parameters can be written in a spec."""
    made = given if inspect.isclass(given) else type(given)
    place = f"diorama.{kind}s."
    listed = {entry.path: full for full, entry in entries(kind).items()}
    if not made.__module__.startswith(place) or (found := listed.get(keys.OURS.file(made.__module__))) is None:  # type: ignore[arg-type]
        return None
    if inspect.isclass(given):
        return spec.Spec(found)
    named = {p.name: (getattr(given, p.name, p.empty), p.default) for p in parameters(made, kind)}
    values = {name: value for name, (value, default) in named.items() if value is not default}
    plain = all(isinstance(value, str | int | float | bool | tuple | list | dict | None) for value in values.values())
    return spec.Spec(found, values) if plain else None


def _of_captum(kind: Kind, given: Any) -> spec.Spec | None:
    """The spec of a class of `captum.attr`."""
    captum = sys.modules.get("captum.attr")
    name = getattr(given, "__name__", "")
    known = kind == "method" and inspect.isclass(given) and captum is not None and getattr(captum, name, None) is given
    return spec.Spec("captum", {"name": name}) if known else None
