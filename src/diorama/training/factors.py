"""Classifiers of a world's factors, the judges of `cg`: what `diorama train candle_factors` does.

The loss is the sum over factors of the cross-entropy. Images are unconfounded and come from the image cache that learners
use, resized to 64 × 64 pixels (or 32); the card has the accuracy on each factor of held-out images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from diorama.core.bounds import Count, Positive
from diorama.core.catalogue import build, check_parameters
from diorama.core.errors import InputError
from diorama.core.progress import Progress
from diorama.core.spec import Spec
from diorama.io.locks import locked
from diorama.models.factor_layers import FactorNetwork
from diorama.training.card import finish, share
from diorama.training.gathered import Gathered, gathered
from diorama.training.learner import Shown
from diorama.training.loop import Task, fit, reduced, to_tensor
from diorama.training.schedule import Schedule

EVERY = 250


@dataclass(frozen=True, slots=True)
class FactorRecipe:
    """A classifier of factors.

    name    name of the model
    world   spec of the world; unconfounded
    size    side in pixels of the images, 64 or 32
    images  number of training images
    held    number of held-out images for the accuracies on the card
    steps   number of training steps
    batch   images in a step
    rate    the largest learning rate
    seed    seed of the weights and the order of images
    """

    name: str
    world: str
    size: Literal[64, 32] = 64
    images: Count = 10_000
    held: Count = 1_000
    steps: Count = 2_500
    batch: Count = 64
    rate: Positive = 2e-3
    seed: int = 0


FACTOR_RECIPES: dict[str, FactorRecipe] = {
    "candle_factors": FactorRecipe("candle_factors", "candle(width=128, samples=16)"),
    "sprites_factors": FactorRecipe("sprites_factors", "sprites", images=64_000, steps=4_000),
}
#: What the card says beside the accuracies.
REMARKS = {
    "candle_factors": "rotation shows on the cube only: four of five objects look the same at every rotation",
    "sprites_factors": "the first and the last orientation are one image; squares repeat every 90°, ellipses every 180°",
}


def factor_recipe(asked: Spec) -> FactorRecipe:
    """The recipe that a spec names, `candle_factors(steps=500)`."""
    usual = FACTOR_RECIPES[asked.name]
    check_parameters(asked.name, FactorRecipe, {"name": usual.name, "world": usual.world, **asked.params})
    recipe = replace(usual, **asked.params)
    if recipe.name != usual.name:
        raise InputError(f"{asked.name}: the name of a recipe cannot be changed")
    if recipe.images < recipe.batch:
        raise InputError(f"{asked.name}: batch={recipe.batch} is larger than the {recipe.images} images to learn from")
    return recipe


def train_factors(recipe: FactorRecipe, out: Path, progress: Progress) -> Path:
    """Render, train, judge on held-out images, write checkpoint and card; continues what is there."""
    with locked(out / "lock"):
        world = build("world", recipe.world)
        data = {s: gathered(world, s, n, 0, progress) for s, n in (("train", recipe.images), ("val", recipe.held))}  # type: ignore[arg-type]
        heads = list(data["train"].levels.values())
        torch.manual_seed(recipe.seed)
        net = FactorNetwork(data["train"].channels, recipe.size, heads)
        blocks = -(-recipe.steps // EVERY)
        how = Schedule((recipe.size,) * blocks, recipe.batch, recipe.rate, 0.05, 0.99, 0, False, recipe.seed)
        train, steps = data["train"], -(-recipe.steps // blocks)
        shown = Shown(train, steps, recipe.batch, targets=np.asarray(train.factors))
        held = (data["val"], recipe.size)
        task = Task(net, FactorLoss(heads), shown, held, how, judge=accuracies, half=True)
        state = fit(task, out, progress)

        def judged() -> dict[str, Any]:  # called after the file is written and loaded again: its accuracies
            shares = {name: share(value, recipe.held) for name, value in accuracies(state.mean, held).items()}
            return {"accuracy": shares, "remark": REMARKS[recipe.name], "held_out": recipe.held}

        return finish(recipe, state.mean, state.history, recipe.world, judged, out)


@dataclass(frozen=True, slots=True)
class FactorLoss:
    """The sum over factors of the mean cross-entropy; `heads` says how many logits each factor has."""

    heads: list[int]

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of a batch; targets (n, factors) are levels."""
        parts = logits.split(self.heads, dim=1)
        losses = [cross_entropy(part, targets[:, i].long()) for i, part in enumerate(parts)]
        return sum(losses[1:], losses[0])


def accuracies(net: nn.Module, data: tuple[Gathered, int]) -> dict[str, float]:
    """The share of held-out images on which each factor is recognised, by name."""
    images, side = data
    net.eval()
    right = []
    with torch.inference_mode():
        for i in range(0, len(images), 100):
            logits = net(to_tensor(reduced(images.images[i : i + 100], side)))
            heads = logits.split(list(images.levels.values()), dim=1)
            right.append(np.stack([head.argmax(1).numpy() for head in heads], axis=1) == images.factors[i : i + 100])
    return dict(zip(images.levels, np.concatenate(right).mean(axis=0).tolist(), strict=True))
