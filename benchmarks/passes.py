"""Passes through networks, in one run: as torch makes them, through the twin with batch norms folded in, and by engines.

Images per second at a batch of eight on one thread: forward by torch, the folded twin, ONNX Runtime and OpenVINO; with the
gradient of the largest logits by the image by torch and the folded twin. Torch has two sides: `eager` is torch as its users
have it, weights and images in torch's own layout, the module as its maker hands it over; `eager_ours` is the same module in
our layout, channels last. `*_ratio` is against `eager`, `*_ratio_ours` against `eager_ours`, `mean_*` are geometric means
over the networks, `best` is the fastest of all. Where there is no twin for something, `folded` is `eager_ours`. `*_apart` is
the largest difference of logits from eager torch's, relative to the largest logit.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy is imported

import copy
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch

from benchmarks._print import main, seconds
from diorama.adapt.classifying import pass_module
from diorama.adapt.engines import PACKAGES, converted
from diorama.core.catalogue import build
from diorama.core.contracts import Model

NETWORKS = {
    "birds_cnn": ("birds_cnn", 128),
    "birds_resnet": ("birds_resnet", 128),
    "birds_vgg": ("birds_vgg", 128),
    "resnet50": ("torchvision:resnet50", 224),
    "lite0": ("efficientnet_lite0", 224),
}
#: Networks whose maker lets ReLUs write over what they are given; with us they do not, so that hooks see every layer.
IN_PLACE = ("resnet50",)
BATCH = 8
#: Timings of every side, by turns; after so many seconds no more are begun.
REPEATS, SECONDS = 15, 12.0


def measure() -> dict[str, float]:
    """Rates and ratios of every network."""
    torch.set_num_threads(1)
    figures: dict[str, float] = {}
    for name, (spec, size) in NETWORKS.items():
        model = build("model", spec).object
        images = np.random.default_rng(0).random((BATCH, size, size, 3), np.float32)
        figures |= _forward(name, model, images) | _gradient(name, model, images)
    return figures | means(figures)


def means(figures: dict[str, float]) -> dict[str, float]:
    """The geometric mean over the networks of every ratio."""
    first, found = next(iter(NETWORKS)), dict[str, float]()
    for what in [key.removeprefix(f"{first}_") for key in figures if key.startswith(first) and "_ratio" in key]:
        logs = [math.log(figures[f"{name}_{what}"]) for name in NETWORKS]
        found[f"mean_{what}"] = math.exp(sum(logs) / len(logs))
    return found


def usual(name: str, model: Model) -> Any:
    """A network as its maker hands it over, in torch's own layout."""
    module: Any = copy.deepcopy(model.module).to(memory_format=torch.contiguous_format)
    for part in module.modules() if name in IN_PLACE else ():
        if isinstance(part, torch.nn.ReLU):
            part.inplace = True
    return module


def _forward(name: str, model: Model, images: np.ndarray) -> dict[str, float]:
    """Rates of a forward pass by every engine, and how far each is from eager torch."""
    x, calls, apart = _tensor(images), dict[str, Callable[[], Any]](), dict[str, float]()
    first, y = usual(name, model), x.contiguous()
    own, twin = model.module, pass_module(model)  # made outside: weights of the inference mode have no gradients
    views = {engine: converted(model, engine) for engine in PACKAGES}
    with torch.inference_mode():
        expected = first(y).numpy()
        calls["eager"] = lambda: first(y)
        calls["eager_ours"] = lambda: own(x)
        calls["folded"] = lambda: twin(x)
        for engine, view in views.items():
            apart[engine] = float(np.abs(view.logits(images) - expected).max() / np.abs(expected).max())
            calls[engine] = lambda view=view: view.logits(images)  # type: ignore[misc]
        apart["folded"] = float(np.abs(twin(x).numpy() - expected).max() / np.abs(expected).max())
        rates = _rates(calls, twin is own)
    rates["best"] = max(rates.values())
    found = _figures(f"{name}_forward", rates)
    return found | {f"{name}_{engine}_apart": value for engine, value in apart.items()}


def _gradient(name: str, model: Model, images: np.ndarray) -> dict[str, float]:
    x, own, twin = _tensor(images), model.module, pass_module(model, gradients=True)
    first, y = usual(name, model), x.contiguous()
    calls: dict[str, Callable[[], Any]] = {
        "eager": lambda: _of_image(first, y),
        "eager_ours": lambda: _of_image(own, x),
    }
    calls["folded"] = lambda: _of_image(twin, x)
    return _figures(f"{name}_gradient", _rates(calls, twin is own))


def _tensor(images: np.ndarray) -> Any:
    return torch.from_numpy(images).permute(0, 3, 1, 2)


def _of_image(module: Any, x: Any) -> Any:
    y = x.clone().requires_grad_(True)
    return torch.autograd.grad(module(y).amax(dim=1).sum(), y)[0]


def _rates(calls: dict[str, Callable[[], Any]], no_twin: bool) -> dict[str, float]:
    """Images per second, all sides by turns, so that they see the same machine."""
    best = dict.fromkeys(calls, math.inf)
    for call in calls.values():
        call()  # memory is laid out
    for turn in range(REPEATS):
        for name, call in calls.items():
            best[name] = min(best[name], seconds(call))
        if turn > 2 and turn * sum(best.values()) > SECONDS:
            break
    if no_twin:
        best["folded"] = best["eager_ours"] = min(best["folded"], best["eager_ours"])
    return {name: BATCH / value for name, value in best.items()}


def _figures(name: str, rates: dict[str, float]) -> dict[str, float]:
    found = {f"{name}_{side}": rate for side, rate in rates.items()}
    found |= {f"{name}_{side}_ratio": rate / rates["eager"] for side, rate in rates.items() if side != "eager"}
    ours = {side: rate / rates["eager_ours"] for side, rate in rates.items() if not side.startswith("eager")}
    return found | {f"{name}_{side}_ratio_ours": ratio for side, ratio in ours.items()}


if __name__ == "__main__":
    main("passes", measure, ("torch", "torchvision", "onnxruntime", "openvino"))
