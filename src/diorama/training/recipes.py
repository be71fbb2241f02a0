"""What `diorama train` knows: how each bundled checkpoint was made, and the function that makes it again.

A training folder holds the rendered birds (`train`, `validation`, `test`: large, safe to delete afterwards), the state
after the last epoch, and in the end NAME.safetensors (float16) with its card NAME.json. Same command again = continue.
"""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diorama.core.errors import InputError, did_you_mean
from diorama.io.digests import file_digest
from diorama.io.locks import locked
from diorama.io.store import write_json, write_whole
from diorama.models.weights import require_torch
from diorama.training.schedule import Schedule
from diorama.training.staged import Order, Progress, Staged, staged
from diorama.worlds.birds.birds import Birds

if TYPE_CHECKING:
    from diorama.training.loop import State


@dataclass(frozen=True, slots=True)
class Recipe:
    """A classifier of staged birds: the world's birds to train on, to watch (validation) and to report (test).

    Half of the training birds lack random parts; validation and test birds are whole. `test` birds are looked at once.
    """

    name: str
    schedule: Schedule
    size: int = 128
    antialias: bool = True
    birds: int = 48_000
    validation: int = 1_000
    test: int = 4_000
    seed: int = 0

    def orders(self) -> dict[str, Order]:
        """The birds by purpose."""
        train = Birds(self.size, self.antialias, split="train")
        whole = Birds(self.size, self.antialias, split="test")
        worlds = {"train": (train, self.birds), "validation": (whole, self.validation), "test": (whole, self.test)}
        return {purpose: Order(world, self.seed, purpose, n) for purpose, (world, n) in worlds.items()}


_PROGRESSIVE = Schedule(sizes=(64,) * 5 + (96,) * 2 + (128,) * 2)
RECIPES: dict[str, Recipe] = {name: Recipe(name, _PROGRESSIVE) for name in ("birds_cnn", "birds_vgg", "birds_resnet")}


def train(name: str, out: Path, progress: Progress) -> Path:
    """Train a bundled recipe in folder `out`, or continue it; gives the path of the checkpoint."""
    from diorama.training.autoencoders import VAE_RECIPES, train_vae
    from diorama.training.iid.recipes import IID_RECIPES, train_iid

    if name in VAE_RECIPES:
        return train_vae(VAE_RECIPES[name], out, progress)
    if name in IID_RECIPES:
        return train_iid(IID_RECIPES[name], out, progress)
    if name not in RECIPES:
        raise InputError(f"unknown recipe {name!r}; {did_you_mean(name, [*RECIPES, *VAE_RECIPES, *IID_RECIPES])}")
    return train_recipe(RECIPES[name], out, progress)


def train_recipe(recipe: Recipe, out: Path, progress: Progress) -> Path:
    """Render, train, judge on the test birds once, write checkpoint and card."""
    require_torch(f"training {recipe.name}")
    import torch

    from diorama.models.birds.networks import NETWORKS
    from diorama.training.loop import Task, fit
    from diorama.training.losses import multi_target_loss

    with locked(out / "lock"):
        data = {purpose: staged(order, out / purpose, progress) for purpose, order in recipe.orders().items()}
        torch.manual_seed(recipe.schedule.seed)
        net = NETWORKS[recipe.name](data["train"].targets.shape[1])
        task = Task(net, multi_target_loss, data["train"], data["validation"], recipe.schedule)
        return finish(recipe, fit(task, out, progress), data["test"], out)


def finish(recipe: Recipe, state: State, test: Staged, out: Path) -> Path:
    """The averaged weights as float16 with the card; the accuracy is that of the file as written."""
    import torch
    from safetensors.torch import load_file, save

    from diorama.training.loop import accuracy

    path = out / f"{recipe.name}.safetensors"
    full = accuracy(state.mean, test)
    half = {k: v.contiguous().half() if v.is_floating_point() else v for k, v in state.mean.state_dict().items()}
    write_whole(path, save(half))
    state.mean.load_state_dict(load_file(path))
    rate = accuracy(state.mean, test)
    card = {
        "name": recipe.name,
        "world": "birds with Diorama's own meshes; held-out birds are whole, drawn for another purpose than training's",
        "recipe": asdict(recipe),
        "accuracy": {"value": rate, "interval": binomial_interval(rate, len(test)), "birds": len(test)},
        "accuracy_float32": full,
        "history": state.history,
        "seconds": round(sum(epoch["seconds"] for epoch in state.history)),
        "parameters": sum(p.numel() for p in state.mean.parameters()),
        "bytes": path.stat().st_size,
        "digest": file_digest(path),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }
    write_json(path.with_suffix(".json"), card)
    return path


def binomial_interval(rate: float, count: int) -> list[float]:
    """The 95 % interval of a share (Wilson 1927).

    >>> [round(v, 4) for v in binomial_interval(0.95, 2000)]
    [0.9396, 0.9587]
    """
    z = 1.959964
    centre = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (rate * (1 - rate) / count + z * z / (4 * count * count)) ** 0.5
    return [centre - half, centre + half]
