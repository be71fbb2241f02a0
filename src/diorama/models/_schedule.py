"""How a network is trained, as plain numbers: read without torch."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """How to train: one entry of `sizes` per epoch is the side to which the images are reduced in it.

    Early epochs on small images cost a fraction and teach most of what there is to learn.
    `shift` is the largest random shift in pixels of the full image, `flip` mirrors every second image; AdamW with a
    one-cycle learning rate up to `rate` and weight decay `decay`; `average` is the decay of the averaged weights.
    """

    sizes: tuple[int, ...]
    batch: int = 64
    rate: float = 4e-3
    decay: float = 0.05
    average: float = 0.998
    shift: int = 6
    flip: bool = True
    seed: int = 0


def one_cycle(step: int, total: int, peak: float) -> float:
    """The learning rate of a step: up in a line over the first quarter, down to zero along a cosine.

    >>> [round(one_cycle(i, 8, peak=1.0), 3) for i in (0, 1, 2, 4, 7)]
    [0.5, 1.0, 0.933, 0.5, 0.0]
    """
    warm = max(1, total // 4)
    if step < warm:
        return peak * (step + 1) / warm
    return peak * 0.5 * (1 + math.cos(math.pi * (step + 1 - warm) / (total - warm)))
