"""The Python interface: `evaluate` takes live objects and specs, and returns results that notebooks display."""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from diorama.adapt.arrays import Arrays, is_array
from diorama.adapt.classifying import is_module
from diorama.adapt.live import Live, component, listed
from diorama.core import device as devices
from diorama.core.catalogue import Component, Kind
from diorama.core.errors import InputError, tell
from diorama.core.plan import Plan
from diorama.core.progress import Progress
from diorama.core.run import Run, locked_run, silent
from diorama.core.watch import Snapshot
from diorama.launch.contract import Launcher
from diorama.launch.local import draw, launch
from diorama.launch.local import on as launched
from diorama.progress import shown
from diorama.report.summary import Results as Read
from diorama.report.summary import document, read_results
from diorama.results import Results


def evaluate(
    methods: Any = (),
    *,
    on: Any,
    by: Any,
    model: Any = (),
    cases: int | None = None,
    seed: int = 0,
    controls: bool = False,
    device: str = "auto",
    engine: str = "torch",
    processes: int = 1,
    progress: bool = True,
    out: str | Path | None = None,
    keep: str | None = None,
) -> Results:
    """Score methods on worlds (`on`) by protocols (`by`), for models if the protocols need one.

    Each of them is a spec ("lime(samples=200)"), a live object, or a list or dictionary of these; the keys of a dictionary
    are the names in tables and plots. Live objects: a torch module, a function, a class or object of captum, an
    attributor of zennit, a transformer of scikit-learn, computed answers as an array in the order of the cases, an object
    with the members of a contract. They are not changed.

    cases      how many; by default 32 of a staged world, all of a recorded one
    controls   also run oracle, chance and growing doses of error, and judge the protocol by them
    device     auto, cpu, cuda, cuda:1, mps
    engine     what computes logits: torch, or onnxruntime or openvino (pip install 'diorama[fast]'), which are faster on
               a CPU; gradients always come from torch
    processes  worker processes; more than one only with specs, which other processes can build too
    progress   show a bar with the time left and the current cell, or lines if stderr is no terminal
    out        a folder for the results, in which the same call continues; by default a temporary one, removed with the
               returned object
    keep       "maps" stores every answer, for `.maps` and for `.case` of results read from a folder
    """
    with devices.using(device):
        plan = replace(_plan(methods, model, on, by, cases, seed, controls, keep), engine=engine)
        if processes > 1:
            _check_shared(plan, processes)
        folder = _Folder(out)
        with _restoring_networks(plan), locked_run(folder.path, plan) as made:
            with shown("scoring", "cases") if progress else nullcontext(silent) as bar:
                if out is None:
                    launch(made, processes, bar)  # pictures are drawn when results are displayed
                else:
                    execute(made, processes, bar)
            results = Results(folder.path, made)
    results.held = folder  # a temporary folder is removed with the results
    return results


class _Folder:
    """The folder of a run; a temporary one is removed with this object."""

    def __init__(self, out: str | Path | None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="diorama-") if out is None else out)
        if out is None:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def _plan(
    methods: Any, model: Any, on: Any, by: Any, cases: int | None, seed: int, controls: bool, keep: str | None
) -> Plan:
    for name, given in (("on", on), ("by", by)):
        if not listed(given):
            kind = "world" if name == "on" else "protocol"
            raise InputError(f"{name} is empty: name a {kind}, e.g. {name}='{_EXAMPLES[kind]}' (diorama ls {kind}s)")
    worlds, protocols = _components("world", listed(on)), _components("protocol", listed(by))
    side = _common_size(worlds) if any(not isinstance(one, str) for _, one in listed(model)) else None
    models = _components("model", listed(model), side)
    given = [(name, _named_arrays(one, worlds, seed)) for name, one in listed(methods)]
    return Plan(worlds, _components("method", given), protocols, models, cases, seed, controls, keep or "")


_EXAMPLES = {"world": "birds", "protocol": "single_deletion"}


def _components(kind: Kind, given: list[tuple[str, Any]], side: int | None = None) -> list[str | Component]:
    """Specs unchanged, and live objects as components with unique labels."""
    found: list[str | Component] = []
    for name, one in given:
        if "=" in name:
            raise InputError(f"{name!r} cannot name a {kind}: leave out the sign =")
        if isinstance(one, str):
            found.append(f"{name}={one}" if name else one)
        else:
            found.append(_with_unique_label(component(kind, one, name, side), found))
    return found


