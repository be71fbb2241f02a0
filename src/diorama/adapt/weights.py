"""Networks whose weights are a safetensors file, of this package or the user's. Imports torch late."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from diorama.adapt.classifying import place
from diorama.adapt.explaining import need
from diorama.core.contracts import Contract
from diorama.core.errors import InputError
from diorama.io.digests import file_digest
from diorama.io.zoo import checkpoint_path

if TYPE_CHECKING:
    from torch import nn


class Weighted(Contract):
    """A component that is a network with the weights of a file.

    checkpoint  safetensors file with its weights; None for the bundled one
    """

    name: str
    checkpoint: str | None
    located = ("checkpoint",)

    def __post_init__(self) -> None:
        _ = self.path  # so that a missing file is reported at once

    @property
    def path(self) -> Path:
        """The checkpoint file in use."""
        return checkpoint_path(self.checkpoint, self.name)

    @property
    def differentiable(self) -> bool:
        """True, without loading the network; InputError if torch is not installed."""
        need("torch", self.name, "torch")
        return True

    @abstractmethod
    def network(self) -> nn.Module:
        """The network before the weights of the file are loaded."""

    @cached_property
    def module(self) -> nn.Module:
        """The network in eval mode, without gradients on its parameters; loaded at first use."""
        need("torch", self.name, "torch")
        return load(self.network(), self.path, self.name)

    def fingerprint(self) -> str:
        """The digest of the weights file."""
        return file_digest(self.path)


def load(module: nn.Module, path: Path, name: str) -> nn.Module:
    """The module with the weights of a file: in eval mode, without gradients on its parameters, on the device in use."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        module.load_state_dict(load_file(path))
    except (RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"{name}: {path} holds weights of another network: {reason}") from error
    return place(module)
