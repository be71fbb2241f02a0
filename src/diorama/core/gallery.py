"""Pictures of the worst cases of every cell, made once a run is complete: frame, truth, answer, error."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.bench import Asked
from diorama.core.cases import Panel
from diorama.core.contracts import Protocol
from diorama.core.guard import attempt
from diorama.core.plan import Cell
from diorama.core.rows import Row
from diorama.core.run import NO_WATCH, Run, Step, Watch, asked_for, keep_maps
from diorama.core.scene import digest
from diorama.core.summary import Settled, hardest, means, settle
from diorama.io.images import encode_webp, quantise, resize
from diorama.io.integrity import whole_picture
from diorama.io.names import case_path
from diorama.io.row_files import rows_between
from diorama.io.store import checksum, write_json, write_whole

#: Cases shown per cell, and the longer side of a panel in pixels.
WORST, SIDE = 6, 144


def illustrate(run: Run, watch: Watch = NO_WATCH, share: Sequence[int] = (0, 1)) -> None:
    """Make the missing pictures: per case a strip `keep/<case>.webp` and its captions.

    All cells of a world, model and protocol show the same cases, so that methods can be compared side by side.

    With the share (i, n), every n-th cell that has a model is drawn, from the i-th on, and every n-th case of the others.
    """
    alone: dict[tuple[str, int], list[tuple[Cell, int]]] = {}
    (mine, of), numbers = share, {cell.key: number for number, cell in enumerate(run.cells)}
    for cell, found in pending(run):
        if not cell.model:
            for index, point in found:
                alone.setdefault((cell.world.digest, index), []).append((cell, point))
        elif numbers[cell.key] % of == mine:
            _draw_together(run, cell, found, watch)
    # case by case, so that frames and factorisations are shared; by case index, which is the same in all processes
    for at in sorted(at for at in alone if at[1] % of == mine):
        for cell, point in alone[at]:
            _try_to_draw(run, cell, at[1], point, watch)
        run.memory.end("unit")
    for cell in run.cells if run.plan.keep else ():
        _keep_earlier_maps(run, cell, range(mine, cell.count, of), watch)


class Sketches:
    """Draws pictures while cases are scored: of the worst cases that this process has seen so far.

    The worst cases of the run are among the worst of each process, so that at the end hardly any answer (a second pass of
    RISE or LIME) has to be computed again. The pictures of a case that is no longer among the worst are removed.
    """

    def __init__(self) -> None:
        self.seen: dict[Group, list[tuple[float, int]]] = {}  # goodness and index of the worst cases

    def unit_ended(self, run: Run, k: int, watch: Watch) -> None:
        """Draw the cases of a unit that are among the worst so far. Methods with a grid wait until its point is chosen."""
        unit = run.units[k]
        for group, cells in _groups(unit.cells if unit.cells[0].model else []).items():
            columns = []
            for cell in cells:
                rows = rows_between(run.cell_folder(cell), cell.key, unit.indices, lambda line: None).values()
                columns.append((cell, _values(list(rows), cell.protocol.object.metrics[0])))
            index = {cells[0].cases.keys[i]: i for i in unit.indices if i < cells[0].count}
            ordered = means([v for cell, v in columns if not cell.control] or [v for _, v in columns])
            sign = -1 if cells[0].protocol.object.direction == "lower" else 1
            seen = sorted([*self.seen.get(group, []), *((sign * mean, index[case]) for case, mean in ordered.items())])
            self.seen[group] = seen[:WORST]
            left = {i for _, i in seen[WORST:]}
            for cell, values in columns:
                if len(cell.asked.points) == 1:
                    self._draw(run, cell, [index[c] for c in values if c in index and index[c] not in left], watch)
                    for i in left:
                        _remove(picture_path(run, cell, i, 0))

    def _draw(self, run: Run, cell: Cell, indices: list[int], watch: Watch) -> None:
        for i in indices:
            if not whole_picture(picture_path(run, cell, i, 0)):
                _try_to_draw(run, cell, i, 0, watch)


def tidy(run: Run) -> None:
    """Remove pictures of cases that are not among the worst of the whole run."""
    for cell, cases in chosen(run):
        folder = run.cell_folder(cell) / "keep"
        wanted = {picture_path(run, cell, *at) for at in cases}
        for path in [path for path in folder.rglob("*.webp") if path not in wanted] if folder.is_dir() else ():
            _remove(path)


def _remove(picture: Path) -> None:
    for path in (picture.with_suffix(".json"), picture):  # captions first: if they exist, so must the picture
        path.unlink(missing_ok=True)


def _keep_earlier_maps(run: Run, cell: Cell, indices: range, watch: Watch) -> None:
    """Store the answers of cases that were scored by an earlier command without `--keep maps`."""
    for index in indices:
        if watch.enters(Step("picture", cell.key, index)):
            keep_maps(run, cell, index)
            run.memory.end("unit")


def pending(run: Run, worst: int = WORST) -> list[tuple[Cell, list[tuple[int, int]]]]:
    """The cells with missing pictures, and the cases to draw: (index, grid point)."""
    found = []
    for cell, cases in chosen(run, worst):
        if lacking := [at for at in cases if not whole_picture(picture_path(run, cell, *at))]:
            found.append((cell, lacking))
    return found


def chosen(run: Run, worst: int = WORST) -> list[tuple[Cell, list[tuple[int, int]]]]:
    """The cells that have pictures, and the cases shown of each: (index, grid point)."""
    groups = _groups(run.cells).values()
    return [at for cells in groups for at in _worst_cases([(cell, _scores_of(run, cell)) for cell in cells], worst)]


#: World, model and protocol: cells that are drawn on the same cases.
Group = tuple[str, str, str]


def _groups(cells: Sequence[Cell]) -> dict[Group, list[Cell]]:
    found: dict[Group, list[Cell]] = {}
    for cell in cells:
        if cell.control == "dose" or type(cell.protocol.object).pictures is Protocol.pictures:
            continue
        model = cell.model.digest if cell.model else ""
        found.setdefault((cell.world.digest, model, cell.protocol.digest), []).append(cell)
    return found


@dataclass(frozen=True, slots=True)
class Scored:
    """The value of each case of a cell by the first metric that has values, and the grid points chosen."""

    values: dict[str, float]
    points: dict[str, int]


def _scores_of(run: Run, cell: Cell) -> Scored:
    protocol, rows = cell.protocol.object, run.rows(cell)
    settled = settle(rows, protocol.metrics[0], protocol.direction) if cell.at else Settled(rows, {})
    values = next(filter(None, (_values(settled.rows, m) for m in protocol.metrics)), {})
    return Scored(values, settled.chosen)


def _worst_cases(group: list[tuple[Cell, Scored]], count: int) -> list[tuple[Cell, list[tuple[int, int]]]]:
    """The cases on which the methods of a group do worst on average, for each of its cells that has a value there."""
    methods = [scored.values for cell, scored in group if not cell.control] or [scored.values for _, scored in group]
    index = {case: i for i, case in enumerate(group[0][0].cases.keys)}
    shown = hardest(methods, group[0][0].protocol.object.direction)[:count]
    return [
        (cell, [(index[case], scored.points.get(case, 0)) for case in shown if case in scored.values])
        for cell, scored in group
    ]


def _try_to_draw(run: Run, cell: Cell, index: int, point: int, watch: Watch) -> None:
    if watch.enters(Step("picture", cell.key, index)):
        attempt(partial(_draw, run, cell, index, point))


def _draw_together(run: Run, cell: Cell, found: list[tuple[int, int]], watch: Watch) -> None:
    """The pictures of a cell with a model, whose passes are made together."""
    cases = [cell.cases[index] for index, _ in found]
    if cases and not cell.fitted and watch.enters(Step("prepare", cell.key, -1)):  # -1: for pictures
        attempt(partial(cell.protocol.object.prepare, cell.bench(cases[0], run.memory), cases))
    for index, point in found:
        _try_to_draw(run, cell, index, point, watch)
    run.memory.end("unit")


def _values(rows: list[Row], metric: str) -> dict[str, float]:
    """The value of every case; for a list over the protocol's own grid its mean."""
    return {row.case: float(np.mean(row.value)) for row in rows if row.metric == metric and row.status == "ok"}  # type: ignore[arg-type]


