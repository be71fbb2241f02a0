"""Checkpoints of the bundled classifiers: the file, its digest, and the module with its weights. Imports torch late."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from diorama.adapt.classifying import check_images, check_layer, features, logits, pass_module, place
from diorama.core.errors import InputError
from diorama.io.zoo import checkpoint_path

if TYPE_CHECKING:
    from torch import nn

#: What the bundled classifiers take from the core, under one name with the rest.
__all__ = ["check_images", "check_layer", "checkpoint_path", "features", "logits", "pass_module"]


def require_torch(name: str) -> None:
    """Raise InputError unless torch is installed."""
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"{name} needs torch: pip install 'diorama[torch]'")


def load(module: nn.Module, path: Path) -> nn.Module:
    """The module with the weights of a file: in eval mode, without gradients on its parameters, on the device in use."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        module.load_state_dict(load_file(path))
    except (RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"{path} is not a checkpoint of this model: {reason}") from error
    return place(module)
