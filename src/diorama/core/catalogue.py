"""The catalogue: the file system is the registry. `methods/decompose/weiss.py` is `weiss`, its class `Weiss`.

A file that defines the class of its own name (`retinex_gray.py`: `RetinexGray`) is a component of the kind whose folder it
is in, at any depth: subfolders are families (`protocols/layers/lmse.py`), or hold a component with its helpers
(`worlds/birds/birds.py`). Every other file is a helper.
"""

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from diorama.adapt.classifying import is_module
from diorama.adapt.neighbours import load_file
from diorama.adapt.state import StateDigest
from diorama.adapt.torchvision_ops import make_importable
from diorama.core import keys, spec
from diorama.core.bounds import Within
from diorama.core.contracts import Contract, Method, Model, Protocol, World
from diorama.core.errors import InputError, did_you_mean
from diorama.core.guard import attempt, no_exit
from diorama.core.scene import digest
from diorama.core.watch import Snapshot

Kind = Literal["world", "model", "method", "protocol"]
CONTRACTS: dict[Kind, type[Contract]] = {"world": World, "model": Model, "method": Method, "protocol": Protocol}
KINDS = tuple(CONTRACTS)
_PACKAGE = Path(__file__).resolve().parents[1]
#: The beginning of the spec of a live object (`adapt/live.py`).
LIVE = "live:"
Made = TypeVar("Made", bound=Contract)


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the catalogue: full name, first line of the module's docstring, and where it is."""

    kind: Kind
    name: str
    summary: str
    path: Path


@cache
def entries(kind: Kind) -> dict[str, Entry]:
    """All bundled and installed components of a kind by full name, read without importing any of them."""
    found = {e.name: e for e in bundled(kind)}
    for point in importlib.metadata.entry_points(group=f"diorama.{kind}s"):
        found.setdefault(point.name, Entry(kind, point.name, f"from {point.value}", Path(point.value)))
    return dict(sorted(found.items()))


