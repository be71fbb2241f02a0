"""Learners of codes on any world: what `diorama train "beta_tcvae(world=candle(confounding=pairs), beta=6)"` does.

β-VAE, β-TCVAE, DIP-VAE and FactorVAE, each also with labels for a tenth of the images (`ss_…`), by the loop that all recipes
share. A world is a spec, or a folder of images. Rendered images lie in the cache (`gathered.py`). A training folder holds
the recipe, the state after the last 250 steps, traversals.png, and in the end NAME.safetensors (float16) with its card: a
checkpoint for the encoder `burgess_vae(checkpoint=…)`. Same command again = continue.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import nn

from diorama.core.bounds import Count, NotNegative, Positive, Several, Within
from diorama.core.catalogue import Component, Nested, check_parameters
from diorama.core.errors import InputError, did_you_mean
from diorama.core.progress import Progress
from diorama.core.spec import Spec
from diorama.data.weak import labelled
from diorama.io.images import write_png
from diorama.io.locks import locked
from diorama.io.store import write_json
from diorama.methods.represent.burgess_network import Autoencoder
from diorama.training.card import finish
from diorama.training.gathered import Gathered, available, gathered
from diorama.training.learner import Criterion, Learner, Shown, judge
from diorama.training.loop import Task, fit, reduced, to_tensor
from diorama.training.objectives.beta_tcvae import BetaTcvae
from diorama.training.objectives.beta_vae import BetaVae
from diorama.training.objectives.dip_vae import DipVae
from diorama.training.objectives.factor_vae import FactorVae
from diorama.training.objectives.objective import Objective
from diorama.training.schedule import Schedule
from diorama.training.traversals import traversals

#: Steps after which the state is written and the traversals are drawn.
EVERY = 250
#: Images to learn from where `images` does not say, at most, of a world without an end and of a list; and images held out.
USUAL, USUAL_OF_LIST, HELD = 8_000, 64_000, 400
#: The learners; `ss_` before a name: with labels.
LEARNERS: dict[str, type[Objective]] = {
    "beta_vae": BetaVae, "beta_tcvae": BetaTcvae, "dip_vae": DipVae, "factor_vae": FactorVae
}  # fmt: skip
VAE_RECIPES = (*LEARNERS, *(f"ss_{name}" for name in LEARNERS))


@dataclass(frozen=True, slots=True)
class Learning:
    """How to learn, beside the objective's own parameters (`training/objectives`).

    world    spec of the world, or a folder of images
    size     side in pixels of the images that are learnt, 64 or 32
    latents  how many there are
    steps    of the training, in blocks of 250
    batch    images in a step
    rate     the largest learning rate; it rises for a quarter of the steps and falls to 0
    constant whether the rate stays the same from the first step to the last instead, as in the papers
    anneal   steps over which the objective's penalty grows from 0 to its full weight: against latents that never wake up
    images   how many to learn from; None for 8,000, of a world that is a list all of its training part up to 64,000
    seed     of weights, noise and order; the images are the same for all seeds
    labels   ss_… only: the share of images whose labels may be used; the paper has .1
    weight   ss_… only: γ_sup, what a label's cross-entropy weighs; 4 in the CANDLE experiments
    box      λ: pixels in the object's box count 1 + λ times; 0 for none, 2 as released
    half     whether convolutions multiply in bfloat16: faster on CPUs that can
    init     weights to begin with: he, of He et al. 2015 as in disentangling-vae; torch, PyTorch's own, smaller by √6, which
             learn more slowly and leave more latents unused
    """

    world: str = "sprites"
    size: Literal[64, 32] = 64
    latents: Count = 10
    steps: Count = 8_000
    batch: Several = 64
    rate: Positive = 1e-3
    images: Several | None = None
    seed: int = 0
    labels: Annotated[float, Within(0, 1, above=True)] = 0.1
    weight: NotNegative = 4.0
    box: NotNegative = 0.0
    half: bool = False
    anneal: Annotated[int, Within(0)] = 0
    constant: bool = False
    init: Literal["he", "torch"] = "he"


@dataclass(frozen=True, slots=True)
class VaeRecipe:
    """A learner by name: its objective, and how it learns."""

    name: str
    objective: Objective
    how: Learning

    @property
    def supervised(self) -> bool:
        """Whether it is told some labels."""
        return self.name.startswith("ss_")

    @property
    def schedule(self) -> Schedule:
        """The schedule of the loop: blocks of steps for epochs, no augmentation, no decay."""
        average = max(0.5, min(0.998, 1 - 20 / self.how.steps))
        how = self.how
        sizes = (how.size,) * -(-how.steps // EVERY)
        same = Schedule(sizes, how.batch, how.rate, decay=0.0, average=average, shift=0, flip=False)
        return replace(same, seed=how.seed, constant=how.constant)

    @property
    def block(self) -> int:
        """Steps in a block."""
        return -(-self.how.steps // len(self.schedule.sizes))

    def described(self) -> dict[str, Any]:
        """All that its result depends on, as plain values."""
        objective = {"objective": type(self.objective).__name__, **asdict(self.objective)}
        how = asdict(self.how)
        # What trainings did before these parameters existed: left out, so that their folders are still continued.
        before = {"anneal": 0, "constant": False, "init": "torch"}
        how = {name: value for name, value in how.items() if name not in before or value != before[name]}
        return {"name": self.name, **objective, **{k: v for k, v in how.items() if self.supervised or k not in _TOLD}}


#: Parameters of learners that are told labels.
_TOLD = ("labels", "weight")


def vae_recipe(asked: Spec) -> VaeRecipe:
    """The learner that a spec names: `beta_tcvae(world=candle, beta=6, steps=4000)`; a mistake is an InputError."""
    kind = LEARNERS[asked.name.removeprefix("ss_")]
    own, shared = {f.name for f in fields(kind)}, {f.name for f in fields(Learning)}
    known = [*own, *(name for name in shared if asked.name.startswith("ss_") or name not in _TOLD)]
    for name in asked.params:
        if name not in known:
            raise InputError(f"{asked.name} has no parameter {name!r}; {did_you_mean(name, known)}")

    def made(part: type, names: set[str]) -> Any:
        given = {name: value for name, value in asked.params.items() if name in names}
        check_parameters(asked.name, part, given)
        return part(**given)

    return VaeRecipe(asked.name, made(kind, own), made(Learning, shared))


# Images


def images_of(recipe: VaeRecipe, progress: Progress) -> dict[str, Gathered]:
    """What is learnt from (train) and what is held out (val), rendered where it is not in the cache."""
    world: Component = Nested("world").component(recipe.name, "world", recipe.how.world)
    found = {}
    for split, asked in (("train", recipe.how.images), ("val", HELD)):
        most = available(world, split)  # type: ignore[arg-type]
        usual = USUAL if most is None else USUAL_OF_LIST
        count = asked or usual if most is None else min(asked or usual, most)
        if split == "train" and count < recipe.how.batch:
            raise InputError(
                f"{recipe.name}: batch={recipe.how.batch} is larger than the {count} images to learn from:"
                f" write batch={max(count // 2, 2)}, or give more images"
            )
        found[split] = gathered(world, split, max(count, 1), 0, progress)  # type: ignore[arg-type]
    _check_told(recipe, found["train"])
    return found


def _check_told(recipe: VaeRecipe, images: Gathered) -> None:
    """What the world must tell of its images for this learner."""
    name, world = recipe.name, recipe.how.world
    if recipe.supervised and not images.levels:
        raise InputError(f"{name} learns from labels, but {world} has no factors with levels: write {name[3:]}(…)")
    if recipe.supervised and len(images.levels) > recipe.how.latents:
        least = len(images.levels)
        raise InputError(f"{name}: {least} factors need as many latents: write latents={least}, or more")
    if recipe.how.box and not images.boxed:
        raise InputError(f"{name}: box={recipe.how.box:g}: {world} does not tell where its objects are: leave it out")


# Training


def train_vae(recipe: VaeRecipe, out: Path, progress: Progress) -> Path:
    """Render, train, judge on held-out images, write checkpoint and card; continues what is there."""
    with locked(out / "lock"):
        _same_recipe(recipe, out)
        data = images_of(recipe, progress)
        torch.manual_seed(recipe.how.seed)
        state, held = fit(task_of(recipe, data, out), out, progress), (data["val"], recipe.how.size)
        full = judge(state.mean, held)

        def judged() -> dict[str, Any]:  # called when the file is written: of what is in it
            return {**judge(state.mean, held), "float32": full, "held_out": len(data["val"])}

        return finish(recipe, state.mean.get_submodule("net"), state.history, recipe.how.world, judged, out)


def _same_recipe(recipe: VaeRecipe, out: Path) -> None:
    """A folder is for one recipe: what is there is continued, never mixed."""
    path, wanted = out / "recipe.json", json.loads(json.dumps(recipe.described()))
    if not path.exists():
        write_json(path, wanted)
    elif (found := json.loads(path.read_text(encoding="utf-8"))) != wanted:
        differing = next(k for k in {**found, **wanted} if found.get(k) != wanted.get(k))
        raise InputError(
            f"{out} holds a training with {differing}={found.get(differing)!r}, asked is {wanted.get(differing)!r}:"
            " choose another -o"
        )


def task_of(recipe: VaeRecipe, data: dict[str, Gathered], out: Path | None = None) -> Task:
    """The learner with its loss and its images, as the loop takes them."""
    how, train = recipe.how, data["train"]
    net = Autoencoder(how.latents, train.channels, how.size)
    if how.init == "he":
        net.apply(begun_as_he)
    learner = Learner(net, recipe.objective.critic(how.latents), how.batch, how.seed, how.anneal)
    known = labelled(len(train), how.labels, how.seed) if recipe.supervised else np.zeros(0, int)
    told = how.weight if recipe.supervised else 0.0
    loss = Criterion(recipe.objective, len(train), len(train.levels), told, how.box)
    shown, held = Shown(train, recipe.block, how.batch, known), (data["val"], how.size)
    task = Task(learner, loss, shown, held, recipe.schedule, judge, half=how.half, momenta={"critic": (0.5, 0.9)})
    return replace(task, after=_drawn(data["val"], how.size, out) if out else None, says=loss.said)


def begun_as_he(layer: nn.Module) -> None:
    """Weights uniform within ±√(6 / n), n the inputs of a unit (He et al. 2015); biases stay as they are."""
    if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
        nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")


def _drawn(held: Gathered, side: int, out: Path) -> Callable[[nn.Module], None]:
    """Draws traversals.png of a network."""
    images = to_tensor(reduced(held.images[:64], side))

    def draw(net: nn.Module) -> None:
        write_png(out / "traversals.png", traversals(net.eval().get_submodule("net"), images))  # type: ignore[arg-type]

    return draw
