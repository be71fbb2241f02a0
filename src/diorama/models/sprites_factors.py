"""A network that classifies the factors of sprites: shape, scale, orientation and place; `sprites_moments` needs none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from diorama.models.factor_judges import FactorJudge
from diorama.render.sprites import COUNTS


@dataclass(frozen=True)
class SpritesFactors(FactorJudge):
    """Trained on sprites of 64 × 64 pixels (`diorama train sprites_factors` makes it; the card beside the weights has its
    accuracy on each factor). Orientation is ambiguous: the first and the last value give the same image, and so does a
    square turned by 90°.
    """

    name = "sprites_factors"
    example = "diorama run -w sprites -M {} -m beta_vae -p cg"
    channels: ClassVar[int] = 1
    heads = COUNTS
