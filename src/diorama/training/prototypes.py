"""ProtoPNet on staged birds (Chen et al. 2019): warm-up, joint training, push, last layer. Same command again = continue.

The trunk is the bundled `birds_resnet`'s; every prototype starts as a patch of a bird of its class. The paper's recipe (log
of distances, random start, cluster term 0.8) collapsed on these birds; cosines, patches as a start and smaller terms (0.1
and 0.02) do not. After the push every prototype is a patch of a training bird; the card says of which bird and where, and a
sheet of their pictures beside the weights lets reports show "this looks like that".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from diorama.core.progress import Progress
from diorama.core.scene import rng
from diorama.io.images import write_png
from diorama.io.locks import locked
from diorama.io.zoo import checkpoint_path
from diorama.models.birds.networks import network
from diorama.models.families.protopnet import ProtoPNet
from diorama.training.loop import State, Task, fit, to_tensor
from diorama.training.losses import multi_target_loss
from diorama.training.recipes import Recipe, finish
from diorama.training.schedule import Schedule
from diorama.training.staged import Staged, staged

#: Weights of the terms that draw patches to prototypes of a bird's own classes, and away from others'.
CLUSTER, SEPARATION = 0.1, 0.02
#: Weight of the L1 penalty on the last layer's connections to other classes' prototypes.
SPARSITY = 1e-4
#: Training birds that prototypes are pushed to, and on which the last layer is refitted.
LOOKED_AT = 12_000
#: Places of the map in a row, and the side in pixels of the picture of a patch.
PLACES, PICTURE = 8, 32
_JOINT = Schedule(sizes=(128,) * 4, batch=32, rate=2e-3, average=0.998)
RECIPE = Recipe("birds_protopnet", _JOINT)


def train_protopnet(recipe: Recipe, out: Path, progress: Progress) -> Path:
    """Render, train in stages, judge on the test birds once, write checkpoint, card and where prototypes come from."""
    with locked(out / "lock"):
        data = {purpose: staged(order, out / purpose, progress) for purpose, order in recipe.orders().items()}
        torch.manual_seed(recipe.schedule.seed)
        net = started(data["train"])
        warm = replace(recipe.schedule, sizes=recipe.schedule.sizes[:1])
        net.features.requires_grad_(False)
        state = fit(_task(net, data, warm), out / "warm", progress)
        net = cast(Joint, state.mean).net
        net.requires_grad_(True).ones.requires_grad_(False)
        joint = fit(_task(net, data, recipe.schedule), out / "joint", progress)
        joint.history[:0] = state.history
        return _pushed_and_refitted(recipe, joint, data, out, progress)


def _pushed_and_refitted(recipe: Recipe, state: State, data: dict[str, Staged], out: Path, progress: Progress) -> Path:
    net = cast(Joint, state.mean).net.eval()
    sources = push(net, data["train"], progress)
    write_png(out / f"{recipe.name}.png", sheet(data["train"], sources, net.each))
    refit(net, data["train"])
    state.mean = net
    return finish(recipe, state, data["test"], out, {"prototypes": sources})


def _task(net: ProtoPNet, data: dict[str, Staged], how: Schedule) -> Task:
    joint = Joint(net)
    return Task(joint, PrototypeLoss(net.owner), data["train"], data["validation"], how, slow="net.features")


class Joint(nn.Module):
    """A ProtoPNet in training: it also gives the similarities; the trunk's batch norms stay in eval mode."""

    def __init__(self, net: ProtoPNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        """Logits; in training followed by each prototype's largest similarity."""
        best = self.net.similarities(x).amax((2, 3))
        logits = self.net.last_layer(best)
        return torch.cat([logits, best], 1) if self.training else logits

    def train(self, mode: bool = True) -> Joint:
        """Training mode for everything but the trunk."""
        super().train(mode)
        self.net.features.eval()
        return self


class PrototypeLoss:
    """The multi-target loss, a term that pulls a bird to a prototype of its classes, and one that pushes it from others."""

    def __init__(self, owner: Tensor) -> None:
        self.owner = owner

    def __call__(self, output: Tensor, targets: Tensor) -> Tensor:
        """The loss of what `Joint` gives in training."""
        logits, best = output.split([targets.shape[1], len(self.owner)], 1)
        own = targets[:, self.owner]
        near = best.masked_fill(~own, -torch.inf).amax(1).mean()
        far = best.masked_fill(own, -torch.inf).amax(1)
        far = torch.where(far.isinf(), 0.0, far).mean()  # a bird without parts belongs to every class
        return multi_target_loss(logits, targets) - CLUSTER * near + SEPARATION * far


def started(birds: Staged) -> ProtoPNet:
    """A network with the trunk of `birds_resnet`, every prototype a conspicuous patch of a whole bird of its class."""
    net = cast(ProtoPNet, network("birds_protopnet", birds.targets.shape[1]))
    weights = load_file(checkpoint_path(None, "birds_resnet"))
    net.features.load_state_dict({k: weights[k] for k in net.features.state_dict()})
    net.eval()
    for label in range(birds.targets.shape[1]):
        for i, index in enumerate(_birds_of(birds, label, net.each)):
            with torch.no_grad():
                patches = net.patches(to_tensor(birds.images[index : index + 1]))[0].flatten(1)
                odd = (patches - patches.mean(1, keepdim=True)).norm(dim=0).argsort(descending=True)
                net.prototype_vectors[label * net.each + i, :, 0, 0] = patches[:, odd[i]]
    return net


def _birds_of(birds: Staged, label: int, count: int) -> np.ndarray:
    """Random whole birds of a class: with repetition if there are too few, of any class if there are none."""
    whole = np.flatnonzero((birds.labels == label) & (birds.targets.sum(1) == 1))
    pool = whole if len(whole) else np.arange(len(birds))
    return rng(0, "prototypes", label).choice(pool, count, replace=len(pool) < count)


def push(net: ProtoPNet, birds: Staged, progress: Progress) -> list[dict[str, int]]:
    """Make every prototype the most similar patch of a training bird of its class; gives bird, row and column of each."""
    owner = net.owner.numpy()
    best, sources = np.full(len(owner), -np.inf), [{"bird": -1, "row": 0, "column": 0} for _ in owner]
    vectors = net.prototype_vectors.detach().clone()
    count = min(LOOKED_AT, len(birds))
    for start, patches in _patches(net, birds, count):
        similar = net.compared(patches).numpy()
        for n, label in enumerate(birds.labels[start : start + len(patches)]):
            for p in np.flatnonzero(owner == label):
                row, column = np.unravel_index(int(similar[n, p].argmax()), similar.shape[2:])
                if similar[n, p, row, column] > best[p]:
                    best[p] = similar[n, p, row, column]
                    sources[p] = {"bird": start + n, "row": int(row), "column": int(column)}
                    vectors[p, :, 0, 0] = patches[n, :, row, column]
        progress(min(start + len(patches), count), count, "pushing prototypes to patches")
    with torch.no_grad():
        net.prototype_vectors.copy_(vectors)
    return sources


def sheet(birds: Staged, found: list[dict[str, int]], each: int) -> np.ndarray:
    """The prototypes' patches in one picture, a row for each class: as in "this looks like that"."""
    pieces = [_patch(birds.images[one["bird"]], one["row"], one["column"]) for one in found]
    rows = [np.concatenate(pieces[i : i + each], 1) for i in range(0, len(pieces), each)]
    return np.concatenate(rows)


def _patch(image: np.ndarray, row: int, column: int) -> np.ndarray:
    """The square of `PICTURE` pixels around a place of the map, shifted to lie inside the image."""
    step = image.shape[0] // PLACES
    y, x = (min(max(step * at + step // 2 - PICTURE // 2, 0), image.shape[0] - PICTURE) for at in (row, column))
    return image[y : y + PICTURE, x : x + PICTURE]


def refit(net: ProtoPNet, birds: Staged, steps: int = 300) -> None:
    """Fit the last layer alone, from similarities computed once; connections to other classes' prototypes are kept small."""
    count = min(LOOKED_AT, len(birds))
    with torch.no_grad():
        best = torch.cat([net.compared(patches).amax((2, 3)) for _, patches in _patches(net, birds, count)])
    targets = torch.from_numpy(np.array(birds.targets[:count]))
    others = net.owner != torch.arange(targets.shape[1])[:, None]
    weight = net.last_layer.weight.detach().clone().requires_grad_(True)
    optimizer = torch.optim.Adam([weight], lr=1e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = multi_target_loss(best @ weight.T, targets) + SPARSITY * (weight.abs() * others).sum()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        net.last_layer.weight.copy_(sparsest(weight, others))


def sparsest(weight: Tensor, others: Tensor) -> Tensor:
    """The connections (classes, prototypes) with the same probabilities and the smallest Σ |connections to `others`|.

    A number added to all connections of a prototype changes every logit alike, which does not change a loss on
    probabilities; Σ |·| is smallest where the median of those to other classes is zero. Otherwise all logits drift far below
    zero together, and removing a part raises them all.
    """
    return weight - weight.masked_fill(~others, torch.nan).nanmedian(0).values


def _patches(net: ProtoPNet, birds: Staged, count: int, batch: int = 64) -> Iterator[tuple[int, Any]]:
    with torch.inference_mode(False), torch.no_grad():
        for start in range(0, count, batch):
            yield start, net.patches(to_tensor(birds.images[start : min(start + batch, count)]))
