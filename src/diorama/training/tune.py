"""Anybody's network, fitted to a staged world whose classes are known, so that part protocols have something to judge.

First the last layer is fitted on frozen features, then everything is trained, with the loss of the bundled birds: half of
the scenes lack random parts, and every class that has the remaining parts is right (Hesse et al. 2023, §4). The plan is
written to `plan.json` before the work starts and the state after every epoch, so that the same call goes on after an
interruption and ends with the same weights. `checkpoint(path=FOLDER)` reads the results, `weights.safetensors` and
`card.json`.
"""

import copy
import json
import math
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import Tensor, nn

from diorama.adapt.classifying import first_pass, is_module, laid_out
from diorama.adapt.live import component
from diorama.core import device
from diorama.core.capabilities import Labelled, Parted
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.examples import Order, described, labelled
from diorama.core.progress import Progress
from diorama.core.scene import digest
from diorama.io.files import read_json
from diorama.io.locks import locked
from diorama.io.store import write_json, write_whole
from diorama.models.full_size import head_name, with_classes
from diorama.progress import clock, say, shown
from diorama.solvers.logistic import fit_logistic
from diorama.training.budget import Budget, Clock, Pace, measured, planned
from diorama.training.card import made_of, share
from diorama.training.loop import Task, accuracy, fit, is_fixed, outputs, start_training, to_tensor
from diorama.training.losses import multi_target_loss
from diorama.training.schedule import Schedule
from diorama.training.staged import Staged, staged

Say = Callable[[str], None]
#: Learning rates of AdamW; networks with batch norm need a higher one.
RATES = {True: 4e-3, False: 5e-4}
#: Penalty and steps of the fit on frozen features.
L2, STEPS = 1e-3, 200


class Tuned(nn.Module):
    """A fitted network: sRGB (n, 3, h, w) in [0, 1] in, logits out. `card` says how it was made and how good it is.

    `path` is the folder that `checkpoint(path=…)` takes; None where the call named none.
    """

    def __init__(self, net: nn.Module, card: dict[str, Any], path: Path | None) -> None:
        super().__init__()
        self.net, self.card, self.path = net, card, path
        self.size = int(card["size"])

    def forward(self, images: Tensor) -> Tensor:
        """The logits."""
        return self.net(images)

    def __repr__(self) -> str:
        return f"Tuned({self.card['name']} on {self.card['world']}: {verdict(self.card)})"


@dataclass(frozen=True, slots=True)
class Job:
    """A network with a last layer for the world's classes, and what to fit it to.

    `network` is the spec that builds it again, empty for a live one.
    """

    net: nn.Module
    name: str
    network: str
    world: Labelled
    on: str
    minutes: float
    seed: int = 0
    rate: float | None = None
    #: Whether the folder is the user's own, not a temporary one.
    kept: bool = True

    @property
    def identity(self) -> dict[str, Any]:
        """What must be the same for a folder to be continued."""
        shapes = {name: list(tensor.shape) for name, tensor in self.net.state_dict().items()}
        rest = {"minutes": self.minutes, "seed": self.seed, "rate": self.rate}
        return {"net": digest(shapes), "world": described(self.world), "on": self.on, **rest}

    def order(self, purpose: str, count: int) -> Order:
        """The scenes for a purpose: half of those for training lack parts, `bare` ones have none."""
        return Order(self.world, self.seed, f"tune {purpose}", count, purpose == "bare", purpose == "train")


