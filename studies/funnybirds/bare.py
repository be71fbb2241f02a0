"""Supplement D.1 of FunnyBirds: each network's accuracy on birds without any parts.

Only its parts depend on a bird's class. A network that is right more often than one in fifty uses something else.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import binom

from diorama.core.catalogue import build
from diorama.core.examples import Order
from diorama.core.progress import Progress
from diorama.training.staged import Staged, staged
from studies.page_kit import table

#: The purpose differs from those of the trainings, so that no network was trained on these birds.
PURPOSE, BIRDS = "bare-judged", 2_000


def bare_birds(folder: Path, progress: Progress, count: int = BIRDS) -> Staged:
    """Birds without parts, rendered into a folder unless they are there."""
    return staged(Order(build("world", "birds").object, 0, PURPOSE, count, bare=True), folder, progress)


def bare_accuracy(network: str, birds: Staged, batch: int = 64) -> float:
    """The share of bare birds whose class the network names."""
    model = build("model", network).object
    batches = (birds.images[i : i + batch].astype(np.float32) / 255 for i in range(0, len(birds), batch))
    predicted = [model.logits(images).argmax(1) for images in batches]
    return float((np.concatenate(predicted) == birds.labels).mean())


def chance_interval(count: int, classes: int) -> tuple[float, float]:
    """The central 95 % of the share of right guesses among `count`.

    >>> chance_interval(5000, 50)
    (0.0162, 0.024)
    """
    low, high = binom.ppf([0.025, 0.975], count, 1 / classes) / count
    return float(low), float(high)


def bare_table(networks: list[str], birds: Staged) -> str:
    """The accuracy of every network beside the 95 % interval of guessing."""
    low, high = chance_interval(len(birds), birds.targets.shape[1])
    rows = []
    for network in networks:
        share = bare_accuracy(network, birds)
        rows.append([network, f"{share:.4f}", f"{low:.4f}–{high:.4f}", "yes" if low <= share <= high else "no"])
    return table(["network", "right", "guessing, 95 %", "inside"], rows)
