"""How many scenes and epochs fit into a given time: the pace is measured on this machine, the rest is arithmetic."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

from diorama.core.errors import InputError
from diorama.core.examples import Order
from diorama.core.guard import attempt
from diorama.training.loop import start_training
from diorama.training.losses import multi_target_loss

#: The epochs of the bundled recipes by the share of the full side: five at half, two at three quarters, two at full size.
EPOCHS = (0.5,) * 5 + (0.75,) * 2 + (1.0,) * 2
FEWEST, MOST = 128, 48_000
#: The share of the minutes that is planned for; the rest is for what is not measured.
USED = 0.92
#: What a pass without gradients costs, as a share of one with gradients.
FORWARD = 0.35
#: Images in a timed step, and scenes in a timed rendering.
TIMED = 16
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds to render a scene, and to train on an image at each side that the epochs use."""

    render: float
    train: dict[int, float]

    @property
    def side(self) -> int:
        """The full side."""
        return max(self.train)

    def sides(self, epochs: int = len(EPOCHS)) -> tuple[int, ...]:
        """The side of every epoch: those of the bundled recipes, stretched to this number of epochs."""
        known = sorted(self.train)
        shares = [EPOCHS[i * len(EPOCHS) // epochs] for i in range(epochs)]
        return tuple(min(known, key=lambda side, share=share: abs(side - share * self.side)) for share in shares)  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Budget:
    """Numbers of scenes for training, for validation, for the fit of the last layer and for the test; side of each epoch."""

    scenes: int
    validation: int
    frozen: int
    test: int
    sides: tuple[int, ...]

    def seconds(self, pace: Pace) -> dict[str, float]:
        """How long each step takes at a pace."""
        forward = FORWARD * pace.train[pace.side]
        return {
            "render": pace.render * (self.scenes + self.validation),
            "frozen": 3 * forward * self.frozen,  # the fit takes about twice as long as the features
            "train": sum(pace.train[side] * self.scenes + forward * self.validation for side in self.sides),
            "judge": 2 * self.test * (pace.render + forward),
        }


def planned(pace: Pace, minutes: float) -> Budget:
    """As many scenes as nine epochs leave time for; if there is time for more than MOST, more epochs.

    >>> planned(Pace(0.006, {64: 0.0013, 96: 0.0027, 128: 0.005}), 20.0).scenes > 20_000
    True
    """
    limit = 60 * USED * minutes
    if (fewest := _total(_budget(FEWEST, pace.sides()), pace)) > limit:
        least = fewest / 60 / USED
        raise InputError(f"minutes={minutes:g} is too short: this network on this machine needs at least {least:.2g}")
    low, high = FEWEST, MOST
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _total(_budget(middle, pace.sides()), pace) <= limit else (low, middle - 1)
    epochs = len(EPOCHS)
    while low == MOST and _total(_budget(low, pace.sides(epochs + 1)), pace) <= limit:
        epochs += 1
    return _budget(low, pace.sides(epochs))


def _budget(scenes: int, sides: tuple[int, ...]) -> Budget:
    return Budget(scenes, min(1000, 50 + scenes // 20), min(2000, scenes), min(2000, 100 + scenes // 10), sides)


def _total(budget: Budget, pace: Pace) -> float:
    return sum(budget.seconds(pace).values())


def measured(net: nn.Module, order: Order, processes: int, clock: Clock = time.perf_counter) -> Pace:
    """The pace of rendering with `processes`, and of training steps at the sides that the network can take."""
    shape = order.example(0)[0].image.shape  # also compiles the renderer, which must not be timed
    start = clock()
    for i in range(TIMED):
        order.example(i)
    render = (clock() - start) / TIMED / processes
    classes, full = len(order.world.classes), shape[0]
    sides = {full} if shape[0] != shape[1] else {full, *(max(32, round(full * s / 8) * 8) for s in EPOCHS)}
    shapes = {s: (s, shape[1] * s // full) for s in sorted(sides) if s <= full}
    tried = {s: attempt(partial(_step, net, shape, classes, clock)) for s, shape in shapes.items()}
    if tried[full].error:
        raise InputError(f"the network cannot be trained on {shape[1]}×{full} images: {tried[full].reason}")
    return Pace(render, {side: outcome.value for side, outcome in tried.items() if not outcome.error})


def _step(net: nn.Module, shape: tuple[int, int], classes: int, clock: Clock) -> float:
    """Seconds per image of a training step on a copy of the network."""
    trial = copy.deepcopy(net)
    start_training(trial)
    place = next(trial.parameters()).device
    images, targets = torch.rand(TIMED, 3, *shape, device=place), torch.ones(TIMED, classes, device=place)
    seconds = []
    for _ in range(3):  # the first one prepares kernels
        start = clock()
        multi_target_loss(trial(images), targets).backward()
        if place.type != "cpu":
            torch.accelerator.synchronize(place)
        seconds.append(clock() - start)
    return min(seconds[1:]) / TIMED
