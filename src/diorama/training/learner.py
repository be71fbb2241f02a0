"""What the training loop needs of a learner of codes: the network with the noise of its steps, its loss, its images.

Everything random is a function of (seed, step), and the number of the step is part of the network's state, so a training
that was interrupted ends with the same weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from diorama.core.scene import rng
from diorama.methods.represent.burgess_network import Autoencoder, divergence, divergences
from diorama.training.gathered import Gathered, in_passes
from diorama.training.loop import reduced, to_tensor
from diorama.training.objectives.boxes import inside, reconstruction
from diorama.training.objectives.factor_vae import judged
from diorama.training.objectives.labels import label_loss
from diorama.training.objectives.objective import Objective, Passed
from diorama.training.schedule import Schedule

#: Variance of a latent's mean over held-out images above which it counts as active (Burda et al. 2016).
ACTIVE = 0.01


class Learner(nn.Module):
    """The autoencoder, the critic of its objective where there is one, and the noise of its steps.

    The first `batch` images of a training batch are reconstructed; the labelled ones after them are only encoded. Over the
    first `anneal` steps the penalty grows to its full weight.
    """

    step: Tensor

    def __init__(self, net: Autoencoder, critic: nn.Module | None, batch: int, seed: int, anneal: int = 0) -> None:
        super().__init__()
        self.net, self.critic, self.batch, self.seed, self.anneal = net, critic, batch, seed, anneal
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, images: Tensor) -> Passed:
        """The forward pass of a batch; in evaluation the code is the mean, and the critic is not used."""
        mean, log_variance = self.net.encoder(images)
        if not self.training:
            none = mean.new_zeros(0)
            return Passed(images, self.net.decoder(mean), mean, log_variance, mean, none, none)
        n = self.batch
        noise = rng(self.seed, "noise", int(self.step))
        standard_normal = torch.from_numpy(noise.standard_normal((n, mean.shape[1]), np.float32)).to(mean)
        z = mean[:n] + standard_normal * torch.exp(log_variance[:n] / 2)
        verdict = (
            mean.new_zeros(0) if self.critic is None else judged(self.critic, z, _permuted(n, mean.shape[1], noise))
        )
        self.step += 1
        grown = torch.clamp(self.step / max(self.anneal, 1), max=1.0)
        return Passed(images[:n], self.net.decoder(z), mean[:n], log_variance[:n], z, mean[n:], verdict, grown)


def _permuted(count: int, latents: int, noise: np.random.Generator) -> Tensor:
    """(count, latents): a permutation of the images for each latent."""
    return torch.from_numpy(np.stack([noise.permutation(count) for _ in range(latents)], axis=1))


@dataclass(slots=True)
class Criterion:
    """The loss of a learner's batch: reconstruction + the objective's penalty + the cross-entropy of labels.

    count    number of training images
    factors  number of the targets' columns that are labels; the four after them are the box
    labels   γ_sup, the weight of the cross-entropy of labels
    box      λ, the weight of a pixel inside the object's box in addition to 1
    """

    objective: Objective
    count: int
    factors: int
    labels: float = 0.0
    box: float = 0.0
    last: dict[str, float] = field(default_factory=dict)

    def __call__(self, seen: Passed, targets: Tensor) -> Tensor:
        """The loss of a batch; keeps its parts for `said`."""
        n, boxes = len(seen.x), targets[:, self.factors :]
        error = reconstruction(seen.logits, seen.x, boxes[:n], self.box).mean()
        total = error + self.objective.penalty(seen, self.count)
        kl = divergence(seen.mean, seen.log_variance).mean()
        self.last = {"reconstruction": float(error.detach()), "KL": float(kl.detach())}
        if self.labels and len(seen.labelled):
            cost = label_loss(seen.labelled, targets[n:, : self.factors])
            self.last["labels"] = float(cost.detach()) / (len(seen.labelled) * self.factors)
            total = total + self.labels * cost
        return total

    def said(self) -> str:
        """The parts of the last batch's loss."""
        return ", ".join(f"{name} {value:.2f}" for name, value in self.last.items())


class Shown:
    """Batches for the training loop, `steps` in an epoch, each followed by a batch of the labelled images `known`, if any.

    The targets of an image are its labels and its box, unless others are given.
    """

    def __init__(
        self,
        images: Gathered,
        steps: int,
        batch: int,
        known: np.ndarray | None = None,
        targets: np.ndarray | None = None,
    ) -> None:
        self.images, self.steps, self.batch = images, steps, batch
        self.known = np.zeros(0, int) if known is None else known
        own = np.concatenate([images.targets, np.asarray(images.boxes)], axis=1)
        self.targets = own if targets is None else targets

    def __len__(self) -> int:
        return self.steps * self.batch

    def batches(self, how: Schedule, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of an epoch: images, and for each its labels and its box."""
        first = epoch * self.steps
        shuffled = in_passes(len(self.images), self.batch, first, how.seed, "pass")
        labelled = in_passes(len(self.known), self.batch, first, how.seed, "labelled pass") if len(self.known) else None
        for index in islice(shuffled, self.steps):
            places = index if labelled is None else np.concatenate([index, self.known[next(labelled)]])
            small = reduced(self.images.images[places], how.sizes[epoch])
            yield to_tensor(small), torch.from_numpy(self.targets[places])


def judge(net: nn.Module, data: tuple[Gathered, int]) -> dict[str, float]:
    """Scores of held-out images with means for codes: reconstruction, KL, active latents, squared error in the box.

    `data` is the images and the side they are reduced to. Errors are per pixel and channel, of images in [0, 1].
    """
    images, side = data
    scores, means = [], []
    net.eval()
    with torch.inference_mode():
        for i in range(0, len(images), 100):
            passed: Passed = net(to_tensor(reduced(images.images[i : i + 100], side)))
            mask = inside(torch.from_numpy(np.array(images.boxes[i : i + 100])), side)
            squares = (torch.sigmoid(passed.logits) - passed.x).square().mean(1)
            boxed = (squares * mask).sum((1, 2)) / mask.sum((1, 2)).clamp(min=1)
            kls = divergences(passed.mean, passed.log_variance).sum(1)
            scores.append(torch.stack([reconstruction(passed.logits, passed.x), kls, squares.mean((1, 2)), boxed]))
            means.append(passed.mean)
    reconstructed, kl, error, box_error = torch.cat(scores, dim=1).mean(1).tolist()
    active = int((torch.cat(means).var(0) > ACTIVE).sum())
    in_box = {"box_error": box_error} if images.boxed else {}
    return {"reconstruction": reconstructed, "divergence": kl, "active": active, "error": error, **in_box}
