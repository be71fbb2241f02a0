"""Passes through networks: as torch makes them, and through the twin with batch norms folded in, in one run.

Images per second at a batch of eight on one thread, forward and with the gradient of the largest logits by the image, and
their ratios; `mean_*` are geometric means over the networks. Where there is no twin for something, both sides are the
original and the ratio is 1.
"""

from __future__ import annotations

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy is imported

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from benchmarks._print import main, seconds
from diorama.adapt.classifying import pass_module
from diorama.core.catalogue import build

NETWORKS = {
    "birds_cnn": ("birds_cnn", 128),
    "birds_resnet": ("birds_resnet", 128),
    "birds_vgg": ("birds_vgg", 128),
    "resnet50": ("torchvision:resnet50", 224),
    "lite0": ("efficientnet_lite0", 224),
}
BATCH, REPEATS = 8, 7


def measure() -> dict[str, float]:
    """Rates and ratios of every network."""
    torch.set_num_threads(1)
    figures: dict[str, float] = {}
    for name, (spec, size) in NETWORKS.items():
        model = build("model", spec).object
        x = torch.rand(BATCH, size, size, 3, generator=torch.Generator().manual_seed(0)).permute(0, 3, 1, 2)
        for what, call, gradients in (("forward", _forward, False), ("gradient", _gradient, True)):
            own, twin = model.module, pass_module(model, gradients=gradients)
            figures |= _compared(f"{name}_{what}", call, own, twin, x)
    for what in ("forward", "gradient"):
        ratios = [math.log(figures[f"{name}_{what}_ratio"]) for name in NETWORKS]
        figures[f"mean_{what}_ratio"] = math.exp(sum(ratios) / len(ratios))
    return figures


def _compared(name: str, call: Callable[[Any, Any], object], own: Any, twin: Any, x: Any) -> dict[str, float]:
    call(own, x), call(twin, x)  # memory is laid out
    eager = folded = math.inf
    for _ in range(REPEATS):  # by turns, so that both see the same machine
        eager = min(eager, seconds(lambda: call(own, x)))
        folded = min(folded, seconds(lambda: call(twin, x)))
    ratio = eager / folded if twin is not own else 1.0
    return {f"{name}_eager": BATCH / eager, f"{name}_folded": BATCH / folded, f"{name}_ratio": ratio}


def _forward(module: Any, x: Any) -> object:
    with torch.inference_mode():
        return module(x)


def _gradient(module: Any, x: Any) -> object:
    y = x.clone().requires_grad_(True)
    return torch.autograd.grad(module(y).amax(dim=1).sum(), y)[0]


if __name__ == "__main__":
    main("passes", measure, ("torch", "torchvision"))
