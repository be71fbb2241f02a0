"""Controls: answers of known quality that any protocol can be run with: oracle, chance, growing doses of error."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diorama.core.answers import Answer
from diorama.core.contracts import Control
from diorama.core.scene import Scene

if TYPE_CHECKING:
    from diorama.core.bench import Bench

#: Ten steps from no error to the full error, for protocols to use as `doses`.
DOSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Oracle(Control):
    """Answers with the truth, through the same answer types and checks as methods."""

    protocol: Any

    def answers(self, bench: "Bench", scene: Scene, target: int | None) -> list[Answer]:
        """The protocol's true answer."""
        return [self.protocol.oracle(bench, scene, target)]


@dataclass(frozen=True, slots=True)
class Dosed(Control):
    """Answers with the truth plus an error of each of the protocol's doses."""

    protocol: Any

    @property
    def grid(self) -> tuple[dict[str, float], ...]:
        """One point per dose."""
        return tuple({"dose": d} for d in self.protocol.doses)

    def answers(self, bench: "Bench", scene: Scene, target: int | None) -> list[Answer]:
        """The protocol's answer at every dose."""
        return [self.protocol.dosed(bench, scene, target, dose) for dose in self.protocol.doses]