def tune(
    net: Any,
    on: Any = "birds",
    minutes: float = 10,
    out: str | Path | None = None,
    seed: int = 0,
    rate: float | None = None,
) -> Tuned:
    """Fit a network to a staged world whose classes are known; gives a fitted copy, the network stays as it is.

    `net` is a torch module that takes sRGB (n, 3, h, w) in [0, 1], or the spec of a model (`timm:resnet18`,
    `./mine.py:build`). A last layer with another number of outputs is replaced. `on` is a world's spec or a world.
    `minutes` is roughly how long it may take; the plan is printed first. `out` is a folder: the same call goes on
    where an earlier one was stopped. `rate` is the highest learning rate (None: 0.004 with batch norm, 0.0005 without).
    """
    job = replace(job_of(net, on, minutes, seed, rate), kept=out is not None)
    with ExitStack() as stack:
        folder = Path(out or stack.enter_context(tempfile.TemporaryDirectory(prefix="diorama-tune-")))
        progress = stack.enter_context(shown(f"tuning {job.name}", ""))
        tuned = tune_in(job, folder, progress, say)
    tuned.path = folder if out else None
    return tuned


def job_of(net: Any, on: Any, minutes: float, seed: int = 0, rate: float | None = None) -> Job:
    """Check what `tune` was asked for: every mistake is found before anything is rendered."""
    if not isinstance(minutes, int | float) or isinstance(minutes, bool) or not 0 < minutes < math.inf:
        raise InputError(f"tune: minutes={minutes!r}: give how long it may take, above 0, e.g. 10")
    if rate is not None and not 0 < rate < 1:
        raise InputError(f"tune: rate={rate!r}: give a learning rate, e.g. 0.001")
    on_world = component("world", on)
    world, spec = labelled(on_world.object, on_world.label, "tune"), on_world.label
    module, name, network = _network(net)
    module = module.requires_grad_(True).to(device.current())
    height, width = world.render([Order(world, seed, "tune size", 1).scene(0)])[0].image.shape[:2]
    classes = len(world.classes)
    module = with_classes(module, classes, f"tune: {name}")
    if height == width:
        module = laid_out(module.eval(), height)
        what = f"tune: {name} on {spec}: build it for the size of the images, or write size=…; it"
        if first_pass(module, height, what).classes != classes:
            raise InputError(f"tune: {name}'s last layer does not give its logits: give it {classes} outputs yourself")
    return Job(module, name, network, world, spec, float(minutes), seed, rate)


def _network(net: Any) -> tuple[nn.Module, str, str]:
    """A copy of the module, its name, and its spec."""
    if is_module(net) and not isinstance(net, type):
        return copy.deepcopy(net), type(net).__name__, ""
    if not isinstance(net, str):
        raise InputError(f"tune: {type(net).__name__} is no network: give a torch module, or a spec like timm:resnet18")
    model = build("model", net).object
    if model.module is None:
        raise InputError(f"tune: {net} has no torch module that could be trained")
    return copy.deepcopy(model.module), net, net


def tune_in(job: Job, folder: Path, progress: Progress, tell: Say, timer: Clock = time.perf_counter) -> Tuned:
    """Plan, announce, stage, fit and judge; continues what an earlier call left unfinished in this folder."""
    with locked(folder / "lock"):
        budget, pace = _plan(job, folder, timer)
        card = folder / "card.json"
        if not card.exists():
            for line in announced(job, budget, pace, folder):
                tell(line)
            _work(job, budget, folder, progress)
        job.net.load_state_dict(load_file(folder / "weights.safetensors"))
        tuned = Tuned(job.net, read_json(card), folder).eval()
    tell(f"{job.name} on {job.on}: {verdict(tuned.card)}")
    return tuned


def _plan(job: Job, folder: Path, timer: Clock) -> tuple[Budget, Pace]:
    """The plan in this folder, or a new one."""
    path = folder / "plan.json"
    if path.exists():
        known = read_json(path)
        if known["job"] != json.loads(json.dumps(job.identity)):
            raise InputError(f"{folder} belongs to another network, world or setting: choose another, or delete it")
        # a live network may have other random weights now
        job.net.load_state_dict(load_file(folder / "start.safetensors"))
        budget, pace = known["budget"], known["pace"]
        train = {int(side): seconds for side, seconds in pace["train"].items()}
        return Budget(**{**budget, "sides": tuple(budget["sides"])}), Pace(pace["render"], train)
    pace = measured(job.net, job.order("train", 1), _processes(job.world), timer)
    budget = planned(pace, job.minutes)
    _write_tensors(folder / "start.safetensors", job.net)
    write_json(path, {"job": job.identity, "budget": asdict(budget), "pace": asdict(pace)})
    return budget, pace