def picture_path(run: Run, cell: Cell, index: int, point: int) -> Path:
    """The picture of a case at a grid point; its captions are beside it, in a file ending in `.json`."""
    return case_path(run.cell_folder(cell) / "keep", f"{cell.cases.keys[index]}@{point}", ".webp")


def _draw(run: Run, cell: Cell, index: int, point: int) -> None:
    case = cell.cases[index]
    bench = cell.bench(case, run.memory, _method_at(run, cell, index, point))
    panels: list[Panel] = cell.protocol.object.pictures(bench, case)
    if not panels:
        return
    path, picture = picture_path(run, cell, index, point), encode_webp(strip(panels, SIDE))
    write_whole(path, picture)
    captions = _captions(cell, case.key, point, panels)
    # last: if the captions exist, so must the picture
    write_json(path.with_suffix(".json"), {**captions, "picture": checksum(picture)})


def _method_at(run: Run, cell: Cell, index: int, point: int) -> Asked:
    """The method at one grid point alone, so that a picture costs one answer and not a sweep."""
    asked = asked_for(run, cell, index)
    if len(asked.points) == 1:
        return asked
    method = asked.at_point(asked.points[point])
    return Asked(method, digest([asked.digest, point]), ({},), asked.at_point)


def _captions(cell: Cell, case: str, point: int, panels: list[Panel]) -> dict[str, Any]:
    """The data of a strip for reports: captions, digests of panels (to find equal ones in other cells), matrices."""
    return {
        "case": case,
        "point": cell.asked.points[point],
        "captions": [panel.caption for panel in panels],
        "panels": [digest([panel.caption, checksum(np.ascontiguousarray(panel.image).tobytes())]) for panel in panels],
        "matrices": [panel.matrix.to_json() if panel.matrix else None for panel in panels],
    }


def strip(panels: list[Panel], side: int) -> np.ndarray:
    """Panels side by side as one (h, w, 3) uint8 picture, all of one size, at most `side` pixels high and wide."""
    height, width = panels[0].image.shape[:2]
    scale = side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.concatenate([quantise(resize(panel.image.astype(np.float32), *size), 8) for panel in panels], axis=1)
