"""Recipes for decomposition networks: what `diorama train iid_supervised` does, by the loop that all recipes share.

The training folder holds the rendered layers (`train`, `validate`, `test`), the state after the last epoch, and in the
end NAME.safetensors (float16) with its card NAME.json. A batch is a function of (seed, epoch, step).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diorama.core.progress import Progress
from diorama.core.scene import rng
from diorama.io.locks import locked
from diorama.methods.decompose.iid.networks import BRANCHES, GAMMA
from diorama.methods.decompose.iid.passes import exposed
from diorama.training.card import finish
from diorama.training.iid.data import Batch, LayerArrays, LayerOrder, held_out, layered, pairs, sequences
from diorama.training.iid.regimes import REGIMES
from diorama.training.loop import Task, fit
from diorama.training.schedule import Schedule

_WORLD = "tabletop: products of layers rendered at 64 pixels; test scenes were drawn for another purpose"


@dataclass(frozen=True, slots=True)
class IidRecipe:
    """A decomposition network: numbers of base scenes to train on, validate on and test on; `images` in an epoch."""

    name: str
    schedule: Schedule
    scenes: int = 300
    validate: int = 20
    test: int = 60
    views: int = 6
    images: int = 1_600
    seed: int = 0

    def orders(self) -> dict[str, LayerOrder]:
        """The base scenes by purpose."""
        counts = {"train": self.scenes, "validate": self.validate, "test": self.test}
        return {purpose: LayerOrder(purpose, n, self.views, seed=self.seed) for purpose, n in counts.items()}


def _two_sizes(batch: int, rate: float, small: int = 12, full: int = 10) -> Schedule:
    """The first epochs at 32 pixels, which cost a quarter of the others at 64."""
    return Schedule((32,) * small + (64,) * full, batch, rate, decay=1e-4, average=0.99, shift=0, flip=False)


IID_RECIPES: dict[str, IidRecipe] = {
    "iid_supervised": IidRecipe("iid_supervised", _two_sizes(16, 3e-3)),
    "iid_timelapse": IidRecipe("iid_timelapse", _two_sizes(18, 3e-3, small=9, full=4), images=1_800),
    "iid_translation": IidRecipe("iid_translation", _two_sizes(8, 2e-3, small=40, full=45), images=800),
}


@dataclass(frozen=True, slots=True)
class Feed:
    """Batches in the form that the regimes take, composed one at a time."""

    recipe: IidRecipe
    data: LayerArrays

    def __len__(self) -> int:
        return self.recipe.images

    def batches(self, how: Schedule, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """(n, 10, h, w) and an empty tensor of targets, for every step of an epoch."""
        data = self.data.at(how.sizes[epoch])
        for step in range(max(1, len(self) // how.batch)):
            yield stacked(self.drawn(data, how.batch, rng(how.seed, "batch", epoch, step))), torch.zeros(0)

    def drawn(self, data: LayerArrays, n: int, generator: np.random.Generator) -> Batch:
        """The batch of a step."""
        if self.recipe.name == "iid_timelapse":
            return sequences(data, generator, n // data.views)
        if self.recipe.name == "iid_supervised":
            return pairs(data, generator, n)
        image, other, third = (pairs(data, generator, n, tinted=False) for _ in range(3))
        return unpaired(image, other, third)


def unpaired(image: Batch, reflectance: Batch, shading: Batch) -> Batch:
    """Images of one batch with layers of two others, each layer over its brightest value and cut out like its image."""
    paint = exposed(reflectance.reflectance * (reflectance.weight > 0)[..., None])
    light = exposed(shading.shading * (shading.weight > 0)[..., None])
    return Batch(image.image, paint, light, image.weight)


def stacked(batch: Batch) -> Tensor:
    """(n, 10, h, w) float32: image, reflectance, shading, weight; channels last in memory."""
    parts = (batch.image, batch.reflectance, batch.shading, batch.weight[..., None])
    return torch.from_numpy(np.concatenate(parts, axis=3)).permute(0, 3, 1, 2)


def train_iid(recipe: IidRecipe, out: Path, progress: Progress) -> Path:
    """Render, train, judge on the test scenes once, write checkpoint and card; continues what is there."""
    with locked(out / "lock"):
        data = {purpose: layered(order, out / purpose, progress) for purpose, order in recipe.orders().items()}
        torch.manual_seed(recipe.schedule.seed)
        regime_class = REGIMES[recipe.name]
        regime = regime_class(recipe.views) if recipe.name == "iid_timelapse" else regime_class()
        validation = held_out(data["validate"])
        betas = (0.5, 0.999) if recipe.name == "iid_translation" else (0.9, 0.999)

        def judge(net: nn.Module, batch: Batch) -> float:
            return -float(sum(errors(net.get_submodule("net"), batch).values()))

        feed = Feed(recipe, data["train"])
        task = Task(regime, lambda loss, _: loss, feed, validation, recipe.schedule, judge, betas)
        state, test = fit(task, out, progress), held_out(data["test"])
        net = state.mean.get_submodule("net")
        return finish(recipe, net, state.history, _WORLD, lambda: _judged(net, test), out)


def errors(net: nn.Module, batch: Batch, chunk: int = 20) -> dict[str, float]:
    """Mean scale-invariant squared error of both layers over their mean square: an answer of 0 has 1."""
    net.eval()
    by_branch: dict[str, list[float]] = {branch: [] for branch in BRANCHES}
    x = stacked(batch)
    with torch.inference_mode():
        for i in range(0, len(x), chunk):
            image, *true = x[i : i + chunk, :9].split(3, 1)
            outputs = net(image**GAMMA)
            for branch, layer in zip(BRANCHES, true, strict=True):
                by_branch[branch] += relative_errors(net.component(branch, outputs[branch], image), layer).tolist()  # type: ignore[operator]
    return {branch: float(np.mean(values)) for branch, values in by_branch.items()}


def relative_errors(answer: Tensor, truth: Tensor) -> Tensor:
    """1 − ⟨a, t⟩²/(⟨a, a⟩·⟨t, t⟩): the least ‖α·a − t‖² over ‖t‖², for every image (n,)."""
    flat = (1, 2, 3)
    wide = answer.expand_as(truth)
    return 1 - (wide * truth).sum(flat) ** 2 / (wide.square().sum(flat) * truth.square().sum(flat)).clamp(min=1e-12)


def baselines(batch: Batch) -> dict[str, dict[str, float]]:
    """The errors of two answers without a network: the image itself as a layer, and a constant."""
    image, *true = stacked(batch)[:, :9].split(3, 1)
    return {
        branch: {
            "image": float(relative_errors(image, layer).mean()),
            "constant": float(relative_errors(torch.ones_like(layer), layer).mean()),
        }
        for branch, layer in zip(("reflectance", "shading"), true, strict=True)
    }


def _judged(net: nn.Module, test: Batch) -> dict[str, Any]:
    return {
        "error": errors(net, test),
        "error_of_baselines": baselines(test),
        "error_is": "min over α of ‖α·answer − truth‖²/‖truth‖², linear light, all pixels, mean over images",
    }
