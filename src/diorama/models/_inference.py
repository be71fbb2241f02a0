"""Asking a torch classifier with numpy images: the part that every bundled classifier shares. Imports torch late."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diorama.core import device
from diorama.core.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from torch import Tensor, nn

#: The most images that pass at once.
CHUNK = 64


def require_torch(name: str) -> None:
    """Raise InputError unless torch is installed."""
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"{name} needs torch: pip install 'diorama[torch]'")


def check_images(images: np.ndarray, size: int) -> None:
    """Raise InputError unless images are (n, size, size, 3) float32."""
    if not isinstance(images, np.ndarray) or images.dtype != np.float32:
        kind = images.dtype if isinstance(images, np.ndarray) else type(images).__name__
        raise InputError(f"images are {kind}: give a float32 array in [0, 1]")
    if images.ndim != 4 or images.shape[1:] != (size, size, 3):
        raise InputError(f"images are {images.shape}: this model takes (n, {size}, {size}, 3)")


def logits(module: nn.Module, images: np.ndarray) -> np.ndarray:
    """(n, h, w, 3) → (n, classes) float32."""
    import torch

    with torch.inference_mode():
        found = [module(chunk).float().cpu().numpy() for chunk in _chunks(module, images)]
    return np.concatenate(found)


def features(module: nn.Module, images: np.ndarray, layer: str) -> np.ndarray:
    """The output of a layer: (n, channels, h, w) float32."""
    import torch

    kept: list[np.ndarray] = []
    hook = module.get_submodule(layer).register_forward_hook(lambda _, __, out: kept.append(out.float().cpu().numpy()))
    try:
        with torch.inference_mode():
            for chunk in _chunks(module, images):
                module(chunk)
    finally:
        hook.remove()
    return np.concatenate(kept)


def _chunks(module: nn.Module, images: np.ndarray) -> Iterator[Tensor]:
    import torch

    place = next(module.parameters()).device
    for i in range(0, max(len(images), 1), CHUNK):
        yield torch.from_numpy(np.array(images[i : i + CHUNK])).permute(0, 3, 1, 2).to(place)  # channels last: faster


def load(module: nn.Module, path: Path) -> nn.Module:
    """The module with the weights of a file: in eval mode, without gradients on its parameters, on the device in use."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        module.load_state_dict(load_file(path))
    except (RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"{path} is not a checkpoint of this model: {reason}") from error
    import torch

    placed = module.eval().requires_grad_(False).to(device.current())
    return placed.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def checkpoint_path(given: str | None, bundled: str) -> Path:
    """The checkpoint to use: the given file, or the bundled one of that name."""
    path = Path(__file__).parent / "zoo" / f"{bundled}.safetensors" if given is None else Path(given).expanduser()
    if not path.is_file():
        raise InputError(f"{bundled}: there is no checkpoint {path}; make one with: diorama train {bundled}")
    return path


def check_layer(layer: str, layers: tuple[str, ...]) -> None:
    """Raise InputError unless a layer is one of the model's."""
    if layer not in layers:
        raise InputError(f"no layer {layer!r}; {did_you_mean(layer, list(layers))}")
