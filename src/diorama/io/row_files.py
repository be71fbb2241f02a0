"""Parts: the files with the rows of a cell, which are written atomically, never changed, and checked when they are read.

A part is named `FIRST-LAST-TURN-CHECKSUM.jsonl`: the first and the last case that it has rows of, how often these cases were
computed before, and the checksum of its text. Every line is a row.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from diorama.core.rows import Row, read_row
from diorama.io.store import checksum, content, set_aside, write_whole

_NAME = re.compile(r"(\d+)-(\d+)-(\d+)-([0-9a-f]{24})\.jsonl")
#: The rows of a cell by (case, metric).
Rows = dict[tuple[str, str], Row]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A file of rows: how often its cases were computed before, its first and last case, and its path."""

    turn: int
    first: int
    last: int
    path: Path

    def rows(self, cell: str) -> list[Row]:
        """Its rows; ValueError if the file is damaged."""
        data = content(self.path)
        if checksum(data) != self.path.stem.rpartition("-")[2]:
            raise ValueError("its checksum is wrong")
        try:
            return [read_row(cell, line) for line in data.splitlines()]
        except (RecursionError, OverflowError) as error:
            raise ValueError("a row is too large") from error


def parts(folder: Path) -> list[Part]:
    """The parts of a cell; rows of earlier parts take precedence."""
    named = ((_NAME.fullmatch(path.name), path) for path in (folder / "rows").glob("*.jsonl"))
    return sorted(Part(int(name[3]), int(name[1]), int(name[2]), path) for name, path in named if name)


def misnamed(folder: Path) -> list[Path]:
    """Files in the folder of the parts whose names are not those of parts."""
    return [path for path in (folder / "rows").glob("*.jsonl") if not _NAME.fullmatch(path.name)]


def read_rows(folder: Path, cell: str) -> Rows:
    """All rows of a cell by (case, metric). Damaged parts are left out; see `set_damaged_aside`."""
    return merge(found for part in parts(folder) if (found := _undamaged(part, cell)) is not None)


def rows_between(folder: Path, cell: str, span: range, say: Say) -> Rows:
    """The rows of the cases in `span`, and perhaps of others, without reading all parts. Damaged parts are set aside."""
    return merge(_read_or_set_aside(part, cell, say) for part in _overlapping(folder, span))


def merge(found: Iterable[list[Row]]) -> Rows:
    """One row for each case and metric: the first that is no error, or else the last error."""
    rows: Rows = {}
    for row in (row for part in found for row in part):
        known = rows.get((row.case, row.metric))
        if known is None or known.status == "error":
            rows[row.case, row.metric] = row
    return rows


def _undamaged(part: Part, cell: str) -> list[Row] | None:
    try:
        return part.rows(cell)
    except (OSError, ValueError):
        return None


def _overlapping(folder: Path, span: range) -> Iterator[Part]:
    return (part for part in parts(folder) if part.first < span.stop and part.last >= span.start)


def set_damaged_aside(folder: Path, cell: str, say: Say) -> None:
    """Set damaged parts aside, so that their cases are computed again."""
    for path in misnamed(folder):
        say(set_aside(path, "this is not the name of a part"))
    for part in parts(folder):
        _read_or_set_aside(part, cell, say)


def _read_or_set_aside(part: Part, cell: str, say: Say) -> list[Row]:
    try:
        return part.rows(cell)
    except ValueError as error:
        say(set_aside(part.path, " ".join(str(error).split())[:200]))
        return []


def write_part(folder: Path, cell: str, cases: dict[int, list[Row]], say: Say) -> None:
    """Write the rows of some cases, by their index, as one part.

    Cases that another process has written in the meantime are skipped; if their rows differ, a message says so.
    """
    if not cases:
        return
    span = range(min(cases), max(cases) + 1)
    known = rows_between(folder, cell, span, say)
    new = {index: rows for index, rows in cases.items() if not _is_written(rows, known, folder, say)}
    if not new:
        return
    turn = 1 + max((part.turn for part in _overlapping(folder, span)), default=-1)
    text = "".join(row.line() for index in sorted(new) for row in new[index])
    data = text.encode(errors="backslashreplace")  # lone surrogates become JSON escapes
    write_whole(folder / "rows" / f"{min(new):06d}-{max(new):06d}-{turn}-{checksum(data)}.jsonl", data)


def _is_written(rows: list[Row], known: Rows, folder: Path, say: Say) -> bool:
    """Whether the rows of a case are written already."""
    before = [known.get((row.case, row.metric)) for row in rows]
    if any(row is None or row.status == "error" for row in before):
        return False
    for old, new in zip(before, rows, strict=True):
        if old and old.result != new.result and new.status != "error":
            say(f"{folder}: {new.case}, {new.metric} has another value when computed again; the first one is kept")
    return True
