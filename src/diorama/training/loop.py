"""The training loop: one for all recipes, resumable to the bit.

Everything random is a function of (seed, epoch); the learning rate is a function of the step; the state after an epoch
(weights, averaged weights, moments of AdamW, history) is one file, replaced atomically. So a training that was killed and
started again ends with the same weights as one that was not, on the same machine with the same number of threads.

Weights and batch-norm statistics are averaged exponentially over the steps, and the average is what is judged and kept:
at the peak of the learning rate the running statistics lag behind the weights and a plain evaluation reads chance.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import count, islice, product
from pathlib import Path
from typing import Any, Protocol

import cv2
import numpy as np
import torch
from torch import Tensor, nn

from diorama.core.errors import InputError
from diorama.core.progress import Progress
from diorama.core.scene import rng
from diorama.io.store import write_whole
from diorama.training.schedule import Schedule
from diorama.training.staged import Staged

#: The loss of a network's output in float32 (a tensor, or an object with `float()` that the loss knows) and the targets.
Loss = Callable[[Any, Tensor], Tensor]
History = list[dict[str, float]]


class Feed(Protocol):
    """A source of images that makes its own batches; `len` is the number of images in an epoch."""

    def __len__(self) -> int: ...

    def batches(self, how: Schedule, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of an epoch."""


