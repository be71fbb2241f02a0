"""MIG, MIG-sup and DMIG: gaps of mutual information (Chen et al. 2018; Li et al. 2020; Watcharasupat 2021)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from diorama.metrics import mig as metric
from diorama.metrics.codes import Measured, Rule
from diorama.metrics.planted import Defect
from diorama.protocols import _codes as shared


@dataclass(frozen=True, slots=True)
class Mig(shared.OfDraws):
    """Mean over factors of (I(z_(1); g) − I(z_(2); g)) / H(g), codes in `bins` of equal width. MIG-sup is the gap
    along factors; DMIG divides by what dependent factors leave to be gained. On sprites, whose factors have up to
    40 values, the truth itself scores 0.90 with 20 bins.
    """

    cite = ("chen2018", "li2020", "watcharasupat2021", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("mig", "mig_sup", "dmig", "mig_null")

    frames: int = shared.FRAMES
    rule: Rule = "varies"
    bins: int = 20
    defect: Defect = "noise"
    nulls: int = 3

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """The three gaps of a draw."""
        return metric.mig(codes, factors, self.rule, self.bins)
