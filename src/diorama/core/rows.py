"""Rows: one measured value per case and metric, appended to files that survive any crash."""

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Status = Literal["ok", "undefined", "excluded", "error"]
#: How the reason of a row begins whose value does not exist and which a protocol counts as 0 all the same.
AS_ZERO = "undefined, counted as 0: "


@dataclass(frozen=True, slots=True)
class Row:
    """One value of one metric for one case of one cell. `value` is finite if and only if `status` is "ok".

    A list value has one entry per point of the grid named by `at`. `reason` says why there is no value, or carries a
    note. `seconds` is what the whole case took, the same in all rows of the case.
    """

    cell: str
    case: str
    metric: str
    value: float | list[float] | None
    status: Status = "ok"
    reason: str = ""
    at: str = ""
    seconds: float = 0.0

    def __post_init__(self) -> None:
        values = self.value if isinstance(self.value, list) else [self.value]
        finite = all(isinstance(v, int | float) and math.isfinite(v) for v in values) and len(values) > 0
        if finite != (self.status == "ok"):
            raise ValueError(f"row {self.case}/{self.metric}: value {self.value!r} does not fit status {self.status!r}")

    def line(self) -> str:
        """The row as one line of JSON, without the cell, which the file's place names."""
        fields = asdict(self)
        del fields["cell"]
        return json.dumps(fields, allow_nan=False, ensure_ascii=False) + "\n"


def read_rows(folder: Path, cell: str) -> dict[tuple[str, str], Row]:
    """All rows of a cell by (case, metric). A torn last line is ignored; a later row takes the place of an error."""
    rows: dict[tuple[str, str], Row] = {}
    for path in sorted((folder / "rows").glob("*.jsonl")):
        for fields in _lines(path):
            row = Row(cell=cell, **fields)
            known = rows.get((row.case, row.metric))
            if known is None or known.status == "error":
                rows[row.case, row.metric] = row
    return rows


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().split(b"\n")[:-1]:  # what follows the last newline was cut off by a crash
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue  # a torn line that a later writer closed with a newline


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Append rows in one write and flush them to the disk. A torn line left by a crash is closed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(row.line() for row in rows).encode()
    with open(path, "ab", buffering=0) as file:
        if file.tell() and _last_byte(path) != b"\n":
            data = b"\n" + data
        written = file.write(data)
        if written != len(data):
            raise OSError(28, "No space left on device", str(path))
        os.fsync(file.fileno())


def _last_byte(path: Path) -> bytes:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1)


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that the file is either the old one or the new one, whatever happens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(temporary, path)
