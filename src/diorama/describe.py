"""The output of `diorama show`: purpose, parameters, an example, and properties of a component; nothing is rendered."""

import inspect
import shlex
import textwrap
import typing
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from diorama.core.catalogue import Component, build, find, hints, nested, options, parameters
from diorama.core.contracts import Contract
from diorama.core.references import references
from diorama.core.spec import Spec, parse
from diorama.core.wording import documented, is_line
from diorama.layouts import layouts_of
from diorama.testing.kinds import named

WIDTH = 110


def describe(text: str, bib: bool = False) -> Iterator[str]:
    """The lines that describe a component, given by name or by spec; with `bib` its references as BibTeX too."""
    parsed = parse(text)
    for i, (kind, name) in enumerate(named(parsed)):
        component = find(kind, Spec(name, parsed.params))
        yield from ([""] if i else [])
        yield from _about(component)
        if kind in _PROPERTIES and not _missing(component):
            yield from ("", *_PROPERTIES[kind](build(kind, Spec(name, parsed.params)).object))
        elif kind in _PROPERTIES and _is_ours(component.target):
            yield from ("", *_PROPERTIES[kind](component.target))
        yield from _cited(component, bib)


def _missing(component: Component) -> list[str]:
    """Required parameters that are not given."""
    needed = (p.name for p in parameters(component.target) if p.default is p.empty)
    return [name for name in needed if name not in component.spec.params]


def _about(component: Component) -> Iterator[str]:
    target: Any = component.target
    listed, texts = parameters(target), meanings(target)
    yield f"{component.kind} {component.name}"
    yield from (inspect.getdoc(inspect.getmodule(target)) or "").splitlines()
    if prose := _prose(inspect.getdoc(target) or ""):
        yield from ("", *prose)
    if listed:
        yield from ("", "parameters")
        for p, line in zip(listed, parameter_lines(component), strict=True):
            yield f"  {line}"
            yield from textwrap.wrap(texts.get(p.name, ""), WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    if _is_ours(target) and target.example:
        yield from ("", "example", f"  {target.example.replace('{}', _shell_spec(component))}")


def parameter_lines(component: Component) -> list[str]:
    """Each parameter of a component as `name: type = default`."""
    target: Any = component.target
    inner = nested(target, component.kind)
    stated = {p: f"a {inner[p.name].kind}" if p.name in inner else _annotation(target, p) for p in parameters(target)}
    return [_parameter(p, kind) for p, kind in stated.items()]


def _is_ours(target: Any) -> bool:
    return inspect.isclass(target) and issubclass(target, Contract)


def meanings(target: Any) -> dict[str, str]:
    """The meaning of each parameter, from the docstrings of a class and its base classes (the nearest one counts).

    >>> from diorama.protocols.codes.mig import Mig
    >>> list(meanings(Mig))
    ['frames', 'nulls', 'rule', 'defect', 'bins']
    """
    found: dict[str, str] = {}
    for owner in reversed(target.__mro__ if inspect.isclass(target) else (target,)):
        found |= documented(inspect.cleandoc(owner.__doc__ or ""))
    return found


def _prose(text: str) -> list[str]:
    """A docstring without the lines that document parameters."""
    blocks = [block for block in text.split("\n\n") if not is_line(block)]
    return "\n\n".join(blocks).splitlines()


def _parameter(p: inspect.Parameter, stated: str) -> str:
    return f"{p.name}{stated and f': {stated}'}" + (" (required)" if p.default is p.empty else f" = {p.default!r}")


def _annotation(target: Any, p: inspect.Parameter) -> str:
    # a name that is imported for type checkers only has no hint, and is shown as written
    return "" if p.annotation is p.empty else _type_text(hints(target, bounds=True).get(p.name, p.annotation))


def _type_text(hint: Any) -> str:
    if typing.get_origin(hint) is typing.Annotated:
        kind, *bounds = typing.get_args(hint)
        return ", ".join([_type_text(kind), *map(str, bounds)])
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(repr, typing.get_args(hint)))
    if len(found := options(hint)) > 1:
        return " | ".join(map(_type_text, found))
    if hint is type(None):
        return "None"
    return hint if isinstance(hint, str) else inspect.formatannotation(hint)


def _shell_spec(component: Component) -> str:
    """The spec as it is written in a shell, with … for required parameters that are not given."""
    given = component.spec.params
    needed = [f"{name}=…" for name in _missing(component)]
    text = str(Spec(component.name.rpartition("/")[2] if not given else component.spec.name, given))
    if needed:
        text = f"{text[:-1]}, {', '.join(needed)})" if given else f"{text}({', '.join(needed)})"
    return text if text.isidentifier() or text == component.name else shlex.quote(text).replace("'", '"')


def _value(source: Any, name: str) -> Any:
    """A member of a component, or of its class if parameters are missing; None if it is a property of the object."""
    found = getattr(source, name)
    return None if isinstance(found, property | cached_property) else found


def _world(world: Any) -> Iterator[str]:
    """Truth, factors, layouts, number of scenes, and note."""
    truth, factors, length, note = (_value(world, name) for name in ("truth", "factors", "length", "note"))
    yield from ([f"truth: {', '.join(truth) or 'none'}"] if truth is not None else [])
    yield from _lines("do can change", factors or {})
    yield f"layouts: {', '.join(layouts_of(world))}"
    if not inspect.isclass(world):
        yield f"scenes: {length or 'as many as you like'}"
        yield from ([f"note: {note}"] if note else [])
    if {"reflectance", "shading"} <= set(truth or ()):
        yield _exactness(world.staged)


def _exactness(staged: bool) -> str:
    """How exactly the layers of a world explain the image, and how to verify it."""
    if staged:
        return "image = reflectance · shading + specular, exactly; diorama check verifies it"
    return "image ≈ reflectance · shading + specular; a run with -p lmse gives the truth_residual of each case"


def _protocol(protocol: Any) -> Iterator[str]:
    """What a protocol judges, what it needs of a world, its metrics, and the leading one."""
    metrics, derived, ends = (_value(protocol, name) for name in ("metrics", "derived", "range"))
    yield f"judges: {f'methods of the track {protocol.track}' if protocol.track else 'the model itself'}"
    if needs := [need if isinstance(need, str) else need.in_words for need in protocol.needs]:
        yield f"needs of the world: {', '.join(needs)}"
    if metrics:
        yield from textwrap.wrap(f"metrics of a case: {', '.join(metrics)}", WIDTH, subsequent_indent="  ")
    if derived:
        yield f"metrics of all cases: {', '.join(derived)}"
    if metrics and derived is not None and ends:
        yield f"leads: {(*derived, *metrics)[0]}, {ends[0]:g} to {ends[1]:g}, {protocol.direction} is better"
    if protocol.doses:
        yield f"doses: {', '.join(f'{d:g}' for d in protocol.doses)}: {protocol.dose_name}"


_PROPERTIES: dict[str, Callable[[Any], Iterator[str]]] = {"world": _world, "protocol": _protocol}


def _lines(title: str, texts: dict[str, str]) -> Iterator[str]:
    if texts:
        width = max(map(len, texts))
        yield f"{title}:"
        yield from (f"  {name.ljust(width)}  {meaning}" for name, meaning in texts.items())


def _cited(component: Component, bib: bool) -> Iterator[str]:
    cited = references(list(getattr(component.target, "cite", ())))
    if cited:
        yield ""
        yield from (reference.text for reference in cited)
        if bib:
            yield from ("\n" + reference.bibtex for reference in cited if reference.bibtex)
        else:
            yield f"(diorama show {component.name} --bib prints BibTeX)"
