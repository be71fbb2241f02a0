"""Controls: answers of known quality that any protocol can be run with: oracle, chance, growing doses of error."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diorama.core.answers import Answer
from diorama.core.scene import Scene

if TYPE_CHECKING:
    from diorama.core.bench import Bench

#: Ten steps from nothing to everything, the default doses of a protocol.
DOSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)


class Control:
    """An answer of known quality: it alone is shown the bench, and with it the truth."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Oracle(Control):
    """Answers with the truth, through the same answer type and checks as everyone."""

    protocol: Any

    def answers(self, bench: "Bench", scene: Scene, target: int | None) -> list[Answer]:
        """The protocol's true answer."""
        return [self.protocol.oracle(bench, scene, target)]


@dataclass(frozen=True, slots=True)
class Dosed(Control):
    """Answers with the truth spoilt by each of the protocol's doses."""

    protocol: Any

    @property
    def grid(self) -> tuple[dict[str, float], ...]:
        """One point per dose."""
        return tuple({"dose": d} for d in self.protocol.doses)

    def answers(self, bench: "Bench", scene: Scene, target: int | None) -> list[Answer]:
        """The protocol's answer at every dose."""
        return [self.protocol.dosed(bench, scene, target, dose) for dose in self.protocol.doses]


def is_control(method: Any) -> bool:
    """Whether an answer comes from a control and not from a method under test."""
    return isinstance(method, Control)
