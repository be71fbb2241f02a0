"""Layers of a toon image: any subset of them composites, by depth, to the image that would have been rendered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """All that is needed to leave layers out: for every sample the surfaces along its ray, nearest first."""

    names: tuple[str, ...]

    def composite(self, drop: Iterable[str] = ()) -> dict[str, NDArray[np.generic]]:
        """The image, ids and depth without the dropped layers; the same arrays as `toon_image` returns."""
        raise NotImplementedError
