"""Supplement D.1 of FunnyBirds: how often every network names the class of a bird that has lost all its parts.

Its parts are all that tells the class, so a network that is right more often than one in fifty has found something else.
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

#: Birds that nobody trained on: their purpose is their own.
PURPOSE, BIRDS = "bare-judged", 2_000


def bare_birds(folder: Path, progress: Progress, count: int = BIRDS) -> Staged:
    """Birds without parts, rendered once into a folder."""
    return staged(Order(build("world", "birds").object, 0, PURPOSE, count, bare=True), folder, progress)


def bare_accuracy(network: str, birds: Staged, batch: int = 64) -> float:
    """The share of bare birds whose class the network names."""
    model = build("model", network).object
    parts = (birds.images[i : i + batch].astype(np.float32) / 255 for i in range(0, len(birds), batch))
    found = [model.logits(part).argmax(1) for part in parts]
    return float((np.concatenate(found) == birds.labels).mean())


def chance_interval(count: int, classes: int) -> tuple[float, float]:
    """The central 95 % of the share of right guesses among `count`.

    >>> chance_interval(5000, 50)
    (0.0162, 0.024)
    """
    low, high = binom.ppf([0.025, 0.975], count, 1 / classes) / count
    return float(low), float(high)


def bare_table(networks: list[str], birds: Staged) -> str:
    """The accuracy of every network beside what guessing gives."""
    low, high = chance_interval(len(birds), birds.targets.shape[1])
    rows = []
    for network in networks:
        share = bare_accuracy(network, birds)
        rows.append([network, f"{share:.4f}", f"{low:.4f}–{high:.4f}", "yes" if low <= share <= high else "no"])
    return table(["network", "right", "guessing, 95 %", "inside"], rows)
