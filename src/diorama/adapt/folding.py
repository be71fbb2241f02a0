"""A faster twin of a network: a copy in which every batch norm that follows a convolution is folded into its weights.

In eval mode a batch norm is a fixed scale and shift of every channel, and conv(x)·s + t is a convolution with other weights.
The twin has the same logits, the same gradients by the image, and the same names of layers. Only the output of a convolution
whose batch norm was folded differs: it is that of the batch norm. `Folded.altered` has the names of such layers.

One trial pass finds which batch norm follows which convolution. Folding would change a network that uses a convolution's
output elsewhere too; so the twin is compared with the original on noise images, and discarded if they differ.

ReLUs of the twin work in place where nothing else uses their input, which saves an array for every layer. The layers before
them count as altered, too. If a network fails with such ReLUs, its twin gets ReLUs that do not work in place.

Gradients are compared too. When an activation is so close to 0 that its last bit decides on which side of a ReLU it lies,
gradients differ although logits do not, and neither gradient is wrong. In a deep network that happens in every image. Then
both are compared with gradients in double precision: the twin is used for gradients if it is about as close to them as the
original is; otherwise it is used for forward passes only.
"""

from __future__ import annotations

import copy
import statistics
from collections import Counter
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
#: How many times as far from double precision as the original's the twin's gradients may be.
AS_EXACT = 2.0
#: Names (in torch's graph) of operations that do not need their output for gradients: a ReLU may overwrite it.
FRESH = ("ConvolutionBackward0", "NativeBatchNormBackward0", "AddBackward0", "AddmmBackward0")
#: A function that calls a network with images (n, 3, h, w).
Ask = Callable[["nn.Module", "Tensor"], Any]


@dataclass(frozen=True, slots=True)
class Folded:
    """The twin, the layers whose output differs in it, and whether its gradients are those of the original."""

    module: nn.Module
    altered: frozenset[str]
    gradients: bool

    def serves(self, layer: str | None = None, gradients: bool = False) -> bool:
        """Whether it can replace the original for reading the output of a layer, or for gradients."""
        return layer not in self.altered and (self.gradients or not gradients)


def forward(module: nn.Module, x: Tensor) -> Any:
    """The plain call of a network."""
    return module(x)


def folded(module: nn.Module, size: int, ask: Ask = forward) -> Folded | None:
    """The twin of a network in eval mode that takes images of `size` pixels; None if there is nothing to fold.

    `ask` calls the network and returns one or several tensors, whose first axis is the images.
    """
    import torch

    first = next(module.parameters(), None)
    noise = torch.rand(IMAGES, 3, size, size, generator=torch.Generator().manual_seed(0))
    trial = noise.to(first.device if first is not None else "cpu")

    def numbers(network: nn.Module, x: Tensor) -> Tensor:
        return torch.cat([one.flatten(1) for one in _tensors(ask(network, x))], dim=1)

    # None, too, if the network cannot be copied or called
    return attempt(lambda: _checked_twin(module, trial, numbers)).value


def _tensors(given: Any) -> list[Tensor]:
    """The tensors in a network's output."""
    if isinstance(given, Mapping):
        return _tensors(list(given.values()))
    return [one for part in given for one in _tensors(part)] if isinstance(given, list | tuple) else [given]


def _checked_twin(module: nn.Module, trial: Tensor, numbers: Ask) -> Folded | None:
    seen = _trial_pass(module, trial, numbers)
    if not seen.pairs:
        return None
    ways = [(seen.relus, seen.folded | seen.overwritten)] if seen.relus else []
    for relus, altered in (*ways, ([], seen.folded)):
        twin = _twin(module, seen.pairs, relus)
        if not _same_numbers(twin, seen, trial, numbers):
            continue
        gradients = attempt(lambda twin=twin: _serves_gradients(twin, module, seen, trial, numbers))  # type: ignore[misc]
        if not (relus and gradients.error):
            return Folded(twin, altered, bool(gradients.value))
    return None


def _twin(module: nn.Module, pairs: list[tuple[str, str]], relus: list[str]) -> nn.Module:
    """A copy with batch norms folded, in which some ReLUs work in place."""
    import torch

    twin: Any = copy.deepcopy(module)
    with torch.no_grad():
        for conv, norm in pairs:
            _fold(twin, conv, norm)
    for name in relus:
        twin.get_submodule(name).inplace = True
    return twin.requires_grad_(False)


def _same_numbers(twin: nn.Module, seen: TrialPass, trial: Tensor, numbers: Ask) -> bool:
    import torch

    with torch.no_grad():
        return max(_differences(numbers(twin, trial), seen.numbers)) <= TOLERANCE


def _serves_gradients(twin: nn.Module, module: nn.Module, seen: TrialPass, trial: Tensor, numbers: Ask) -> bool:
    """Whether the twin's gradients equal the original's for most images, or are as exact."""
    found = _gradient(twin, trial, numbers)
    if statistics.median(_differences(found, seen.gradient)) <= TOLERANCE:
        return True
    exact = attempt(lambda: _gradient(copy.deepcopy(module).double(), trial.double(), numbers)).value
    if exact is None:  # a device or a network without double precision
        return False
    return _error(found, exact) <= AS_EXACT * _error(seen.gradient, exact)


