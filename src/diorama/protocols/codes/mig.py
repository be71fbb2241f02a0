"""MIG, MIG-sup and DMIG: gaps of mutual information (Chen et al. 2018; Li et al. 2020; Watcharasupat 2021).

asks      Does every factor have a latent of its own in {methods}?
mig       ↑ how much more information the best latent has about a factor than the second best, as a share of the factor's
          entropy: 1 ideal
mig_sup   ↑ the same gap along factors: whether a latent carries one factor only
dmig      ↑ mig divided by the largest value that factors which depend on each other allow
mig_null  · mig for codes that are unrelated to the factors: compare mig with it
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from diorama.metrics.codes import Measured, Rule
from diorama.metrics.mig import excess, mig
from diorama.protocols.codes import judging as shared

#: A draw is small if information is too large by more than this share of a factor's entropy.
FEW = 0.02


@dataclass(frozen=True, slots=True)
class Mig(shared.OfDraws):
    """Mean over factors of (I(z_(1); g) − I(z_(2); g)) / H(g), codes in `bins` of equal width. MIG-sup is the gap
    along factors; DMIG divides by the largest gap that dependent factors allow. On sprites, whose factors have up to
    40 values, the truth itself scores 0.90 with 20 bins.

    bins  number of bins of equal width into which codes are cut; 20 as in disentanglement_lib

    Small draws are biased: information counted from few frames is too large, that of the second latent more than that of
    the first, so that MIG is mostly too low (0.60 at 300 frames where 10,000 give 0.70), or too high where codes carry
    nothing. An interval over such draws does not cover the large-sample value; a note says so if the excess is above 2 %
    of a factor's entropy. A factor with more than 64 values that are not levels of the world (or more than half the
    frames) is cut into 20 bins of equal width; a note says so too.
    """

    cite = ("chen2018", "li2020", "watcharasupat2021", "locatello2019")
    metrics: ClassVar[tuple[str, ...]] = ("mig", "mig_sup", "dmig", "mig_null")

    rule: Rule = "varies"
    bins: int = 20
    nulls: int = 3

    def remarks(self, world: Any, factors: np.ndarray) -> list[str]:
        """The base class's notes, and that the draw is small unless it is the whole world."""
        whole = world.length is not None and world.length <= len(factors)
        small = not whole and (excess(factors, self.bins) > FEW).any()
        note = f"draws of {len(factors)} frames are small: MIG is biased, the interval does not cover its large-sample value"
        return [*shared.OfDraws.remarks(self, world, factors), *([note] if small else [])]

    def measure(self, codes: np.ndarray, factors: np.ndarray, rng: np.random.Generator) -> Measured:
        """The three gaps of a draw."""
        return mig(codes, factors, self.rule, self.bins)