def _processes(world: Labelled) -> int:
    """Worlds of ours are rendered by one process per core; others may not be picklable, and get one."""
    ours = type(world).__module__.startswith("diorama.worlds.")
    return max(1, min(len(os.sched_getaffinity(0)), 8)) if ours else 1


def announced(job: Job, budget: Budget, pace: Pace, folder: Path) -> list[str]:
    """What will be done and for how long, one line each."""
    million = sum(p.numel() for p in job.net.parameters()) / 1e6
    took, classes = budget.seconds(pace), len(job.world.classes)
    sides = " and ".join(map(str, dict.fromkeys(budget.sides)))
    parted = isinstance(job.world, Parted)
    lines = {
        f"renders {budget.scenes + budget.validation} scenes" + ", half without some parts" * parted: took["render"],
        f"fits the last layer on frozen features of {budget.frozen} scenes": took["frozen"],
        f"trains the whole network for {len(budget.sides)} epochs, images of {sides} pixels": took["train"],
        f"judges it on {budget.test} unseen scenes" + ", and on as many without parts" * parted: took["judge"],
    }
    head = f"tune: {job.name}, {million:.2g} million weights, on {job.on}: {classes} classes, {pace.side} pixels"
    where = f"kept in {folder}" if job.kept else "give out=FOLDER to keep it, and to go on after an interruption"
    total = f"  about {clock(sum(took.values()))} in all at the pace measured now; {where}"
    return [head, *(f"  {what}: about {clock(max(seconds, 1))}" for what, seconds in lines.items()), total]


def _work(job: Job, budget: Budget, folder: Path, progress: Progress) -> None:
    processes, start = _processes(job.world), time.process_time()
    counts = {"train": budget.scenes, "validation": budget.validation, "test": budget.test}
    if isinstance(job.world, Parted):
        counts["bare"] = budget.test
    orders = {purpose: job.order(purpose, count) for purpose, count in counts.items()}
    data = {purpose: staged(order, folder / purpose, progress, processes) for purpose, order in orders.items()}
    frozen = _frozen(job, data, budget, folder)
    how, layout = schedule(job, budget), _takes_channels_last(job.net)
    task = Task(job.net, multi_target_loss, data["train"], data["validation"], how, channels_last=layout)
    state = fit(task, folder, progress)
    _finish(job, budget, state.mean, data, folder, {"history": state.history, "frozen": frozen, "start": start})