def _with_unique_label(made: Component, others: Sequence[str | Component]) -> Component:
    """A live component, with a number in its label if another one has the same."""
    known = {one.label for one in others if isinstance(one, Component)}
    free = (n for i in range(1, len(known) + 2) if (n := made.label if i == 1 else f"{made.label} {i}") not in known)
    return replace(made, shown=next(free)) if made.is_live else made


def _common_size(worlds: list[str | Component]) -> int | None:
    """The size of the images of all worlds, for networks that do not say their input size; None if sizes differ."""
    sides = {component("world", world).object.size for world in worlds}
    return sides.pop() if len(sides) == 1 else None


def _named_arrays(given: Any, worlds: list[str | Component], seed: int) -> Any:
    """Computed answers with the names of their cases; anything else unchanged."""
    if not is_array(given):
        return given
    if len(worlds) > 1:
        raise InputError("arrays of answers belong to one world: name one in on=")
    world = component("world", worlds[0]).object
    layers = isinstance(given, Mapping) and set(given) <= {"reflectance", "shading"}
    if isinstance(given, Mapping) and not layers:
        return Arrays(given, ())
    count = len(next(iter(given.values())) if isinstance(given, Mapping) else given)
    if world.length is not None and count > world.length:
        raise InputError(f"{count} answers were given, and the world has {world.length} scenes")
    return Arrays(given, [world.scene_at(seed, i)[0] for i in range(count)])


def _live_components(plan: Plan) -> list[Live]:
    given = [*plan.worlds, *plan.models, *plan.methods, *plan.protocols]
    return [one for one in given if isinstance(one, Live)]


def _check_shared(plan: Plan, processes: int) -> None:
    for one in _live_components(plan):
        raise InputError(
            f"{one.label} is a live {one.kind}, which {processes} processes cannot share: put the code that makes it into"
            " a file and give './mine.py:build', or leave out processes"
        )


@contextmanager
def _restoring_networks(plan: Plan) -> Iterator[None]:
    """Restore the user's own networks if they are changed; components use copies, but a function may reach the original."""
    networks = [one for one in _live_components(plan) if is_module(one.given) and not isinstance(one.given, type)]
    watches = {one.label: Snapshot(one.given) for one in networks}
    try:
        yield
    finally:
        for label, watch in watches.items():
            if changed := watch.put_back(thorough=True):
                tell(f"{label}: {changed[0]} was changed by a method, and was restored")


def run(
    worlds: Sequence[str],
    methods: Sequence[str],
    protocols: Sequence[str],
    models: Sequence[str] = (),
    cases: int | None = None,
    seed: int = 0,
    controls: bool = False,
    out: str | Path = "diorama-run",
    processes: int = 1,
) -> dict[str, Any]:
    """Run a plan of specs and return the JSON document of `diorama run --json`; cases in `out` are not computed again.

    `evaluate` also takes live objects, and returns an object with tables and plots.
    """
    for given in (*worlds, *models, *methods, *protocols):
        if not isinstance(given, str):
            raise InputError(f"{type(given).__name__} is no spec: diorama.evaluate takes live objects")
    plan = Plan(list(worlds), list(methods), list(protocols), list(models), cases, seed, controls)
    with locked_run(Path(out), plan) as made:
        ended = execute(made, processes, silent)
        return ended[1] if ended else {}


def execute(
    made: Run, launcher: Launcher | int, show: Progress, timeout: float | None = None
) -> tuple[Read, dict[str, Any]] | None:
    """Compute what a run lacks and draw its gallery; returns the results and their document.

    A launcher runs components in supervised worker processes; a number of processes (1: this one) works unsupervised.
    Returns None if the work continues elsewhere.
    """
    from diorama.core.gallery import illustrate
    from diorama.core.record import record
    from diorama.io.store import write_json

    total = sum(len(cell.cases) for cell in made.cells)
    missing = sum(len(made.missing(cell)) for cell in made.cells)
    if isinstance(launcher, int):
        launch(made, launcher, show)
        illustrate(made)
    elif launched(launcher, made, show):
        draw(made, launcher.drawers(), timeout)
    else:
        return None
    record(made)
    found = read_results(made.folder)
    written = document(found) | {"computed": missing, "known": total - missing, "missing": found.missing}
    write_json(made.folder / "summary.json", written)
    return found, written
