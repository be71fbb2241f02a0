"""A faster twin of a network: every batch norm that follows a convolution is folded into its weights.

In eval mode a batch norm is a fixed scale and shift of every channel, and conv(x)·s + t is a convolution with other weights.
The twin gives the same logits and the same gradients by the image; layers keep their names. Only a convolution whose batch
norm was folded gives something else than before: what the batch norm gave. Such layers are named in `Folded.altered`.

Which batch norm follows which convolution is seen in one pass. Where a convolution's output is used elsewhere too, folding
would change the network: the twin is compared with the original on images of noise, and there is none where they differ.
Gradients are compared too. Now and then the last bit of an activation decides on which side of a ReLU it lies; gradients
then differ although logits do not, and neither is the wrong one. A twin whose gradients differ for most images, as happens
in very deep networks, serves forward passes only.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diorama.core.guard import attempt

if TYPE_CHECKING:
    from torch import Tensor, nn

#: The largest difference, relative to the largest value, at which logits or gradients count as the same.
TOLERANCE = 1e-5
#: Images of noise that are compared.
IMAGES = 5
#: How a network is asked about images (n, 3, h, w).
Ask = Callable[["nn.Module", "Tensor"], Any]


@dataclass(frozen=True, slots=True)
class Folded:
    """The twin, the layers that give something else in it, and whether its gradients are those of the original."""

    module: nn.Module
    altered: frozenset[str]
    gradients: bool

    def serves(self, layer: str | None = None, gradients: bool = False) -> bool:
        """Whether it may stand for the original where the output of a layer is looked at, or gradients are taken."""
        return layer not in self.altered and (self.gradients or not gradients)


def called(module: nn.Module, x: Tensor) -> Any:
    """How most networks are asked."""
    return module(x)


def folded(module: nn.Module, size: int, ask: Ask = called) -> Folded | None:
    """The twin of a network in eval mode that takes images of `size` pixels; None where there is nothing to fold.

    `ask` is how it is asked: what it gives is a tensor, or several of them, whose first axis is the images.
    """
    import torch

    first = next(module.parameters(), None)
    noise = torch.rand(IMAGES, 3, size, size, generator=torch.Generator().manual_seed(0))
    trial = noise.to(first.device if first is not None else "cpu")

    def numbers(network: nn.Module, x: Tensor) -> Tensor:
        return torch.cat([one.flatten(1) for one in _tensors(ask(network, x))], dim=1)

    return attempt(lambda: _compared(module, trial, numbers)).value  # what cannot be copied or asked has no twin


def _tensors(given: Any) -> list[Tensor]:
    """The tensors of what a network gives."""
    if isinstance(given, Mapping):
        return _tensors(list(given.values()))
    return [one for part in given for one in _tensors(part)] if isinstance(given, list | tuple) else [given]


def _compared(module: nn.Module, trial: Tensor, numbers: Ask) -> Folded | None:
    import torch

    with torch.no_grad():
        pairs, altered, expected = _seen(module, trial, numbers)
        if not pairs:
            return None
        twin = copy.deepcopy(module)
        for conv, norm in pairs:
            _fold(twin, conv, norm)
        twin.requires_grad_(False)
        if max(_differences(numbers(twin, trial), expected)) > TOLERANCE:
            return None
    gradients = statistics.median(_differences(_gradient(twin, trial, numbers), _gradient(module, trial, numbers)))
    return Folded(twin, altered, gradients <= TOLERANCE)


def _gradient(module: nn.Module, trial: Tensor, numbers: Ask) -> Tensor:
    """The gradient of the sum of the largest numbers, logits where it gives some, by the images."""
    import torch

    with torch.enable_grad():
        x = trial.clone().requires_grad_(True)
        return torch.autograd.grad(numbers(module, x).amax(dim=1).sum(), x)[0]


def _differences(found: Tensor, expected: Tensor) -> list[float]:
    """The largest difference for each image, relative to its largest value."""
    return [float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, expected, strict=True)]


def _seen(module: nn.Module, trial: Tensor, numbers: Ask) -> tuple[list[tuple[str, str]], frozenset[str], Tensor]:
    """What one pass shows: pairs (convolution, batch norm) by name, all layers whose output a batch norm takes, logits."""
    gave: dict[int, list[str]] = {}  # by tensor: the layers that gave it, innermost first
    kept: list[Any] = []  # what is compared by identity must stay alive
    calls: list[tuple[str, int]] = []

    def look(name: str) -> Any:
        def hook(_: nn.Module, given: tuple[Any, ...], out: Any) -> None:
            kept.extend((given, out))
            gave.setdefault(id(out), []).append(name)
            calls.append((name, id(given[0]) if given else 0))

        return hook

    hooks = [layer.register_forward_hook(look(name)) for name, layer in module.named_modules()]
    try:
        expected = numbers(module, trial)
    finally:
        for hook in hooks:
            hook.remove()
    once = {name for name, _ in calls if sum(name == other for other, _ in calls) == 1}
    pairs, altered = [], set[str]()
    for norm, given in calls:
        names = gave.get(given, [])
        if names and {names[0], norm} <= once and _foldable(module, names[0], norm):
            pairs.append((names[0], norm))
            altered.update(names)
    return pairs, frozenset(altered), expected


def _foldable(module: nn.Module, conv: str, norm: str) -> bool:
    from torch import nn

    first, second = module.get_submodule(conv), module.get_submodule(norm)
    plain = type(first) in (nn.Conv2d, nn.ConvTranspose2d) and type(second) is nn.BatchNorm2d
    return plain and second.running_mean is not None and not second.training and not _shared(module, first)


def _shared(module: nn.Module, layer: nn.Module) -> bool:
    """Whether other layers use a layer's weights too, or a hook of somebody's hangs on it."""
    uses = [part for part in module.modules() if any(p is layer.weight for p in part.parameters(recurse=False))]
    return len(uses) > 1 or bool(layer._forward_hooks or layer._forward_pre_hooks)


def _fold(twin: nn.Module, conv: str, norm: str) -> None:
    from torch import nn
    from torch.nn.utils.fusion import fuse_conv_bn_weights

    layer: Any = twin.get_submodule(conv)
    after: Any = twin.get_submodule(norm)
    backwards = isinstance(layer, nn.ConvTranspose2d)
    weight, bias = fuse_conv_bn_weights(
        *(layer.weight, layer.bias, after.running_mean, after.running_var, after.eps, after.weight, after.bias),
        transpose=backwards,
    )
    layer.weight, layer.bias = weight, bias
    twin.get_submodule(norm.rpartition(".")[0]).add_module(norm.rpartition(".")[2], nn.Identity())
