"""The end of every recipe: the averaged weights as float16, and a card beside them that says how they were made."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import nn

from diorama.io.digests import file_digest
from diorama.io.store import write_json, write_whole
from diorama.metrics.intervals import wilson


def made_of(net: nn.Module, path: Path) -> dict[str, Any]:
    """What cards say of a network and the file of its weights."""
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return {"parameters": sum(p.numel() for p in net.parameters()), "digest": file_digest(path), "versions": versions}


def share(value: float, count: int) -> dict[str, Any]:
    """A share of `count` examples with its 95 % interval, as cards hold it."""
    return {"value": value, "interval": list(wilson(round(value * count), count))}


def finish(
    recipe: Any,
    net: nn.Module,
    history: list[dict[str, Any]],
    world: str,
    judge: Callable[[], dict[str, Any]],
    out: Path,
) -> Path:
    """Write NAME.safetensors and its card NAME.json to a folder; gives the path of the weights.

    recipe   dataclass with a `name`; it goes into the card as it is
    net      network with the averaged weights; the file is loaded into it again, so that `judge` judges what was written
    history  the training loop's entry for every epoch
    world    in words, what was trained on and what is held out
    judge    called once, after the file is written; gives the card's entries on how good the network is
    """
    path = out / f"{recipe.name}.safetensors"
    half = {k: v.contiguous().half() if v.is_floating_point() else v for k, v in net.state_dict().items()}
    write_whole(path, save(half))
    net.load_state_dict(load_file(path))
    card = {
        "name": recipe.name,
        "world": world,
        "recipe": asdict(recipe),
        **judge(),
        "history": history,
        "seconds": round(sum(epoch["seconds"] for epoch in history)),
        "bytes": path.stat().st_size,
        **made_of(net, path),
    }
    write_json(path.with_suffix(".json"), card)
    return path
