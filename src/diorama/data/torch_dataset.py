"""A world as a torch dataset."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from diorama.core.capabilities import Labelled, Levelled
from diorama.core.contracts import World
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene

Item = tuple[Any, Any, dict[str, Tensor]]


class WorldDataset(Dataset[Item]):
    """Scenes of a world; item i is (image, target, truth). `frame(i)` has the rest: boxes, factors, the scene itself."""

    def __init__(self, world: World, scenes: list[Scene], transform: Callable[[Any], Any] | None) -> None:
        self.world, self.scenes, self.transform = world, scenes, transform

    def __len__(self) -> int:
        return len(self.scenes)

    def __getitem__(self, index: int) -> Item:
        frame = self.frame(index)
        image: Any = torch.from_numpy(np.array(frame.srgb())).permute(2, 0, 1).contiguous()
        image = image if self.transform is None else self.transform(image)
        arrays = {name: v for name, v in frame.truth.items() if isinstance(v, np.ndarray)}
        return image, self._target(frame), {name: torch.from_numpy(np.array(v)) for name, v in arrays.items()}

    def frame(self, index: int) -> Frame:
        """The frame of an item, with all its truth."""
        return self.world.render([self.scenes[index]])[0]

    def _target(self, frame: Frame) -> Any:
        if isinstance(self.world, Labelled):
            return int(frame.truth["label"])
        levels = self.world.levels if isinstance(self.world, Levelled) else {}
        return {name: _level(name, frame.truth["factors"][name], values) for name, values in levels.items()}


def _level(name: str, value: Any, values: Any) -> int:
    known = list(values)
    if value not in known:
        raise InputError(f"{name}={value!r} is no level of the world: leave it out of the changes")
    return known.index(value)
