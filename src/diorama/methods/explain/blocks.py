"""What explainers share that multiply a transformer's attention matrices over its blocks: how many blocks they skip."""

from collections.abc import Sized
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from diorama.adapt.explaining import need
from diorama.core.bounds import Within
from diorama.core.contracts import Explainer
from diorama.core.errors import InputError


@dataclass(frozen=True, slots=True)
class ThroughBlocks(Explainer):
    """An explainer of networks with attention; it begins after the first `skip` blocks."""

    example = "diorama run -w birds -M birds_vit -m {} -p single_deletion"
    gradients = True
    #: The method's name, for messages.
    called: ClassVar[str]

    skip: Annotated[int, Within(0)] = 1

    def __post_init__(self) -> None:
        need("torch", self.called, "torch")

    def refuses(self, model: Any) -> str:
        """Why a network without attention cannot be explained."""
        from diorama.methods.explain.attention import lacks_attention

        return lacks_attention(model, self.called)

    def check_blocks(self, found: Sized) -> None:
        """Refuse to skip all blocks."""
        if self.skip >= len(found):
            raise InputError(f"{self.called}: skip={self.skip}, but the network has {len(found)} blocks")
