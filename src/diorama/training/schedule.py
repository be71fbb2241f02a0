"""How a network is trained, as plain numbers: read without torch."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Schedule:
    """How to train: one entry of `sizes` per epoch is the side to which the images are reduced in it.

    Early epochs on small images cost a fraction and teach most of what there is to learn. `shift` is the largest random
    shift in pixels of the full image, `flip` mirrors half of the images at random. AdamW has weight decay `decay` and a
    one-cycle learning rate up to `rate`, or that rate in every step (`constant`). `average` is the decay of the averaged
    weights: 1 / (1 − average) steps must be a small part of the training.
    """

    sizes: tuple[int, ...]
    batch: int = 64
    rate: float = 4e-3
    decay: float = 0.05
    average: float = 0.998
    shift: int = 6
    flip: bool = True
    seed: int = 0
    constant: bool = False

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of a step, with `steps` in an epoch: linear up for a quarter, then down like a cosine.

        >>> how = Schedule(sizes=(8,) * 4, rate=1.0)
        >>> [round(how.rate_at(i, steps=2), 3) for i in (0, 1, 2, 4, 7)]
        [0.5, 1.0, 0.933, 0.5, 0.0]
        """
        if self.constant:
            return self.rate
        total = steps * len(self.sizes)
        warm = max(1, total // 4)
        if step < warm:
            return self.rate * (step + 1) / warm
        return self.rate * 0.5 * (1 + math.cos(math.pi * (step + 1 - warm) / (total - warm)))
