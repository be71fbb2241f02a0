"""`diorama check`: run the contract suite on components and print which checks fail."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from diorama.core.catalogue import KINDS, Component, Kind, build, entries, find, parameters
from diorama.core.contracts import Saved
from diorama.core.errors import InputError
from diorama.core.guard import attempt
from diorama.core.spec import Spec, parse
from diorama.testing import decomposers, encoders, explainers, models, protocols, trainers, worlds
from diorama.testing.kinds import named

Say = Callable[[str], None]


def check_all(texts: list[str], say: Say) -> bool:
    """Check the components of some specs, or everything bundled. Returns whether all checks hold."""
    if texts:
        verdicts = [check_component(component, say) for component in map(_build_any, texts)]
        return all(verdicts)
    holds = True
    for kind in KINDS:
        for name in entries(kind):
            target = find(kind, Spec(name)).target
            required = [p.name for p in parameters(target) if p.default is p.empty]
            if required:
                say(f"skipped {kind} {name}: needs {required[0]}; diorama check '{name}({required[0]}=…)'")
            elif kind == "model" and (lacking := _lacking(Spec(name))):
                say(f"skipped model {name}: {lacking}")
            else:
                holds &= check_component(build(kind, Spec(name, dict(getattr(target, "quick", {})))), say)
    return holds


def _lacking(model: Spec) -> str:
    """The message that a bundled network's weights are missing, or an empty string."""
    outcome = attempt(lambda: build("model", model).object)
    return str(outcome.error) if isinstance(outcome.error, InputError) and "no checkpoint" in outcome.reason else ""


def check_component(component: Component, say: Say = print) -> bool:
    """Run every check of the component's kind; prints one line if all hold, otherwise one line for each that fails."""
    if component.kind == "method" and _track(component) == "explain" and (reason := explainers.cannot_try(component)):
        say(f"skipped method {component.label}: {reason}")
        return True
    checks = _checks(component)
    problems = []
    for check in checks:
        outcome = attempt(check)
        problem = outcome.reason if outcome.error else outcome.value
        if problem:
            problems.append(f"{check.func.__name__.replace('_', ' ')}: {problem}")
    if not problems:
        say(f"ok      {component.kind} {component.label} ({len(checks)} checks)")
    for problem in problems:
        say(f"FAILED  {component.kind} {component.label}: {problem}")
    return not problems


def _checks(component: Component) -> list[partial[str]]:
    if component.kind == "world":
        return [partial(check, component.object) for check in worlds.CHECKS]
    track = _track(component) if component.kind == "method" else ""
    if isinstance(component.object, Saved) and track != "represent":
        return [partial(decomposers.missing_files_are_named, component)]
    subject = explainers.Trial(component) if track == "explain" else component
    return [partial(check, subject) for check in _CHECKS[component.kind, track]]


def _track(component: Component) -> str:
    """The track of a method; for a plain function by the name of its first argument."""
    if component.object.track:
        return component.object.track
    first = next(iter(inspect.signature(component.target).parameters), "")
    return "explain" if first in ("module", "model") else "decompose"


_CHECKS: dict[tuple[Kind, str], tuple[Callable[[Any], str], ...]] = {
    ("protocol", ""): protocols.CHECKS,
    ("model", ""): models.CHECKS,
    ("method", "decompose"): decomposers.CHECKS,
    ("method", "explain"): explainers.CHECKS,
    ("method", "represent"): encoders.CHECKS,
    ("method", "concept"): trainers.CHECKS,
}


def _build_any(text: str) -> Component:
    """The component of a spec, of any kind."""
    parsed = parse(text)
    return build(named(parsed)[0][0], parsed)
