"""The leak probe: can a network name the class of a bird that has lost every part? It must not.

If background, camera, lamp or renderer told anything about the class, a model could be right for reasons that no part
intervention touches. The probe is trained with the true labels on birds with all five parts removed and judged on
held-out ones: its accuracy must lie inside the binomial 95 % interval around chance. A probe that finds nothing says
little unless it finds what is there: `planted` tints every image by its class, and the probe must then see it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diorama.core.examples import Order
from diorama.core.progress import Progress
from diorama.training.schedule import Schedule
from diorama.training.staged import Staged, staged
from diorama.worlds.birds.birds import Birds

#: A short training: averaged over as long as the bundled recipes do, the weights would miss even a planted leak.
SCHEDULE = Schedule(sizes=(64,) * 8, rate=2e-3, average=0.9)


@dataclass(frozen=True, slots=True)
class Leak:
    """What the probe found: its accuracy on `birds` held-out bare birds, on its training birds, and chance's interval."""

    accuracy: float
    fitted: float
    low: float
    high: float
    birds: int

    @property
    def found(self) -> bool:
        """Whether the probe is better than chance allows."""
        return self.accuracy > self.high


@dataclass(frozen=True, slots=True)
class Probe:
    """How to probe: birds to train on, birds to judge on, the schedule, and the control.

    `planted` adds up to so many levels of blue (of 255) in proportion to the class: 0 for the probe itself.
    """

    train: int = 8_000
    held_out: int = 5_000
    size: int = 64
    schedule: Schedule = SCHEDULE
    seed: int = 0
    planted: int = 0


def leak_probe(probe: Probe, folder: Path, progress: Progress) -> Leak:
    """Train the probe in `folder` and judge it once."""
    import torch

    from diorama.models.birds.networks import ResidualNetwork
    from diorama.training.loop import Task, accuracy, fit
    from diorama.training.losses import multi_target_loss

    world = Birds(probe.size)
    counts = {"bare-train": probe.train, "bare-held-out": probe.held_out}
    train, held_out = (
        _planted(staged(Order(world, probe.seed, purpose, count, bare=True), folder / purpose, progress), probe.planted)
        for purpose, count in counts.items()
    )
    torch.manual_seed(probe.seed)
    net = ResidualNetwork(len(world.classes))
    watched = Staged(held_out.images[:64], held_out.labels[:64], held_out.targets[:64])  # chooses nothing
    state = fit(
        Task(net, multi_target_loss, train, watched, probe.schedule), folder / f"planted{probe.planted}", progress
    )
    low, high = chance_interval(probe.held_out, len(world.classes))
    return Leak(accuracy(state.mean, held_out), accuracy(state.mean, train), low, high, probe.held_out)


def chance_interval(count: int, classes: int) -> tuple[float, float]:
    """The central 95 % of the share of right guesses among `count`.

    >>> chance_interval(5000, 50)
    (0.0162, 0.024)
    """
    from scipy.stats import binom

    low, high = binom.ppf([0.025, 0.975], count, 1 / classes) / count
    return float(low), float(high)


def _planted(data: Staged, levels: int) -> Staged:
    """The birds with their true label as only target, though a bare bird is compatible with every class; tinted by it."""
    classes = data.targets.shape[1]
    images = np.array(data.images)
    tint = np.round(data.labels / (classes - 1) * levels).astype(np.uint8)
    images[..., 2] = np.minimum(images[..., 2], 255 - levels) + tint[:, None, None]
    return Staged(images, data.labels, np.eye(classes, dtype=bool)[data.labels])