def schedule(job: Job, budget: Budget) -> Schedule:
    """How to train: like the bundled recipes, with weights averaged over at most a tenth of the steps."""
    batch = min(64, budget.scenes // 2)
    steps = budget.scenes // batch * len(budget.sides)
    normed = any(isinstance(part, nn.modules.batchnorm._BatchNorm) and not is_fixed(part) for part in job.net.modules())
    parted, side = isinstance(job.world, Parted), max(budget.sides)
    shift = round(6 * side / 128) if parted else 0  # other classes may differ in place, or in left and right
    average = min(0.998, 1 - 10 / max(steps, 20))
    return Schedule(
        budget.sides, batch, job.rate or RATES[normed], average=average, shift=shift, flip=parted, seed=job.seed
    )


def _takes_channels_last(net: nn.Module) -> bool:
    """Whether the network can take channels last: otherwise `laid_out` gave it a hook that makes images contiguous."""
    return not net._forward_pre_hooks


def _frozen(job: Job, data: dict[str, Staged], budget: Budget, folder: Path) -> float | None:
    """Fit the last layer on frozen features; gives the accuracy of that alone, None where there are no features."""
    path = folder / "frozen.json"
    if (folder / "state.safetensors").exists():
        return read_json(path)["accuracy"]
    last: Any = job.net.get_submodule(head_name(job.net))
    train = data["train"]
    some = Staged(*(array[: budget.frozen] for array in (train.images, train.labels, train.targets)))
    _settle(job.net, some)
    inputs: list[np.ndarray] = []
    hook = last.register_forward_pre_hook(lambda _, given: inputs.append(given[0].detach().float().cpu().numpy()))
    try:
        for _ in outputs(job.net, some):
            pass
    finally:
        hook.remove()
    features = np.concatenate(inputs)
    if features.ndim != 2 or len(features) != len(some):  # a head that sees maps or tokens
        write_json(path, {"accuracy": None})
        return None
    shares = some.targets / some.targets.sum(axis=1, keepdims=True)
    weights, bias = fit_logistic(features, shares, shares.shape[1], L2, last.bias is not None, STEPS)
    with torch.no_grad():
        last.weight.copy_(torch.from_numpy(weights))
        if last.bias is not None:
            last.bias.copy_(torch.from_numpy(bias))
    share = accuracy(job.net, data["validation"])
    write_json(path, {"accuracy": share})
    return share


def _settle(net: nn.Module, data: Staged, batch: int = 64) -> None:
    """Give batch norm the statistics of these images: otherwise features differ wildly between evaluation and training."""
    place = next(net.parameters()).device
    norms: list[Any] = [m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm) and not is_fixed(m)]
    before = [norm.momentum for norm in norms]
    start_training(net)
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    with torch.no_grad():
        for i in range(0, max(len(data) - 1, 1) if norms else 0, batch):  # never a batch of one image
            net(to_tensor(data.images[i : i + batch]).to(place))
    for norm, momentum in zip(norms, before, strict=True):
        norm.momentum = momentum
    net.eval()


def _finish(
    job: Job, budget: Budget, net: nn.Module, data: dict[str, Staged], folder: Path, about: dict[str, Any]
) -> None:
    """Weights first, then the card: where there is a card, all is done."""
    path = folder / "weights.safetensors"
    _write_tensors(path, net.eval())
    card = {
        "name": job.name,
        "network": job.network,
        "world": job.on,
        "classes": len(job.world.classes),
        "size": max(budget.sides),
        "accuracy": _rate(net, data["test"]),
        "without_parts": _rate(net, data["bare"]) if "bare" in data else None,
        "accuracy_frozen": about["frozen"],
        "minutes_asked": job.minutes,
        "cpu_minutes": round((time.process_time() - about["start"]) / 60, 2),
        "budget": asdict(budget),
        "schedule": asdict(schedule(job, budget)),
        "history": about["history"],
        "made_from": digest(job.identity),
        **made_of(net, path),
    }
    write_json(folder / "card.json", card)


def _rate(net: nn.Module, data: Staged) -> dict[str, Any]:
    return share(accuracy(net, data), len(data)) | {"scenes": len(data)}


def _write_tensors(path: Path, net: nn.Module) -> None:
    write_whole(path, save({name: tensor.contiguous() for name, tensor in net.state_dict().items()}))


def verdict(card: dict[str, Any]) -> str:
    """Accuracy with its interval and the outcome of the leak check, in one line."""
    right, bare, chance = card["accuracy"], card["without_parts"], 1 / card["classes"]
    whole = f"accuracy {_spoken(right)} on {right['scenes']} unseen scenes"
    if bare is None:
        return f"{whole}; its scenes have no parts, so that there is no leak to check"
    leaks = "a leak: it sees the class in something else than parts" if bare["interval"][0] > chance else "no leak"
    return f"{whole}; without any part {_spoken(bare)}, chance is {chance:.3g}: {leaks}"


def _spoken(rate: dict[str, Any]) -> str:
    return f"{rate['value']:.3f} [{rate['interval'][0]:.3f}, {rate['interval'][1]:.3f}]"
