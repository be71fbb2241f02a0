"""Bounds of numeric parameters, declared as types: `masks: Count = 1000`, `width: Positive = 0.25`.

`diorama show` prints them beside the type, and a spec with a value out of bounds is refused before anything is built.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any


@dataclass(frozen=True, slots=True)
class Within:
    """From `low` to `high`; `low` itself is not allowed where `above` is set, nor `high` where `below` is.

    >>> str(Within(1)), str(Within(0, 1, above=True)), str(Within(0.5, 1, below=True))
    ('at least 1', 'above 0, at most 1', 'at least 0.5, below 1')
    """

    low: float
    high: float = math.inf
    above: bool = False
    below: bool = False

    def allows(self, value: Any) -> bool:
        """Whether a value is within; False for NaN."""
        over = value > self.low if self.above else value >= self.low
        return bool(over and (value < self.high if self.below else value <= self.high))

    def __str__(self) -> str:
        ends = f"{'above' if self.above else 'at least'} {self.low:g}"
        return ends if self.high == math.inf else f"{ends}, {'below' if self.below else 'at most'} {self.high:g}"


#: A whole number from 1, and from 2.
Count = Annotated[int, Within(1)]
Several = Annotated[int, Within(2)]
#: A number above 0, and from 0.
Positive = Annotated[float, Within(0, above=True)]
NotNegative = Annotated[float, Within(0)]