def _error(found: Tensor, exact: Tensor) -> float:
    """The root mean square over images of the error relative to the exact gradient.

    Not a median: it is chance which images have an activation on the other side of a ReLU, for either network.
    """
    off = [float((a.double() - b).norm() / b.norm()) for a, b in zip(found, exact, strict=True)]
    return statistics.fmean(one**2 for one in off) ** 0.5


def _gradient(module: nn.Module, trial: Tensor, numbers: Ask) -> Tensor:
    """The gradient of the sum over images of each one's largest output (its largest logit), by the images."""
    import torch

    with torch.enable_grad():
        x = trial.clone().requires_grad_(True)
        return torch.autograd.grad(numbers(module, x).amax(dim=1).sum(), x)[0]


def _differences(found: Tensor, expected: Tensor) -> list[float]:
    """The largest difference for each image, relative to its largest value."""
    return [float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, expected, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class TrialPass:
    """What a trial pass tells about a network.

    pairs        convolutions and the batch norms to fold into them, by name
    folded       layers whose output goes into a batch norm that is folded
    relus        names of ReLUs that may work in place
    overwritten  layers whose output goes into these ReLUs
    numbers      its outputs
    gradient     the gradient by the images
    """

    pairs: list[tuple[str, str]]
    folded: frozenset[str]
    relus: list[str]
    overwritten: frozenset[str]
    numbers: Tensor
    gradient: Tensor


def _trial_pass(module: nn.Module, trial: Tensor, numbers: Ask) -> TrialPass:
    import torch

    gave: dict[int, list[str]] = {}  # the layers that returned a tensor, by its id, innermost first
    kept: list[Any] = []  # keeps tensors alive, so that ids stay unique
    calls: list[tuple[str, int, bool]] = []  # the layer, the id of its input, and whether it may overwrite that

    def look(name: str) -> Any:
        def hook(_: nn.Module, given: tuple[Any, ...]) -> None:
            kept.append(given)
            calls.append((name, id(given[0]) if given else 0, bool(given) and _may_overwrite(given[0])))

        return hook

    def note(name: str) -> Any:
        def hook(_: nn.Module, __: Any, out: Any) -> None:
            kept.append(out)
            gave.setdefault(id(out), []).append(name)

        return hook

    hooks: list[Any] = [layer.register_forward_pre_hook(look(name)) for name, layer in module.named_modules()]
    hooks += [layer.register_forward_hook(note(name)) for name, layer in module.named_modules()]
    try:
        with torch.enable_grad():
            x = trial.clone().requires_grad_(True)
            given = numbers(module, x)
            slope = torch.autograd.grad(given.amax(dim=1).sum(), x)[0]
    finally:
        for hook in hooks:
            hook.remove()
    pairs, folded_ = _pairs(module, gave, calls)
    relus = [name for name in dict.fromkeys(name for name, _, _ in calls) if _is_inplace_relu(module, name, calls)]
    taken = {given for name, given, _ in calls if name in relus}
    overwritten = frozenset(name for given in taken for name in gave.get(given, []))
    return TrialPass(pairs, folded_, relus, overwritten, given.detach(), slope)


def _pairs(
    module: nn.Module, gave: dict[int, list[str]], calls: list[tuple[str, int, bool]]
) -> tuple[list[tuple[str, str]], frozenset[str]]:
    """Convolutions with the batch norms that take their output, and all layers that return that output."""
    counts = Counter(name for name, _, _ in calls)
    pairs, altered = [], set[str]()
    for norm, given, _ in calls:
        names = gave.get(given, [])
        if names and counts[names[0]] == counts[norm] == 1 and _foldable(module, names[0], norm):
            pairs.append((names[0], norm))
            altered.update(names)
    return pairs, frozenset(altered)


def _may_overwrite(given: Any) -> bool:
    """Whether something is a tensor that can be overwritten: no view, and not needed for gradients."""
    import torch

    return isinstance(given, torch.Tensor) and not given._is_view() and type(given.grad_fn).__name__ in FRESH


def _is_inplace_relu(module: nn.Module, name: str, calls: list[tuple[str, int, bool]]) -> bool:
    """Whether a layer is a ReLU whose inputs are all fresh."""
    from torch import nn

    layer = module.get_submodule(name)
    fresh = all(was for called_, _, was in calls if called_ == name)
    return type(layer) in (nn.ReLU, nn.ReLU6) and fresh and not layer._forward_pre_hooks


def _foldable(module: nn.Module, conv: str, norm: str) -> bool:
    from torch import nn

    first, second = module.get_submodule(conv), module.get_submodule(norm)
    plain = type(first) in (nn.Conv2d, nn.ConvTranspose2d) and type(second) is nn.BatchNorm2d
    return plain and second.running_mean is not None and not second.training and not _is_shared(module, first)


def _is_shared(module: nn.Module, layer: nn.Module) -> bool:
    """Whether other layers use a layer's weights too, or it has hooks."""
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
