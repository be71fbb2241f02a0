"""Gates: conditions that the results of a run must meet, `lmse<=0.05` for every method or `weiss:lmse<=0.03` for one."""

import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diorama.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from diorama.core.plan import Cell
    from diorama.core.run import Run

_COMPARE = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
_GATE = re.compile(r"(.*?)(<=|>=|<|>)([^<>=]*)", re.DOTALL)
_NUMBER = re.compile(r"[-+.\deE]+")


@dataclass(frozen=True, slots=True)
class Gate:
    """A bound on the mean of a metric, for one method or for all (without controls)."""

    text: str
    method: str | None
    metric: str
    relation: str
    bound: float

    def check(self, run: "Run") -> None:
        """Raise InputError if no cell of the run has the method or the metric."""
        cells = [cell for cell in run.cells if not cell.control]
        metrics = sorted({m for cell in cells for m in _metrics(cell)})
        methods = sorted({str(cell.labels["method"]) for cell in cells})
        for kind, name, known in (("metric", self.metric, metrics), ("method", self.method, methods)):
            if name and name not in known:
                raise InputError(f"--require {self.text!r}: no {kind} {name!r}; {did_you_mean(name, known)}")


def _metrics(cell: Any) -> tuple[str, ...]:
    protocol = cell.protocol.object
    return (*protocol.derived, *protocol.metrics)


def parse_gate(text: str) -> Gate:
    """Read a gate.

    >>> parse_gate("weiss:lmse<=0.03").bound
    0.03
    """
    match = _GATE.fullmatch(text)
    method, _, metric = (part.strip() for part in (match[1] if match else "").rpartition(":"))
    bound = _number(match[3].strip()) if match else None
    if match is None or bound is None or not re.fullmatch(r"\w+", metric):
        raise InputError(f"--require {text!r}: write METRIC<=NUMBER or METHOD:METRIC>=NUMBER, e.g. 'lmse<=0.05'")
    return Gate(text, method or None, metric, match[2], bound)


def _number(text: str) -> float | None:
    try:
        return float(text) if _NUMBER.fullmatch(text) else None
    except ValueError:
        return None


def failed_gates(gates: list[Gate], results: dict[str, Any], planned: "Sequence[Cell]" = ()) -> list[str]:
    """One line for every gate and cell that does not meet it; a gate without any mean is not met."""
    lines, computed = [], {cell["key"] for cell in results["cells"]}
    for gate in gates:
        for absent in (cell for cell in planned if cell.key not in computed and not cell.control):
            if gate.method in (None, absent.labels["method"]) and gate.metric in _metrics(absent):
                lines.append(f"{gate.text!r}, but {absent.labels['method']} on {absent.world.label} was not computed")
        asked = [c for c in results["cells"] if not c["control"] and gate.method in (None, c["method"])]
        found = [(cell, cell["summary"][gate.metric]["mean"]) for cell in asked if gate.metric in cell["summary"]]
        if not found:
            lines.append(f"{gate.text!r}, but no cell has it")
        for cell, mean in found:
            if mean is None or not _COMPARE[gate.relation](mean, gate.bound):
                got = "no value" if mean is None else f"{mean:.6g}"
                lines.append(f"{gate.text!r}, but {cell['method']} on {cell['world']} has {got}")
    return lines
