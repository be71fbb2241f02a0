"""Cases: saves scenes to a regression suite (`cases.jsonl`), and lists the cases of a run, the worst first."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from diorama.core.errors import InputError
from diorama.core.run import Run, open_run
from diorama.core.scene import canonical
from diorama.lab.desk import Desk
from diorama.lab.messages import Request
from diorama.report.summary import CellResult, read_results

FILE = "cases.jsonl"
#: The most lines of a suite, and the most cases of a run that are listed.
MOST = 10_000


def saved_case(folder: Path, desk: Desk, asked: Request) -> dict[str, Any]:
    """Append the scene to `cases.jsonl` in the folder the lab was started in, unless it is there already (`again`)."""
    scene = desk.scene(asked)
    desk.world.object.render([scene])  # raises an error if it cannot be rendered
    path = folder / FILE
    known = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if len(known) >= MOST:
        raise InputError(f"{FILE} has {len(known)} cases already; start the lab in another folder")
    line = canonical({"world": desk.world.label, "scene": scene.to_json()})
    if any(line == old for old in known):
        return {"file": FILE, "count": len(known), "again": True}
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
    return {"file": FILE, "count": len(known) + 1, "again": False}


@dataclass(frozen=True)
class Cases:
    """The cases of a run that belong to one world."""

    folder: Path
    world: str

    @cached_property
    def _run(self) -> Run:
        return open_run(self.folder)

    @cached_property
    def _cells(self) -> list[CellResult]:
        cells = read_results(self.folder).cells
        return [c for c in cells if c.manifest["world"] == self.world and not c.manifest["control"]]

    def report(self) -> str:
        """The report of the whole run."""
        from diorama.report.html import html
        from diorama.report.sections import name_runs

        return html(name_runs([read_results(self.folder)]))

    def listed(self) -> dict[str, Any]:
        """Every case with its worst rank over the cells (0: best of its cell, 1: worst), the worst first."""
        worst: dict[str, float] = {}
        for cell in self._cells:
            values = cell.values(cell.case_metric)
            ordered = sorted(values, key=lambda case: values[case], reverse=cell.manifest["direction"] == "higher")
            for place, case in enumerate(ordered):
                worst[case] = max(worst.get(case, 0.0), place / max(len(ordered) - 1, 1))
        order = sorted(worst, key=lambda case: (-worst[case], case))[:MOST]
        known = [case for case in order if case in self._scenes]
        return {"cases": [{"name": case, "disagreement": round(worst[case], 4)} for case in known]}

    def case(self, name: str) -> dict[str, Any]:
        """The scene of a case and all its rows."""
        if name not in self._scenes:
            raise InputError(f"the run has no case {name[:60]!r} of one scene in the world {self.world}")
        rows = []
        for cell in self._cells:
            about = {kind: cell.manifest[kind] for kind in ("model", "protocol")}
            about["method"] = cell.manifest["method"] or cell.manifest["model"]
            for row in cell.settled.rows:
                if row.case == name and row.metric not in cell.manifest["unlisted"]:
                    value = row.value if isinstance(row.value, int | float) else None
                    result = {"metric": row.metric, "value": value, "status": row.status, "reason": row.reason}
                    rows.append({**about, **result})
        return {"name": name, "scene": self._scenes[name], "rows": rows}

    @cached_property
    def _scenes(self) -> dict[str, Any]:
        """The scenes of those cases that consist of one scene."""
        cells = [cell for cell in self._run.cells if cell.world.label == self.world]
        cases = [case for cell in cells for case in cell.cases if "scene" in case.payload]
        return {case.key: json.loads(canonical(case.payload["scene"])) for case in cases}
