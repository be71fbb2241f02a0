"""Diorama from Python: the same plans, specs and results as on the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError
from diorama.core.plan import Plan
from diorama.core.run import Run, taken
from diorama.launch.contract import Launcher, Show
from diorama.launch.local import draw, launch, on
from diorama.report.summary import Results, document, read_results


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
    """Run a plan given in specs and return the results document; what is already in `out` is not computed again.

    A network of your own is named by the file that makes it, `models=["./mine.py:build"]`: a run can then be taken up
    again, and by other processes.
    """
    for given in (*worlds, *models, *methods, *protocols):
        if not isinstance(given, str):
            raise InputError(
                f"{type(given).__name__} is no spec: write the name of the file that makes it, ./mine.py:build"
            )
    plan = Plan(list(worlds), list(methods), list(protocols), list(models), cases, seed, controls)
    with taken(Path(out), plan) as made:
        ended = execute(made, processes, lambda done, total, doing: None)
        return ended[1] if ended else {}


def execute(
    made: Run, launcher: Launcher | int, show: Show, timeout: float | None = None
) -> tuple[Results, dict[str, Any]] | None:
    """Compute what a run lacks and draw its gallery; the results, and the document with what was computed and known.

    A launcher has components run in worker processes, whatever they do; a number is how many processes do it unwatched.
    None where the work goes on elsewhere.
    """
    from diorama.core.gallery import illustrate
    from diorama.core.record import record
    from diorama.io.store import write_json

    total = sum(len(cell.cases) for cell in made.cells)
    missing = sum(len(made.missing(cell)) for cell in made.cells)
    if isinstance(launcher, int):
        launch(made, launcher, lambda done, total: show(done, total, ""))
        illustrate(made)
    elif on(launcher, made, show):
        draw(made, launcher.drawers(), timeout)
    else:
        return None
    record(made)
    found = read_results(made.folder)
    written = document(found) | {"computed": missing, "known": total - missing, "missing": found.missing}
    write_json(made.folder / "summary.json", written)
    return found, written
