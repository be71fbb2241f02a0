"""What one training step of each learner costs, in CPU seconds, and what all trainings of the study come to.

python -m studies.disentangle.pace [STEPS]          prints a table; images are noise, only the time counts
"""

import sys
import time
from itertools import product
from typing import Any

import numpy as np
import torch

from diorama.core.spec import parse
from diorama.training.autoencoders import VAE_RECIPES, VaeRecipe, task_of, vae_recipe
from diorama.training.gathered import SIDE, Gathered
from diorama.training.loop import fresh, train_steps
from studies.disentangle.trainings import JUDGES, trainings
from studies.page_kit import table

#: Images of the candle world's shape.
IMAGES, LEVELS = 256, {"scene": 3, "light": 3, "object": 5, "color": 5, "size": 3, "rotation": 6}


def noise() -> Gathered:
    """Images that need no rendering."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (IMAGES, SIDE, SIDE, 3), np.uint8)
    factors = np.stack([random.integers(0, n, IMAGES) for n in LEVELS.values()], axis=1)
    return Gathered(images, factors, np.full((IMAGES, 4), 0.5, np.float32), LEVELS)


def seconds(recipe: VaeRecipe, steps: int) -> float:
    """The CPU time of a step of a learner, the first three left out."""
    images = noise()
    task = task_of(recipe, {"train": images, "val": images})
    state, took = fresh(task), []
    start = time.process_time()
    for _ in train_steps(state, task, steps + 3):
        now = time.process_time()
        took.append(now - start)
        start = now
    return float(np.median(took[3:]))


def learner(name: str, size: int, half: bool) -> VaeRecipe:
    """A learner of the study at another size and precision."""
    return vae_recipe(parse(f"{name}(size={size}, half={half}, world=candle)"))


def main(argv: list[str]) -> None:
    """Print CPU seconds of a step by learner, size and precision; then hours of every group of trainings."""
    torch.set_num_threads(1)
    steps = int(argv[0]) if argv else 8
    found: dict[tuple[str, int, bool], float] = {}
    rows: list[list[str]] = []
    for name in VAE_RECIPES:
        costs = {(name, *how): seconds(learner(name, *how), steps) for how in product((64, 32), (False, True))}
        found |= costs
        rows.append([name, *(f"{cost:.3f}" for cost in costs.values())])
        print(rows[-1], file=sys.stderr, flush=True)
    print(table(["learner", "64 px float32", "64 px bfloat16", "32 px float32", "32 px bfloat16"], rows))
    print()
    print(table(["trainings", "number", "CPU hours"], budget(found)))


def budget(found: dict[tuple[str, int, bool], float]) -> list[list[str]]:
    """How many trainings each group of the study has, and how many CPU hours they need."""
    groups: dict[str, list[float]] = {}
    for name, text in trainings().items():
        if name in JUDGES:
            continue
        asked: Any = vae_recipe(parse(text))
        cost = found[asked.name, asked.how.size, asked.how.half] * asked.how.steps / 3600
        groups.setdefault(name.partition("/")[0], []).append(cost)
    rows = [[group, str(len(costs)), f"{sum(costs):.1f}"] for group, costs in groups.items()]
    everything = [cost for costs in groups.values() for cost in costs]
    return [*rows, ["all", str(len(everything)), f"{sum(everything):.1f}"]]


if __name__ == "__main__":
    main(sys.argv[1:])
