"""LIME as in the Attribution Confusion Matrix: the signed weights of the six superpixels of largest magnitude."""

from dataclasses import dataclass
from typing import Literal

from diorama.core.bounds import Count
from diorama.methods.explain.lime import Lime


@dataclass(frozen=True, slots=True)
class LimeAcm(Lime):
    """LIME of Arias-Duart et al., who patched the package to give weights in place of ±1. All else is as in `lime`."""

    cite = ("ribeiro2016", "ariasduart2023")

    features: Count = 6
    answer: Literal["mask", "signed"] = "signed"
