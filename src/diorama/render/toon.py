"""Toon images as FunnyBirds' renderer draws them, whole or as layers that composite to the byte."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diorama.render.layers import Layers
from diorama.render.stage import Colour, Stage


@dataclass(frozen=True, slots=True)
class Toon:
    """The look; defaults are FunnyBirds' (three.js r141): see `shade` for the formula."""

    steps: tuple[float, ...] = (0.0, 51 / 255, 102 / 255)  # gradient looked up at (N·L)/2 + 1/2
    ambient: Colour = (0x88 / 255, 0x88 / 255, 0x88 / 255)
    cutoff: float = 800.0  # the light fades linearly to 0 at this distance
    background: tuple[int, int, int] = (0x55, 0x55, 0x99)  # sRGB bytes, written as they are
    outline: float = 0.003  # clip-space thickness of the black back-face hull; 0 = none
    near: float = 1.0
    far: float = 2500.0


def toon_image(
    stage: Stage, width: int, height: int, samples: int = 1, look: Toon = Toon()
) -> dict[str, NDArray[np.generic]]:
    """One image: `image` uint8 sRGB (h, w, 3), `object`, `part` int32 (−1 = nothing), `depth` float32 (inf = nothing).

    `samples` 1 = pixel centres only; 5 is good anti-aliasing. Ids and depth come from the pixel centre, without the
    outline. The first point light of the stage lights it; nothing casts shadows. Textures are not supported.
    """
    raise NotImplementedError


def toon_layers(stage: Stage, width: int, height: int, samples: int = 1, look: Toon = Toon()) -> Layers:
    """The same stage with every `Instance.layer` apart; `layers.composite(drop)` then equals `toon_image` without them."""
    raise NotImplementedError