@dataclass(frozen=True, slots=True)
class Task:
    """What to train: a fresh network, its loss, the images to train on and to validate on, and how.

    The history gets after every epoch the accuracy on the validation images, or what `judge` gives for the network and
    those images: a number, higher is better, or several by name.
    """

    net: nn.Module
    loss: Loss
    train: Staged | Feed
    validation: Any
    how: Schedule
    judge: Callable[[nn.Module, Any], float | Mapping[str, float]] | None = None
    betas: tuple[float, float] = (0.9, 0.999)
    #: Whether weights lie with channels last in memory: faster, but some networks cannot take it.
    channels_last: bool = True
    #: The norm to which a step's gradient is clipped; None: no clipping.
    clip: float | None = None
    #: Weights whose names begin with this learn at a tenth of the rate; "": none.
    slow: str = ""
    #: Whether passes multiply in bfloat16 (weights, sums, loss and validation stay float32): 1.3 to 1.9 times faster.
    half: bool = False
    #: Momenta that replace `betas` for the weights whose names begin with the key.
    momenta: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    #: Called after every epoch with the averaged network, e.g. to write a picture.
    after: Callable[[nn.Module], None] | None = None
    #: Gives the parts of the last step's loss in words, for the progress line.
    says: Callable[[], str] | None = None

    @property
    def steps(self) -> int:
        """Steps in an epoch: whole batches only, the rest of a shuffled epoch is left out."""
        return max(1, len(self.train) // self.how.batch)

    @property
    def total(self) -> int:
        """Steps in all."""
        return self.steps * len(self.how.sizes)


@dataclass(slots=True)
class State:
    """All that an interrupted training needs; `mean` is the network with averaged weights."""

    net: nn.Module
    mean: nn.Module
    optimizer: torch.optim.Optimizer
    history: History

    @property
    def epoch(self) -> int:
        """The next epoch to train."""
        return len(self.history)


def fit(task: Task, folder: Path, progress: Progress) -> State:
    """Train until every epoch of the schedule is done; continues from the state in `folder` if there is one."""
    state = resume(task, folder)
    while state.epoch < len(task.how.sizes):
        start = time.monotonic()
        loss = float(np.mean(list(_epoch(state, task, progress))))
        size, scores = task.how.sizes[state.epoch], _validation_scores(state, task)
        seconds = round(time.monotonic() - start, 1)
        state.history.append({"size": size, "loss": loss, **scores, "seconds": seconds})
        save_state(state, task, folder)
        if task.after:
            task.after(state.mean)
    return state


def _validation_scores(state: State, task: Task) -> dict[str, float]:
    """The accuracy, or what the task's judge gives, by name."""
    if task.judge is None:
        return {"accuracy": accuracy(state.mean, task.validation)}
    scores = task.judge(state.mean, task.validation)
    return {"judged": float(scores)} if isinstance(scores, int | float) else {k: float(v) for k, v in scores.items()}


def train_steps(state: State, task: Task, steps: int) -> Iterator[float]:
    """The losses of the first steps from a state on, one step per item: for measuring the pace of a training."""
    start_training(state.net)
    all_batches = (batch for epoch in count(state.epoch) for batch in batches(task.train, task.how, epoch))
    for i, (images, targets) in enumerate(islice(all_batches, steps)):
        yield _step(state, task, images, targets, i)


def _epoch(state: State, task: Task, progress: Progress) -> Iterator[float]:
    """Train for an epoch; gives the loss of every step."""
    start_training(state.net)
    start, before = time.monotonic(), state.epoch * task.steps
    for i, (images, targets) in enumerate(batches(task.train, task.how, state.epoch), start=1):
        loss = _step(state, task, images, targets, before + i - 1)
        if not math.isfinite(loss):
            raise InputError(
                f"the loss became {loss} at step {before + i}: the state before epoch {state.epoch + 1} is kept,"
                " so the same command ends here again; train in another folder with a lower rate"
            )
        pace = i * task.how.batch / (time.monotonic() - start)
        parts = f", {task.says()}" if task.says else ""
        progress(before + i, task.total, f"steps; epoch {state.epoch + 1}: loss {loss:.3f}{parts}, {pace:.0f} images/s")
        yield loss


def _step(state: State, task: Task, images: Tensor, targets: Tensor, step: int) -> float:
    for group in state.optimizer.param_groups:
        group["lr"] = task.how.rate_at(step, task.steps) * group["share"]
    state.optimizer.zero_grad()
    place = next(state.net.parameters()).device
    with torch.autocast(place.type, torch.bfloat16, enabled=task.half):
        output = state.net(images.to(place))
    loss = task.loss(output.float(), targets.to(place))
    loss.backward()
    if task.clip is not None:
        nn.utils.clip_grad_norm_(state.net.parameters(), task.clip)
    state.optimizer.step()
    average_into(state.mean, state.net, task.how.average)
    return float(loss.detach())


def start_training(net: nn.Module) -> None:
    """Training mode for everything but the fixed normalisation of the input (see `models/full_size.py`)."""
    net.train()
    for part in net.modules():
        if is_fixed(part):
            part.eval()


def is_fixed(part: nn.Module) -> bool:
    """Whether a batch norm is one that only normalises the input: it has no weights and adds nothing to the variance."""
    return isinstance(part, nn.BatchNorm2d) and not part.affine and part.eps == 0


def average_into(mean: nn.Module, net: nn.Module, decay: float) -> None:
    """mean ← decay·mean + (1 − decay)·net, for weights and batch-norm statistics alike."""
    with torch.no_grad():
        for old, new in zip(mean.state_dict().values(), net.state_dict().values(), strict=True):
            if old.is_floating_point():
                old.lerp_(new, 1 - decay)
            else:
                old.copy_(new)


def batches(data: Staged | Feed, how: Schedule, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The batches of an epoch, shuffled, shifted and mirrored as (seed, epoch) say."""
    if not isinstance(data, Staged):
        yield from data.batches(how, epoch)
        return
    generator = rng(how.seed, "epoch", epoch)
    order = generator.permutation(len(data))
    for i in range(max(1, len(data) // how.batch)):
        index = np.sort(order[i * how.batch : (i + 1) * how.batch])
        moved = shifted(data.images[index], generator.integers(0, 2 * how.shift + 1, (len(index), 2)), how.shift)
        if how.flip:
            mirror = generator.random(len(index)) < 0.5
            moved[mirror] = moved[mirror, :, ::-1]
        yield to_tensor(reduced(moved, how.sizes[epoch])), torch.from_numpy(data.targets[index])


def shifted(images: np.ndarray, offsets: np.ndarray, shift: int) -> np.ndarray:
    """Images moved by `shift` − offset pixels down and right; edges repeat.

    >>> shifted(np.arange(3).reshape(1, 1, 3, 1), np.array([[1, 0]]), 1)[0, 0, :, 0].tolist()
    [0, 0, 1]
    """
    _, h, w, _ = images.shape
    padded = np.pad(images, ((0, 0), (shift, shift), (shift, shift), (0, 0)), mode="edge")
    return np.stack([p[y : y + h, x : x + w] for p, (y, x) in zip(padded, offsets, strict=True)])


def to_tensor(images: np.ndarray) -> Tensor:
    """uint8 (n, h, w, 3) → float32 (n, 3, h, w) in [0, 1], channels last in memory: 1.2 to 1.5 times faster on CPUs."""
    return torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).float() / 255


def reduced(images: np.ndarray, size: int) -> np.ndarray:
    """uint8 images of a smaller side, by area."""
    if images.shape[1] == size:
        return images
    small = [cv2.resize(image, (size, size), interpolation=cv2.INTER_AREA) for image in images]
    return np.stack(small).reshape(len(images), size, size, -1)  # cv2 drops a single channel


def accuracy(net: nn.Module, data: Staged, batch: int = 64) -> float:
    """The share of scenes whose own class has the largest logit."""
    right = sum(int((logits.argmax(1) == data.labels[i : i + batch]).sum()) for i, logits in outputs(net, data, batch))
    return right / len(data)


def outputs(net: nn.Module, data: Staged, batch: int = 64) -> Iterator[tuple[int, np.ndarray]]:
    """The outputs of a network in eval mode for every batch of images, with the index of its first image."""
    net.eval()
    place = next(net.parameters()).device
    with torch.inference_mode():
        for i in range(0, len(data), batch):
            yield i, net(to_tensor(data.images[i : i + batch]).to(place)).cpu().numpy()


def fresh(task: Task) -> State:
    """The state before the first step."""
    for weight in task.net.parameters() if task.channels_last else ():
        weight.data = _channels_last(weight.data)
    groups = list(_groups(task))
    mean = copy.deepcopy(task.net).requires_grad_(False)
    return State(task.net, mean, torch.optim.AdamW(groups), [])


def _groups(task: Task) -> Iterator[dict[str, Any]]:
    """The optimizer's groups of weights: biases and batch norm do not decay, slow ones have a tenth of the rate."""
    for slow, momenta in product((False, True), dict.fromkeys((task.betas, *task.momenta.values()))):
        named = [
            p
            for n, p in task.net.named_parameters()
            if p.requires_grad and _is_slow(n, task) == slow and _momenta(n, task) == momenta
        ]
        for decay, heavy in ((task.how.decay, True), (0.0, False)):
            chosen = [p for p in named if (p.ndim >= 2) == heavy]
            if chosen:
                yield {"params": chosen, "weight_decay": decay, "share": 0.1 if slow else 1.0, "betas": momenta}


def _momenta(name: str, task: Task) -> tuple[float, float]:
    return next((betas for start, betas in task.momenta.items() if name.startswith(start)), task.betas)


def _is_slow(name: str, task: Task) -> bool:
    return bool(task.slow) and name.startswith(task.slow)


def save_state(state: State, task: Task, folder: Path) -> None:
    """Write the state: the new file replaces the old one when it is complete and on the disk."""
    from safetensors.torch import save

    tensors = {f"net.{k}": v for k, v in state.net.state_dict().items()}
    tensors |= {f"mean.{k}": v for k, v in state.mean.state_dict().items()}
    for i, slot in state.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{i}.{k}": v for k, v in slot.items()}
    about = {"history": json.dumps(state.history), "schedule": json.dumps(asdict(task.how))}
    write_whole(folder / "state.safetensors", save({k: v.contiguous() for k, v in tensors.items()}, about))


def resume(task: Task, folder: Path) -> State:
    """The state in `folder`, or the fresh one."""
    from safetensors import safe_open

    state = fresh(task)
    path = folder / "state.safetensors"
    if not path.exists():
        return state
    with safe_open(path, "pt") as file:
        about = file.metadata()
        if about["schedule"] != json.dumps(asdict(task.how)):
            raise InputError(f"{path} was trained with another schedule: choose another -o, or delete it")
        state.history += json.loads(about["history"])
        tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118 - not a dict
    state.net.load_state_dict(_under(tensors, "net."))
    state.mean.load_state_dict(_under(tensors, "mean."))
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _under(tensors, "optimizer.").items():
        i, _, key = name.partition(".")
        slots.setdefault(int(i), {})[key] = _channels_last(tensor) if task.channels_last else tensor
    state.optimizer.load_state_dict({"state": slots, "param_groups": state.optimizer.state_dict()["param_groups"]})
    return state


def _channels_last(tensor: Tensor) -> Tensor:
    """The faster memory layout; moments have that of their weights, so that a resumed step rounds as any other."""
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
