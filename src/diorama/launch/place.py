"""A place that computes units without access to the run's folder: a scratch folder and one supervised worker process.

`python -m diorama.launch.place` reads an opening and then orders, a line each, and answers every order with a line.
"""

import base64
import json
import os
import shutil
import tempfile
import zipfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from diorama.core.device import set_for_workers
from diorama.core.errors import InputError, WorkerError, tell
from diorama.core.plan import Plan
from diorama.core.rows import read_row
from diorama.core.run import Run, Step, silent
from diorama.io.row_files import write_part
from diorama.io.run_folder import cell_folder
from diorama.io.store import alive
from diorama.launch.contract import Tracker
from diorama.launch.parcel import packed
from diorama.launch.supervise import DiedError, RefusedError, Supervisor
from diorama.launch.worker import pipes

#: The prefix of scratch folders; the process id follows.
_PREFIX = "diorama-place-"
#: The place of this process by its opening, one at most: a new run closes the previous one.
_open: dict[str, "Place"] = {}


def carry_out(opening: str, order: str, name: str = "") -> str:
    """Compute a unit and return its answer. The worker process stays alive, so that weights are loaded once."""
    if opening not in _open:
        for place in _open.values():
            place.close()
        _open.clear()
        _open[opening] = Place(json.loads(opening), name or os.uname().nodename)
    return json.dumps(_open[opening].carry_out(json.loads(order)), ensure_ascii=False)


class Place:
    """A scratch folder for one run with a worker process."""

    def __init__(self, opening: dict[str, Any], name: str) -> None:
        self.name = name
        sweep(Path(tempfile.gettempdir()))
        self.scratch = tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", ignore_cleanup_errors=True)
        set_for_workers("")  # use the device of this machine
        os.environ.update(opening["variables"])
        plan, here = _unpack(opening, Path(self.scratch.name))
        self.run = Run(Path(self.scratch.name) / "run", plan)
        start = {"expected": opening["expected"], "cwd": str(here), "scratch": self.scratch.name}
        self.supervisor = Supervisor(self.run, 1, opening["timeout"], start)

    def carry_out(self, order: dict[str, Any]) -> dict[str, Any]:
        """Compute a unit; returns its answer as a JSON value."""
        shutil.rmtree(self.run.folder / "cells", ignore_errors=True)
        self._write_known_rows(order["known"])
        self.supervisor.deaths.update(Step(*step) for step in order["deaths"])
        answer = {"unit": order["unit"], "place": self.name, "end": self._compute(order["unit"])}
        return answer | {"cells": packed(self.run.folder)}

    def _write_known_rows(self, known: dict[str, dict[str, list[str]]]) -> None:
        for cell, cases in known.items():
            rows = {int(index): [read_row(cell, line.encode()) for line in lines] for index, lines in cases.items()}
            write_part(cell_folder(self.run.folder, cell), cell, rows, tell)

    def _compute(self, unit: int) -> dict[str, Any]:
        """Have the unit computed; returns the answer's `end`."""
        try:
            self.supervisor.work([unit], Tracker(silent, 0, 1))
        except DiedError as died:
            return {"died": died.why, "step": [died.step.what, died.step.cell, died.step.index]}
        except RefusedError as error:
            return {"refused": f"{self.name} cannot compute for this run: {error}"}
        except (WorkerError, OSError, InputError) as error:
            return {"failed": str(error)}
        return {}

    def close(self) -> None:
        """End the worker and remove the folder."""
        self.supervisor.end()
        self.scratch.cleanup()


def sweep(folder: Path) -> None:
    """Remove the scratch folders of processes that were killed."""
    for path in folder.glob(f"{_PREFIX}*-*"):
        process = path.name.removeprefix(_PREFIX).partition("-")[0]
        with suppress(FileNotFoundError):  # removed by another place at the same time
            if process.isdecimal() and not alive(int(process)) and path.stat().st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)


def _unpack(opening: dict[str, Any], folder: Path) -> tuple[Plan, Path]:
    """Unpack the user's files; returns the plan with their new paths, and the working directory.

    Relative paths stay as they are: the working directory is a new folder in place of the user's. If this machine has a
    folder at the user's path, its files are linked into the new one beside those that were sent.
    """
    here, plan = Path(opening["cwd"]), Plan.from_table(opening["plan"], "the plan")
    if not opening["files"]:
        return plan, here if here.is_dir() else folder
    root, now = folder / "files", dict[str, str]()
    for name, home in opening["files"].items():
        relative = not Path(name).is_absolute() and ".." not in Path(name).parts
        to = (root / name).parent if relative else folder / f"elsewhere{len(now)}"
        now[name] = name if relative else str(to / Path(name).name)
        with zipfile.ZipFile(BytesIO(base64.b85decode(opening["folders"][home]))) as archive:
            archive.extractall(to)
    root.mkdir(exist_ok=True)
    for path in here.iterdir() if here.is_dir() else ():
        if not (root / path.name).exists():
            (root / path.name).symlink_to(path)
    return plan.moved(now), root


def main() -> None:
    """Answer every order on stdin, until there are no more."""
    orders, answers = pipes()
    opening = orders.readline().decode()
    for line in orders:
        answers.write(carry_out(opening, line.decode()).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
