"""What passes between protocols and the rest: cases, scores, panels of pictures."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from diorama.core.scene import Scene


@dataclass(frozen=True, slots=True)
class Case:
    """What a protocol scores at once: a function of (protocol, world, seed, index), never of how many are asked for."""

    key: str
    payload: dict[str, Any]

    @property
    def scene(self) -> Scene:
        """The scene of a case that has one."""
        return Scene.from_json(self.payload["scene"])


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one case: a value, or a list with one entry per point of the protocol's own grid `at`.

    Without a value the status is "undefined" or "excluded" and the reason says why; the other metrics stand.
    """

    metric: str
    value: float | list[float] | None
    at: str = ""
    status: Literal["ok", "undefined", "excluded"] = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture of the gallery: (h, w, 3) values in [0, 1] as a screen shows them, and a caption."""

    caption: str
    image: np.ndarray
