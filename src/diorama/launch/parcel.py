"""The messages between a run and workers that share no folder with it: JSON texts, never pickled objects.

The run sends the plan, the user's files that it names, and the known rows of a unit; workers send rows, stored arrays,
pictures and tracebacks. Where these are written depends on the cases of the run only, never on file names in the message.
"""

import base64
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError
from diorama.core.gallery import picture_path
from diorama.core.plan import Cell
from diorama.core.rows import Row, read_row
from diorama.core.run import Run, Step, Writer, arrays_path, trace_path
from diorama.io.names import case_path
from diorama.io.row_files import rows_between
from diorama.io.run_folder import is_run
from diorama.io.store import write_whole

#: The most bytes of a user's folder that are sent along with the file that a plan names.
MOST = 512 * 2**20
#: Environment variables that components depend on: the device, and the session id for states that cannot be hashed.
_VARIABLES = ("DIORAMA_DEVICE", "DIORAMA_SESSION")


def opening(run: Run, timeout: float | None, gpus: int) -> str:
    """The text that is sent to a worker once: the plan, the expected keys, the user's files, environment variables."""
    expected = expectation(run)  # first: it may set DIORAMA_SESSION
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    if not gpus and variables.get("DIORAMA_DEVICE", "auto") == "auto":
        variables["DIORAMA_DEVICE"] = "cpu"  # workers elsewhere use a GPU only if --gpus asks for it
    plan = run.plan.table()
    folders = {name: str(Path(name).resolve().parent) for name in run.plan.files()}
    data = {folder: base64.b85encode(_zip_folder(Path(folder))).decode() for folder in set(folders.values())}
    sent = {"plan": plan, "expected": expected, "variables": variables, "files": folders, "folders": data}
    return json.dumps(sent | {"cwd": str(Path.cwd()), "timeout": timeout})


def _zip_folder(folder: Path) -> bytes:
    """The folder of a user's file as a zip: the file may import or read anything beside it."""
    data, total = BytesIO(), 0
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1, strict_timestamps=False) as archive:
        for path in _files_below(folder):
            total += path.stat().st_size
            if total > MOST:
                raise InputError(
                    f"{folder} is sent to the workers with the file that the plan names, and holds more than"
                    f" {MOST >> 20} MB: put the file into a folder with no more than it needs"
                )
            archive.write(path, path.relative_to(folder))
    return data.getvalue()


def _files_below(folder: Path) -> Iterator[Path]:
    """The files below a folder, without hidden and compiled ones, virtual environments and run directories."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not is_run(path) and not (path / "pyvenv.cfg").exists():
            yield from _files_below(path)
        elif path.is_file():
            yield path


def expectation(run: Run) -> dict[str, Any]:
    """The keys of a run's cells, and each component's digest and libraries: workers must have the same."""
    parts = [part for cell in run.cells for part in (cell.world, cell.model, cell.method, cell.protocol) if part]
    named = {f"{part.kind} {part.label}": {"is": part.digest, "libraries": part.key["libraries"]} for part in parts}
    return {"cells": [cell.key for cell in run.cells], "parts": named, "chunk": max(cell.chunk for cell in run.cells)}


def difference(run: Run, expected: dict[str, Any]) -> str:
    """Why a run on another machine would give other rows; an empty string if it gives the same.

    Components are compared by their order: the user's files may have other paths there.
    """
    here = expectation(run)
    if here["cells"] == expected["cells"]:
        return ""
    pairs = list(zip(here["parts"].values(), expected["parts"].items(), strict=False))
    libraries = {
        f"{name} {mine['libraries'].get(name, 'absent')} instead of {version}"
        for mine, (_, theirs) in pairs
        for name, version in theirs["libraries"].items()
        if mine["libraries"].get(name) != version
    }
    if libraries:
        return f"it has {', '.join(sorted(libraries))}: install the same versions"
    if here["chunk"] != expected["chunk"]:
        has, wants = ("no GPU", "one") if expected["chunk"] > here["chunk"] else ("a GPU", "none")
        return f"it has {has}, and the run was planned for {wants}: ask for workers of one kind with --gpus"
    others = [name for mine, (name, theirs) in pairs if mine["is"] != theirs["is"]]
    return f"{others[0] if others else 'diorama itself'} differs there: install the same version, with the same data"


def order(run: Run, k: int, deaths: Sequence[Step]) -> str:
    """The text that asks a worker for unit `k`: its known rows, and the steps that have ended a worker before."""
    unit = run.units[k]
    known = {cell.key: _finished_rows(run, cell, unit.indices) for cell in unit.cells}
    return json.dumps({"unit": k, "known": known, "deaths": [[d.what, d.cell, d.index] for d in deaths]})


def _finished_rows(run: Run, cell: Cell, indices: range) -> dict[int, list[str]]:
    """The rows of finished cases, by index."""
    found = rows_between(run.cell_folder(cell), cell.key, indices, lambda line: None)
    metrics, known = cell.protocol.object.metrics, dict[int, list[str]]()
    for index in (i for i in indices if i < cell.count):
        rows = [found.get((cell.cases.keys[index], metric)) for metric in metrics]
        if all(row and row.status != "error" for row in rows):
            known[index] = [row.line() for row in rows if row]
    return known


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a unit. `end` is empty, or says why the work ended early."""

    unit: int
    place: str
    end: dict[str, Any]
    cells: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, text: str) -> "Answer":
        """Parse an answer; ValueError if the text is none."""
        found = json.loads(text)
        try:
            return cls(int(found["unit"]), str(found["place"]), dict(found["end"]), dict(found["cells"]))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no answer: {error}") from error


