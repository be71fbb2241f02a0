"""Contract checks for protocols. Each takes the component and returns a problem in one line, or an empty string."""

import json
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.catalogue import Component, Kind, build, entries
from diorama.core.errors import InputError
from diorama.core.guard import attempt
from diorama.core.plan import Cell, Plan
from diorama.core.refusals import lacking
from diorama.core.rows import Row
from diorama.core.run import Run, score_case

_CASES = 4
#: Small staged worlds; a protocol is tried with the first one that has the truth it needs.
_WORLDS = (
    *("mondrian(size=64, patches=8)", "sprites(counts=(3, 2, 3, 3, 3))"),
    *("birds", "mosaic(source=birds(size=64), per_class=1)"),
    "concepts(change=light, scenes=4, images=4, size=24)",
)
#: The bundled models for protocols that need a model, by world; birds_cnn for all other worlds.
_MODELS = {"sprites": "sprites_moments(counts=(3, 2, 3, 3, 3))"}


@lru_cache(maxsize=16)
def _built(kind: Kind, text: str) -> Component:
    """A world or a model, built once for all protocols."""
    return build(kind, text)


def _world(component: Component) -> Component:
    for text in (*component.object.tried_on, *_WORLDS):
        world = _built("world", text)
        if not lacking(world, component) and _takes(component.object, world):
            return world
    raise InputError(f"no bundled staged world has what {component.name} needs, so it cannot be tried")


def _takes(protocol: Any, world: Component) -> bool:
    """Whether a protocol can make cases from a world: some need worlds whose light can be changed."""
    return not isinstance(attempt(lambda: protocol.case(world.object, 0, 0)).error, InputError)


#: The rows of the controls of the protocol that is being checked.
_KNOWN: dict[tuple[str, str], list[Row]] = {}


def _rows(component: Component, control: str) -> list[Row]:
    """The rows of a control over a few cases of a staged world, computed once for all checks."""
    key = (component.digest, control)
    if key not in _KNOWN:
        if len(_KNOWN) > 8:
            _KNOWN.clear()
        _KNOWN[key] = _computed(component, control)
    return _KNOWN[key]


def _computed(component: Component, control: str) -> list[Row]:
    world = _world(component)
    method = build("method", f"{component.object.track}/random") if control == "random" else None
    model = _built("model", _MODELS.get(world.name, "birds_cnn")) if component.object.model else None
    count = component.object.count(world.object, _CASES)
    cell = Cell(world, model, method, component, 0, count, control)
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), Plan([world.label], [], [component.label], controls=True))
        return [row for i in range(count) for row in score_case(run, cell, i)]


def _leading(protocol: Any) -> str:
    """The leading metric of cases: the first of the whole cell that cases have too, otherwise the first."""
    return next((m for m in protocol.derived if m in protocol.metrics), protocol.metrics[0])


def _mean(rows: list[Row], metric: str) -> np.ndarray:
    failed = [row for row in rows if row.status == "error"]
    if failed:
        raise ValueError(failed[0].reason)
    return np.array([row.value for row in rows if row.metric == metric], float).mean(axis=0)


def its_track_has_a_random_method(component: Component) -> str:
    """The track has a random method for the chance control. Other declarations are checked when a protocol is built."""
    track = component.object.track
    return "" if not track or f"{track}/random" in entries("method") else f"track {track!r} has no random method"


def cases_do_not_depend_on_their_number(component: Component) -> str:
    """The i-th case is a function of (protocol, world, seed, i), and its payload is JSON."""
    world = _world(component).object
    count = component.object.count(world, 4)
    first = [component.object.case(world, 0, i) for i in range(count)]
    if [component.object.case(world, 0, i) for i in reversed(range(count))] != first[::-1]:
        return "a case changes with the order in which cases are asked for"
    if len({case.key for case in first}) != count:
        return "two cases have the same key"
    return "" if json.loads(json.dumps(first[0].payload)) == first[0].payload else "a payload is not JSON"


def every_metric_is_scored(component: Component) -> str:
    """A case gives a row for every declared metric and no other."""
    rows = _rows(component, "oracle" if component.object.track else "")
    _mean(rows, component.object.metrics[0])
    return "" if {row.metric for row in rows} == set(component.object.metrics) else "some declared metrics have no row"


def oracle_reaches_the_top(component: Component) -> str:
    """The true answer scores at the good end of the range, unless `ceiling` or `no_oracle` explains why it cannot."""
    protocol = component.object
    if not protocol.track or protocol.ceiling or protocol.no_oracle:
        return ""
    best = protocol.range[0] if protocol.direction == "lower" else protocol.range[1]
    mean = float(_mean(_rows(component, "oracle"), _leading(protocol)))
    return "" if abs(mean - best) < 1e-6 * max(1, abs(best)) else f"the oracle scores {mean:.6g}, the best is {best}"


def random_is_worse_than_the_oracle(component: Component) -> str:
    """Chance scores worse than the truth, if the truth has a score."""
    metric = _leading(component.object)
    if not component.object.track or component.object.no_oracle:
        return ""
    oracle, random = (float(_mean(_rows(component, c), metric)) for c in ("oracle", "random"))
    worse = random > oracle if component.object.direction == "lower" else random < oracle
    return "" if worse else f"random scores {random:.6g}, the oracle {oracle:.6g}"


def doses_are_followed(component: Component) -> str:
    """A larger dose of error never scores better than a smaller one; skipped if the truth has no score."""
    if not component.object.doses or component.object.no_oracle:
        return ""
    means = _mean(_rows(component, "dose"), component.object.metrics[0])
    steps = np.diff(means) * (1 if component.object.direction == "lower" else -1)
    if (steps < -1e-9).any():
        at = int(np.argmax(steps < -1e-9))
        return f"dose {component.object.doses[at + 1]} scores better than dose {component.object.doses[at]}"
    return "" if steps.sum() > 0 else "the score does not move with the dose"


def scoring_is_repeatable(component: Component) -> str:
    """The same case gives the same values twice."""
    control = "random" if component.object.track else ""
    runs = _rows(component, control), _computed(component, control)
    once, twice = ([(row.metric, row.value) for row in rows] for rows in runs)
    return "" if once == twice else "the same case scored twice gives two values"


CHECKS: tuple[Callable[[Component], str], ...] = (
    its_track_has_a_random_method,
    cases_do_not_depend_on_their_number,
    every_metric_is_scored,
    oracle_reaches_the_top,
    random_is_worse_than_the_oracle,
    doses_are_followed,
    scoring_is_repeatable,
)
