"""A classifier of the factors of candle: scene, light, object, colour, size and rotation; the judge of `cg` there."""

from __future__ import annotations

from dataclasses import dataclass

from diorama.models.factor_judges import FactorJudge


@dataclass(frozen=True)
class CandleFactors(FactorJudge):
    """Trained on unconfounded images of 64 × 64 pixels (`diorama train candle_factors` makes it again; the card beside the
    weights has its accuracy on each factor). Rotation is visible on the cube only, not on the other four objects, so `cg`
    leaves it out and says so.
    """

    name = "candle_factors"
    example = 'diorama run -w "candle(confounding=pairs)" -M {} -m ss_factor_vae -p cg'
    heads = (3, 3, 5, 5, 3, 6)