def bundled(kind: Kind) -> Iterator[Entry]:
    """The components of a kind that are part of this package."""
    base = _PACKAGE / f"{kind}s"
    for path in sorted(base.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if re.search(rf"^class {class_name(path)}\b", source, re.MULTILINE):
            track = f"{path.relative_to(base).parts[0]}/" if kind == "method" else ""
            yield Entry(kind, track + path.stem, _first_line(source), path)


def _first_line(source: str) -> str:
    """The first line of a module's docstring, by a regular expression where that is enough: parsing is slow."""
    plain = re.match(r'"""([^"\\\n]+)("""\n|\n)', source)
    return plain[1].strip() if plain else (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def class_name(path: Path) -> str:
    """The class that makes a file a component: the file's name in CapWords.

    >>> class_name(Path("methods/decompose/retinex_gray.py"))
    'RetinexGray'
    """
    return "".join(word.capitalize() for word in path.stem.split("_"))


def full_name(kind: Kind, name: str) -> str:
    """The full name of a bundled or installed component; the short one works where it is unambiguous."""
    known = entries(kind)
    if name in known:
        return name
    short = [n for n in known if n.rpartition("/")[2] == name]
    if len(short) == 1:
        return short[0]
    if short:
        raise InputError(f"{kind} {name!r} is ambiguous: write {' or '.join(short)}")
    names = sorted({*known, *(n.rpartition("/")[2] for n in known)})
    raise InputError(f"unknown {kind} {name!r}; {did_you_mean(name, names)} (diorama ls {kind}s)")


@dataclass(frozen=True)
class Component(Generic[Made]):
    """A world, model, method or protocol: its spec, the class or function that makes it, and the object itself.

    A component that needs another one declares a parameter of its kind, `source: Component[World]`: a spec that is given
    for it is built first, and its key is part of the component's key.
    """

    kind: Kind
    spec: spec.Spec
    name: str
    target: Callable[..., Any]
    path: Path
    root: keys.Root
    shown: str = ""

    @cached_property
    def params(self) -> dict[str, Any]:
        """Every parameter with its value, defaults filled in, components built."""
        return {**_defaults(self), **self.arguments}

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The arguments for the target: the parameters given, and the components it declares."""
        declared, defaults = nested(self.target, self.kind), _defaults(self)
        given = {**{name: defaults[name] for name in declared if name in defaults}, **self.spec.params}
        return {n: declared[n].component(self.name, n, v) if n in declared else v for n, v in given.items()}

    def with_default(self, **params: Any) -> "Component[Made]":
        """The component with those of `params` that it takes and its spec leaves open."""
        known = {p.name for p in parameters(self.target, self.kind)} - set(self.spec.params)
        open_ones = {name: value for name, value in params.items() if name in known and value is not None}
        return replace(self, spec=spec.Spec(self.spec.name, {**self.spec.params, **open_ones})) if open_ones else self

    def on(self, world: str) -> "Component[Made]":
        """The method with the parameters that follow from the world of this name, and the same label as before.

        An InputError says what the world lacks for it.
        """
        follows = self.object.on_world(world)  # type: ignore[attr-defined]
        if not follows:
            return self
        found = replace(self.with_default(**follows), shown=self.label)
        _ = found.object
        return found

    @cached_property
    def object(self) -> Made:
        """The component itself, made once."""
        from diorama.adapt import adapt

        return adapt(self.kind, self.made, self.name)  # type: ignore[return-value]

    def at(self, point: dict[str, Any]) -> Any:
        """The component with some parameters changed."""
        from diorama.adapt import adapt

        return adapt(self.kind, self.target(**{**self.arguments, **point}), self.name)

    @cached_property
    def watch(self) -> Snapshot | None:
        """A snapshot of the torch modules behind a model; None if it has none."""
        module, folded = self.object.module, self.object.folded  # type: ignore[attr-defined]
        return Snapshot(module, *([folded.module] if folded else [])) if is_module(module) else None

    @cached_property
    def made(self) -> Any:
        """The object that the spec makes, before it is adapted."""
        if is_maker(self.target, self.kind):
            arguments = self.arguments
            with no_exit():
                outcome = attempt(lambda: self.target(**arguments))
            if isinstance(outcome.error, InputError):
                raise outcome.error
            if outcome.error:
                raise InputError(f"{self.spec} cannot be made: {outcome.reason}") from outcome.error
            return outcome.value
        if self.spec.params:
            raise InputError(f"{self.name} is a function and takes no parameters here, but {self.spec} gives some")
        return self.target

    @cached_property
    def key(self) -> dict[str, Any]:
        """Everything that identifies the component: target, parameters (data by content, not by path), source, libraries."""
        located = self.object.located
        shown = {k: _plain(v) for k, v in self.params.items() if isinstance(v, Component) or k not in located}
        return {
            "target": f"{self.path.stem}:{getattr(self.target, '__name__', self.name)}",
            "params": shown,
            "data": self._data(),
            **keys.source_key(self.path, self.root),
        }

    @property
    def libraries(self) -> frozenset[str]:
        """The libraries that it and the components in it import."""
        inner = [value.libraries for value in self.arguments.values() if isinstance(value, Component)]
        return frozenset(self.key["libraries"]).union(*inner)

    def _data(self) -> str | None:
        """The digest of the component's data: its own `fingerprint`, or else a digest of its attributes."""
        if self.root == keys.OURS:
            return self.object.fingerprint()
        own = getattr(type(self.made), "fingerprint", Contract.fingerprint) is not Contract.fingerprint
        return self._own_fingerprint() if own else self._state_digest()

    def _own_fingerprint(self) -> str:
        given = attempt(self.object.fingerprint)
        if given.error or not isinstance(given.value, str):
            what = given.reason or f"it gave {type(given.value).__name__}"
            raise InputError(f"{self.label}: fingerprint() should return a text that identifies its data: {what}")
        return given.value

    def _state_digest(self) -> str:
        """The digest of arrays, weights, files …; if part of it cannot be hashed, a message says that results are not
        reused.
        """
        state = StateDigest(self.root.folder.resolve())
        for part in self.arguments.values():
            if isinstance(part, Component):
                state.leave_out(part)
        for part in (self.target, self.made):
            state.add(part)
        if state.unknown:
            print(
                f"diorama: {self.label} holds {state.unknown[0]}, which cannot be hashed: its results are not reused"
                " by later runs; give it a fingerprint(), a text that changes with its data",
                file=sys.stderr,
            )
        return state.digest()

    @cached_property
    def digest(self) -> str:
        """The digest of the key."""
        return digest(self.key)

    @cached_property
    def seen_size(self) -> tuple[int, int] | None:
        """Height and width of the first image of a staged world; None of others, whose images may differ in size."""
        world: Any = self.object
        if world.length is not None:
            return None
        return attempt(lambda: world.render([world.scene_at(0, 0)[1]])[0].image.shape[:2]).value

    @property
    def is_live(self) -> bool:
        """Whether it is a live object of this process."""
        return self.spec.name.startswith(LIVE)

    @property
    def label(self) -> str:
        """The component's name in tables: the user's own, or its spec."""
        return self.shown or str(self.spec)


def _defaults(component: Component) -> dict[str, Any]:
    return {p.name: p.default for p in parameters(component.target, component.kind) if p.default is not p.empty}


def _plain(v: Any) -> Any:
    if isinstance(v, Component):
        return v.key
    if isinstance(v, list | tuple):
        return [_plain(x) for x in v]
    if isinstance(v, dict):
        return {str(k): _plain(x) for k, x in v.items()}
    return v if isinstance(v, str | int | float | bool | None) else repr(v)


def find(kind: Kind, text: str | spec.Spec) -> Component:
    """The component of a spec; its parameters are not checked yet. `NAME=SPEC` gives it another label."""
    if isinstance(text, str) and text.startswith(LIVE):
        gone = text.removeprefix(LIVE)
        raise InputError(f"{gone} was an object of a Python session: call diorama.evaluate with it and the same out=")
    own, text = spec.named(text) if isinstance(text, str) else ("", text)
    found = _find(kind, spec.parse(text) if isinstance(text, str) else text)
    return replace(found, shown=own) if own else found


def _find(kind: Kind, parsed: spec.Spec) -> Component:
    if ":" not in parsed.name:
        return _find_bundled(kind, parsed)
    if not of_family(kind, parsed.name):
        return _load_outside(kind, parsed)
    family, _, name = parsed.name.partition(":")
    found = _find_bundled(kind, spec.Spec(family, {"name": name, **parsed.params}))
    return replace(found, name=f"{found.name}:{name}", shown=str(parsed))


def of_family(kind: Kind, name: str) -> bool:
    """Whether a name has the form FAMILY:NAME: timm:resnet50(classes=50) is timm(name=resnet50, classes=50)."""
    family, colon, _ = name.partition(":")
    return bool(colon) and family in entries(kind)


def build(kind: Kind, given: str | spec.Spec | Component) -> Component:
    """The component of a spec, made now, so that mistakes in its parameters are found; a component stays as it is."""
    if isinstance(given, Component):
        return given
    component = find(kind, given)
    check_parameters(component.name, component.target, component.spec.params, kind)
    _ = component.object
    return component


@dataclass(frozen=True, slots=True)
class Nested:
    """A parameter that is a component: its kind, and which texts are not specs (paths if `places`, and `names`)."""

    kind: Kind
    places: bool = False
    names: tuple[str, ...] = ()

    def component(self, owner: str, parameter: str, given: Any) -> Any:
        """The component for a spec, a component or None."""
        if given is None or isinstance(given, Component):
            return given
        if not isinstance(given, str):
            raise InputError(f"{owner}: {parameter}={given!r} should name a {self.kind} (diorama ls {self.kind}s)")
        if self.places and is_place(given):
            return given
        if self.kind == "world" and is_place(given):
            return _photo_folder(owner, parameter, given)
        if self.names and spec.parse(given).name in self.names:
            return given
        return replace(build(self.kind, given), shown=given)


def is_place(text: str) -> bool:
    """Whether a text is the path of a file or folder rather than the spec of a component.

    >>> is_place("photos/dogs"), is_place("table.csv"), is_place("birds(size=64)"), is_place("./mine.py:Mine")
    (True, True, False, False)
    """
    if Path(text).expanduser().exists():
        return True
    return not set("(:") & set(text) and ("/" in text or bool(Path(text).suffix))


def _photo_folder(owner: str, parameter: str, folder: str) -> "Component":
    """A folder of pictures as a world."""
    if not Path(folder).expanduser().is_dir():
        raise InputError(f"{owner}: {parameter}: there is no folder {folder!r}: give a folder of pictures or a world")
    return replace(build("world", spec.Spec("photo_folder", {"root": folder})), shown=folder)


def nested(target: Callable[..., Any], kind: Kind) -> dict[str, Nested]:
    """The parameters of a component that are components themselves."""
    if not is_maker(target, kind):
        return {}
    found = {name: _nested_kind(hint) for name, hint in hints(target).items()}
    return {name: declared for name, declared in found.items() if declared}


def _nested_kind(hint: Any) -> Nested | None:
    members = options(hint)
    inner = next((typing.get_args(o)[0] for o in members if typing.get_origin(o) is Component), None)
    if inner is None:
        return None
    kind = next(kind for kind, contract in CONTRACTS.items() if issubclass(inner, contract))
    names = [name for o in members if typing.get_origin(o) is Literal for name in typing.get_args(o)]
    return Nested(kind, str in members, tuple(names))


def options(hint: Any) -> tuple[Any, ...]:
    """The members of a union; anything else alone."""
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    return typing.get_args(hint) if union else (hint,)


def hints(target: Callable[..., Any], bounds: bool = False) -> dict[str, Any]:
    """The types of a maker's parameters, with their bounds if `bounds` is set; empty where they cannot be resolved."""
    try:
        return typing.get_type_hints(target.__init__ if inspect.isclass(target) else target, include_extras=bounds)
    except (NameError, TypeError):
        return {}


def _find_bundled(kind: Kind, parsed: spec.Spec) -> Component:
    name = full_name(kind, parsed.name)
    entry = entries(kind)[name]
    if entry.path.suffix != ".py":  # an installed entry point, written package.module:Name
        return _load_outside(kind, spec.Spec(str(entry.path), parsed.params))
    module = importlib.import_module(".".join(("diorama", *entry.path.relative_to(_PACKAGE).with_suffix("").parts)))
    target = getattr(module, class_name(entry.path))
    return Component(kind, parsed, name, target, entry.path, keys.OURS)


def _load_outside(kind: Kind, parsed: spec.Spec) -> Component:
    where, _, attribute = parsed.name.rpartition(":")
    make_importable()  # a user's file may import torchvision, or what imports it
    if where.endswith(".py"):
        path = Path(where).expanduser()
        if not path.is_file():
            raise InputError(f"{kind} {parsed.name!r}: there is no file {where}")
        module, root = load_file(path.resolve()), keys.Root("", path.resolve().parent)
    else:
        module, root = _load_module(kind, where, parsed.name)
        path = Path(module.__file__ or "")
    target = getattr(module, attribute, None)
    if target is None:
        public = [n for n in vars(module) if not n.startswith("_")]
        raise InputError(f"{kind} {parsed.name!r}: {where} has no {attribute!r}; {did_you_mean(attribute, public)}")
    if not (callable(target) or (kind == "model" and hasattr(target, "logits"))):
        raise InputError(f"{kind} {parsed.name!r}: {attribute} is {type(target).__name__}, not a class or function")
    return Component(kind, parsed, parsed.name, target, path.resolve(), root)


def _load_module(kind: Kind, where: str, name: str) -> tuple[types.ModuleType, keys.Root]:
    try:
        module = importlib.import_module(where)
    except ImportError as error:
        raise InputError(f"{kind} {name!r}: cannot import {where}: {error}") from error
    top = where.split(".", maxsplit=1)[0]
    package = sys.modules[top]
    if hasattr(package, "__path__"):
        return module, keys.Root(top, Path(next(iter(package.__path__))))
    if getattr(package, "__file__", None) is None:  # builtins, sys …
        raise InputError(f"{kind} {name!r}: {top} is part of Python itself; name a class or function of a file")
    return module, keys.Root("", Path(package.__file__ or "").parent)


def is_maker(target: Any, kind: Kind) -> bool:
    """Whether a target is called to make the component: a class, or for models and methods a function without required
    arguments.
    """
    if inspect.isclass(target):
        return True
    if kind not in ("model", "method") or not inspect.isfunction(target):
        return False
    return all(p.default is not p.empty for p in inspect.signature(target).parameters.values())


def parameters(target: Callable[..., Any], kind: Kind = "method") -> list[inspect.Parameter]:
    """The named parameters of a component; a function that is the component itself has none."""
    try:
        listed = inspect.signature(target).parameters.values() if is_maker(target, kind) else ()
    except ValueError:  # some classes written in C have no signature
        raise InputError(f"{target.__module__}:{target.__name__} has no signature: wrap it in a function") from None
    return [p for p in listed if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def check_parameters(owner: str, target: Callable[..., Any], params: Mapping[str, Any], kind: Kind = "method") -> None:
    """Raise InputError if a target does not take these parameters, by name or (for plain types) by type."""
    known = {p.name: p for p in parameters(target, kind)}
    if not is_maker(target, kind):
        return
    for name, given in params.items():
        if name not in known:
            now = getattr(target, "renamed", {}).get(name)
            hint = f"it is called {now!r} now" if now else did_you_mean(name, list(known))
            raise InputError(f"{owner} has no parameter {name!r}; {hint}")
        _check_type(owner, target, name, given)
    missing = [n for n, p in known.items() if p.default is p.empty and n not in params]
    if missing:
        raise InputError(f"{owner} needs {missing[0]!r}: write {owner}({missing[0]}=…)")


def _check_type(owner: str, target: Callable[..., Any], name: str, given: Any) -> None:
    """Refuse a literal that does not fit the parameter's annotation, where that is a plain type."""
    hint = hints(target).get(name)
    if hint is None:
        return
    members = options(hint)
    if all(typing.get_origin(o) is Literal or o is type(None) for o in members):
        choices = [choice for o in members for choice in typing.get_args(o) or (None,)]
        if given not in choices:
            raise InputError(f"{owner}: {name}={given!r} is not one of {', '.join(map(repr, choices))}")
        return
    lists = any(typing.get_origin(o) in (tuple, list) for o in members)
    if lists and str not in members and isinstance(given, str | int | float):
        raise InputError(f"{owner}: {name}={given!r} should be a list: write {name}=[{given}]")
    if not all(o in (int, float, str, bool, type(None)) for o in members):
        return
    numeric = isinstance(given, int) and not isinstance(given, bool) and float in members
    if not numeric and type(given) not in members:
        wanted = " or ".join("None" if o is type(None) else o.__name__ for o in members)
        raise InputError(f"{owner}: {name}={given!r} should be {wanted}")
    for option in options(hints(target, bounds=True)[name]) if given is not None else ():
        for bound in typing.get_args(option)[1:]:
            if isinstance(bound, Within) and not bound.allows(given):
                raise InputError(f"{owner}: {name}={given!r}: give a number {bound}")
