"""What `diorama show` prints: a component's purpose, parameters and references, and what a full spec comes to."""

import inspect
from collections.abc import Iterator
from typing import Any

from diorama.core.catalogue import (
    KINDS,
    Component,
    Kind,
    Nested,
    build,
    entries,
    find,
    nested,
    of_family,
    parameters,
)
from diorama.core.errors import InputError, did_you_mean
from diorama.core.references import references
from diorama.core.spec import Spec, parse
from diorama.testing.kinds import kind_of


def describe(text: str) -> Iterator[str]:
    """The lines that describe a component, given by name or by spec."""
    parsed = parse(text)
    found = [(kind, name) for kind in KINDS for name in _matches(kind, parsed)]
    if not found:
        names = {n for kind in KINDS for e in entries(kind) for n in (e, e.rpartition("/")[2])}
        raise InputError(f"nothing is called {parsed.name!r}; {did_you_mean(parsed.name, sorted(names))} (diorama ls)")
    for kind, name in found:
        component = find(kind, Spec(name, parsed.params))
        yield from _about(component)
        if kind == "world" and all(
            p.default is not p.empty or p.name in parsed.params for p in parameters(component.target)
        ):
            yield from _world(build(kind, Spec(name, parsed.params)))


def _matches(kind: Kind, parsed: Spec) -> list[str]:
    if of_family(kind, parsed.name):
        return [parsed.name]
    if ":" in parsed.name:
        return [parsed.name] if kind == kind_of(find("model", parsed).target, parsed.name) else []
    return [name for name in entries(kind) if parsed.name in (name, name.rpartition("/")[2])]


def _about(component: Component) -> Iterator[str]:
    module = inspect.getmodule(component.target)
    yield f"{component.kind} {component.name}"
    yield (inspect.getdoc(module) or "").partition("\n")[0]
    if documented := inspect.getdoc(component.target):
        yield ""
        yield documented
    listed, inner = parameters(component.target), nested(component.target, component.kind)
    if listed:
        yield ""
        yield "parameters"
        yield from (f"  {_parameter(p, inner.get(p.name))}" for p in listed)
    for name in ("metrics", "direction", "range", "needs", "track", "truth", "factors", "views"):
        if not isinstance(value := getattr(component.target, name, None), property | None):
            yield f"{name}: {_brief(value)}"
    cited = references(list(getattr(component.target, "cite", ())))
    if cited:
        yield ""
        yield from (reference.text for reference in cited)
        yield from ("\n" + reference.bibtex for reference in cited if reference.bibtex)


def _parameter(p: inspect.Parameter, component: Nested | None) -> str:
    stated = p.annotation if isinstance(p.annotation, str) else inspect.formatannotation(p.annotation)
    stated = f"a {component.kind}" if component else stated
    kind = "" if p.annotation is p.empty else f": {stated}"
    return f"{p.name}{kind}" + (" (required)" if p.default is p.empty else f" = {p.default!r}")


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{k} ({v})" for k, v in value.items())
    if isinstance(value, tuple) and len(value) > 6:
        return f"{', '.join(map(str, value[:3]))}, … ({len(value)})"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _world(component: Component) -> Iterator[str]:
    """How many scenes there are, what is to be noted, and what is promised of the truth; nothing is rendered."""
    world = component.object
    yield ""
    yield f"scenes: {world.length or 'as many as you like'}"
    if note := world.note:
        yield f"note: {note}"
    if {"reflectance", "shading"} <= set(world.truth):
        yield _promise(component)


def _promise(component: Component) -> str:
    """What holds of image and layers, and where the reader finds it measured."""
    if not component.object.staged:
        return (
            "truth: image ≈ reflectance · shading + specular; a run with -p lmse gives the truth_residual of each case"
        )
    return f'truth: image = reflectance · shading + specular, exactly; diorama check "{component.spec}" verifies it'