def packed(folder: Path) -> dict[str, dict[str, Any]]:
    """The cells of a run folder for a message: rows as lines, arrays, pictures and tracebacks by name."""
    found = {}
    for cell in folder.glob("cells/*/*"):
        rows = [line for part in sorted(cell.glob("rows/*.jsonl")) for line in part.read_text("utf-8").splitlines()]
        kept = [path for path in cell.glob("keep/**/*") if path.suffix in (".npz", ".webp", ".json")]
        keep = {_name_in_cell(path, cell): base64.b85encode(path.read_bytes()).decode() for path in kept}
        errors = {_name_in_cell(path, cell): path.read_text("utf-8") for path in cell.glob("errors/**/*.txt")}
        found[cell.name] = {"rows": rows, "keep": keep, "errors": errors}
    return found


def _name_in_cell(path: Path, cell: Path) -> str:
    return "/".join(path.relative_to(cell).parts[1:])


def write_answer(run: Run, answer: Answer) -> tuple[int, list[str]]:
    """Write the new cases of an answer; returns how many these are, and why some of them failed."""
    unit, out, failures, count = run.units[answer.unit], Writer(run), list[str](), 0
    for cell in unit.cells:
        brought = answer.cells.get(cell.key, {})
        known = _finished_rows(run, cell, unit.indices)
        for index, rows in _by_case(cell, unit.indices, brought.get("rows", ())).items():
            if index in known:
                continue
            _write_files(run, cell, index, brought)
            out.add(cell, index, rows)
            failures += [row.reason for row in rows[:1] if row.status == "error"]
            count += 1
    out.flush()
    return count, failures


def _by_case(cell: Cell, indices: range, lines: Sequence[str]) -> dict[int, list[Row]]:
    """The rows of those cases of a unit that have all their metrics, by index."""
    index = {cell.cases.keys[i]: i for i in indices if i < cell.count}
    found: dict[int, dict[str, Row]] = {}
    for row in (read_row(cell.key, line.encode(errors="backslashreplace")) for line in lines):
        if row.case in index:
            found.setdefault(index[row.case], {})[row.metric] = row
    metrics = cell.protocol.object.metrics
    return {i: [rows[m] for m in metrics] for i, rows in sorted(found.items()) if all(m in rows for m in metrics)}


def _write_files(run: Run, cell: Cell, index: int, brought: dict[str, Any]) -> None:
    """Write the arrays, the picture and the traceback of a case, if it has any, before its rows."""
    case, keep, picture = cell.cases[index], brought.get("keep", {}), picture_path(run, cell, index, 0)
    # captions last: if they exist, so must the picture
    for path in (arrays_path(run, cell, case), picture, picture.with_suffix(".json")):
        data = keep.get(_name_in_cell(path, run.cell_folder(cell)))
        if data is not None:
            write_whole(path, base64.b85decode(data))
    trace = brought.get("errors", {}).get(case_path(Path(), case.key, ".txt").as_posix())
    if trace is not None:
        write_whole(trace_path(run, cell, case), trace.encode(errors="backslashreplace"))
    else:
        trace_path(run, cell, case).unlink(missing_ok=True)
