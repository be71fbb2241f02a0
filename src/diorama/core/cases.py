"""The objects that protocols return: cases, scores, panels of pictures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diorama.core.errors import AnswerError, InputError
from diorama.core.guard import attempt, one_line
from diorama.core.scene import Scene
from diorama.io.names import readable


@dataclass(frozen=True, slots=True)
class Case:
    """The unit that a protocol scores: a function of (protocol, world, seed, index), and not of the number of cases."""

    key: str
    payload: dict[str, Any]
    failure: str = ""  # why the case could not be made; its rows then have this reason

    def __post_init__(self) -> None:
        if not isinstance(self.key, str) or not isinstance(self.payload, dict):
            raise AnswerError(f"a case is Case(key: str, payload: dict), not ({self.key!r}, {self.payload!r})"[:300])
        object.__setattr__(self, "key", readable(self.key))

    @property
    def scene(self) -> Scene:
        """The scene of a case that has one."""
        return Scene.from_json(self.payload["scene"])


def make_case(protocol: Any, world: Any, seed: int, index: int) -> Case:
    """The index-th case of a protocol; if the protocol fails to make it, a case whose rows give the reason.

    An InputError is raised, since it applies to all cases: the protocol cannot be used on this world.
    """
    outcome = attempt(lambda: protocol.case(world, seed, index))
    if isinstance(outcome.error, InputError):
        raise outcome.error
    if outcome.error is None and isinstance(outcome.value, Case):
        return outcome.value
    why = outcome.reason or f"AnswerError: case() gave {type(outcome.value).__name__}, not a Case"
    return Case(f"failed-{index:05d}", {}, why)


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one case: a value, or a list with one entry per point of the protocol's own grid `at`.

    Without a value the status is "undefined" or "excluded" and the reason says why; the case's other metrics stay valid.
    Numbers of numpy and torch are converted to Python's.
    """

    metric: str
    value: float | list[float] | None
    at: str = ""
    status: Literal["ok", "undefined", "excluded"] = "ok"
    reason: str = ""

    def __post_init__(self) -> None:
        if self.status not in ("ok", "undefined", "excluded"):
            raise AnswerError(f"{self.metric}: the status {self.status!r} is not ok, undefined or excluded"[:300])
        if (self.value is None) == (self.status == "ok"):
            raise AnswerError(f"{self.metric}: a score must have a value if its status is ok, and only then")
        object.__setattr__(self, "value", _plain(self.metric, self.value))
        for name in ("at", "reason"):
            object.__setattr__(self, name, one_line(getattr(self, name)))


def _plain(metric: str, value: Any) -> float | list[float] | None:
    """A value as Python's own floats."""
    if value is None or type(value) is float:
        return value
    outcome = attempt(lambda: np.asarray(value, np.float64))
    if isinstance(value, str | bytes) or outcome.error or outcome.value.ndim > 1 or not outcome.value.size:
        raise AnswerError(f"{metric} is {type(value).__name__}, not a number or a list of numbers")
    return outcome.value.tolist()


@dataclass(frozen=True, slots=True)
class Matrix:
    """Numbers with names for their rows and columns, shown as a table: latents × factors, importance × parts."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: np.ndarray

    def to_json(self) -> dict[str, Any]:
        """The matrix as a JSON value; values that are not finite become None."""
        rounded = [[float(f"{v:.4g}") if np.isfinite(v) else None for v in row] for row in self.values]
        return {"rows": list(self.rows), "columns": list(self.columns), "values": rounded}


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture of the gallery: (h, w, 3) sRGB values in [0, 1], and a caption.

    `matrix` holds the numbers that the picture shows, if it shows numbers.
    """

    caption: str
    image: np.ndarray
    matrix: Matrix | None = None
