"""Reads weights from files: safetensors, or torch files with plain values only. No code in a file is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diorama.core.errors import InputError
from diorama.core.guard import attempt

if TYPE_CHECKING:
    from torch import Tensor, nn

_PREFIXES = ("module.", "model.")


def read_state(path: str, name: str) -> dict[str, Tensor]:
    """The state dict in a safetensors or torch file, read without running code in it.

    It may be under the key `state_dict`, with names that begin with module. or model., as many training scripts write it.
    """
    return tensors_of(read_file(path, name), path, name)


def read_file(path: str, name: str) -> Any:
    """The content of a safetensors file, or of a torch file with plain values only."""
    file = Path(path).expanduser()
    if not file.is_file():
        raise InputError(f"{name}: there is no checkpoint {path}; give a .safetensors or torch file")
    if file.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return load_file(file)
        except SafetensorError as error:
            raise InputError(f"{name}: {path} is not a safetensors file: {error}") from error
    return _read_torch(file, name)


def _read_torch(file: Path, name: str) -> Any:
    import torch

    outcome = attempt(lambda: torch.load(file, map_location="cpu", weights_only=True))
    if outcome.error:
        raise InputError(
            f"{name}: {file} holds no weights that can be read safely: it is damaged, or a whole pickled network, which is"
            " not opened because it could run code. Where it was made, save its state dict alone:"
            f" torch.save(net.state_dict(), file) ({outcome.reason[:120]})"
        ) from outcome.error
    return outcome.value


def tensors_of(found: Any, path: str, name: str) -> dict[str, Tensor]:
    """The tensors of a loaded file, by their names in the network."""
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]
    if not isinstance(found, Mapping) or not found or not all(hasattr(v, "shape") for v in found.values()):
        raise InputError(f"{name}: {path} holds no state dict: save one with torch.save(net.state_dict(), file)")
    state = dict(found)
    for prefix in _PREFIXES:  # nn.DataParallel, and a wrapper that calls its network `model`
        if all(key.startswith(prefix) for key in state):
            state = {key[len(prefix) :]: value for key, value in state.items()}
    return state


def fill(net: nn.Module, state: Mapping[str, Tensor], path: str, name: str) -> None:
    """Give a network its weights; InputError names the first name or shape that does not fit."""
    own = net.state_dict()
    counters = {key for key in own if key.endswith("num_batches_tracked")}  # unused in eval mode, and often absent
    missing = [key for key in own if key not in state and key not in counters]
    unexpected = [key for key in state if key not in own]
    for what, keys in (("lacks", missing), ("has the unknown", unexpected)):
        if keys:
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            raise InputError(f"{name}: {path} {what} {keys[0]!r}{more}: it is a checkpoint of another network")
    for key, value in state.items():
        if value.shape != own[key].shape:
            found, wanted = tuple(value.shape), tuple(own[key].shape)
            raise InputError(f"{name}: {key} in {path} is {found}, this network has {wanted}")
    net.load_state_dict(dict(state), strict=False)
