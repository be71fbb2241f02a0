"""Rows: one measured value per case and metric."""

import json
import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

Status = Literal["ok", "undefined", "excluded", "error"]
#: The reason of a row whose value is undefined, but is counted as 0 by the protocol, begins so.
AS_ZERO = "undefined, counted as 0: "


@dataclass(frozen=True, slots=True)
class Row:
    """One value of one metric for one case of one cell. `value` is finite if and only if `status` is "ok".

    A list value has one entry per point of the grid named by `at`. `reason` says why there is no value, or carries a
    note. `seconds` is the time of the whole case, the same in all rows of the case.
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
        """The row as one line of JSON, without the cell, which the path of the file names."""
        shown = asdict(self)
        del shown["cell"]
        return json.dumps(shown, allow_nan=False, ensure_ascii=False) + "\n"

    @property
    def result(self) -> tuple[Any, ...]:
        """All of a row that must be the same whenever it is computed: everything but the seconds."""
        return (self.case, self.metric, self.value, self.status, self.reason, self.at)


_FIELDS = {f.name for f in fields(Row)} - {"cell"}


def read_row(cell: str, line: bytes) -> Row:
    """A row from one line of a file; ValueError if it is not one."""
    found = json.loads(line)
    if not isinstance(found, dict) or set(found) != _FIELDS:
        raise ValueError("a line is not a row")
    texts = (found[name] for name in ("case", "metric", "reason", "at"))
    if not all(isinstance(text, str) for text in texts) or found["status"] not in get_args(Status):
        raise ValueError("a row has a field of the wrong type")
    if type(found["seconds"]) not in (int, float) or not _numeric(found["value"]):
        raise ValueError("a row has a value that is not a number")
    if not math.isfinite(found["seconds"]):
        raise ValueError("the seconds of a row are not finite")
    return Row(cell=cell, **found)


def _numeric(value: Any) -> bool:
    return value is None or all(type(v) in (int, float) for v in (value if isinstance(value, list) else [value]))
