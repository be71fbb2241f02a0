"""A device that is not there: the CPU poses as an accelerator, and every copy between it and the host is counted.

Tensors that are "elsewhere" are a subclass whose kernels are the CPU's. As on an accelerator, they come from `.to(device)`
or a factory with `device=`, return by `.cpu()`, `.to("cpu")`, `.item()`, `.tolist()` or a decision on their value, have no
`.numpy()`, and do not mix with tensors of the host except for single numbers.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from diorama.adapt.classifying import Classifier
from diorama.core.catalogue import build
from tests.tiny_models import Tiny

PLACE = torch.device("xla")
#: What brings a tensor's value to the host.
_RETURNS = ("cpu", "item", "tolist", "__bool__", "__float__", "__int__", "__index__")


@dataclass
class Copies:
    """How often something went to the device, and came back."""

    there: int = 0
    back: int = 0


_counted = Copies()


class Elsewhere(torch.Tensor):
    """A tensor of the device."""

    @property
    def device(self) -> torch.device:
        return PLACE

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("numpy", "__array__"):
            raise TypeError("can't convert a tensor of the device to numpy: use .cpu() first")
        if name in ("cpu", "item", "tolist", "__bool__", "__float__", "__int__", "__index__") or _to_host(
            name, args, kwargs
        ):
            _counted.back += 1
            with torch._C.DisableTorchFunctionSubclass():
                found = func(*args, **kwargs)
                return found.as_subclass(torch.Tensor) if isinstance(found, torch.Tensor) else found
        if name == "to":
            args, kwargs = _without_device(args, kwargs)
        for one in _tensors((args, kwargs)):
            if type(one) is torch.Tensor and one.dim() and name not in ("__set__", "__get__"):
                raise RuntimeError(f"{name}: a tensor of the host among those of the device")
        return super().__torch_function__(func, types, args, kwargs)


def _to_host(name: str, args: Any, kwargs: Any) -> bool:
    return name == "to" and any(str(one) == "cpu" for one in (*args[1:], *kwargs.values()))


def _without_device(args: Any, kwargs: Any) -> tuple[Any, Any]:
    kept = tuple(one for one in args if not isinstance(one, torch.device | str))
    return kept if len(kept) > 1 or "dtype" in kwargs else (*kept, kept[0].dtype), {
        k: v for k, v in kwargs.items() if k != "device"
    }


def _tensors(given: Any) -> Iterator[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _tensors(one)
    elif isinstance(given, dict):
        yield from _tensors(list(given.values()))


class _Watching(TorchFunctionMode):
    """Sees what is sent to the device, or made there."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        there = any(isinstance(one, torch.device) and one == PLACE for one in (*args, *kwargs.values()))
        if there and not any(isinstance(one, Elsewhere) for one in args):
            name = getattr(func, "__name__", "")
            _counted.there += name in ("to", "tensor", "as_tensor")  # others are made there
            args = tuple("cpu" if isinstance(one, torch.device) else one for one in args)
            kwargs = {k: "cpu" if isinstance(v, torch.device) else v for k, v in kwargs.items()}
            return func(*args, **kwargs).clone().as_subclass(Elsewhere)
        return func(*args, **kwargs)


def moved(module: torch.nn.Module) -> torch.nn.Module:
    """A module with its weights on the device."""
    for part in module.modules():
        for name, value in list(part.named_parameters(recurse=False)):
            setattr(part, name, torch.nn.Parameter(value.detach().clone().as_subclass(Elsewhere), False))
        for name, value in list(part.named_buffers(recurse=False)):
            setattr(part, name, value.clone().as_subclass(Elsewhere))
    return module


@contextmanager
def counting() -> Iterator[Copies]:
    """Count copies inside."""
    _counted.there = _counted.back = 0
    with _Watching():
        yield _counted


def copies(call: Callable[[], Any]) -> tuple[int, int, Any]:
    """Copies there and back that a call makes, and what it gives."""
    with counting() as found:
        given = call()
    return found.there, found.back, given


def here() -> Classifier:
    """A small network on the host."""
    return Classifier(Tiny().module, "tiny", 64, "conv")


def there() -> Classifier:
    """The same network on the device."""
    model = here()
    model.module = moved(model.module)
    model.folded = None
    return model


def asked(spec: str, model: Classifier, images: np.ndarray) -> Any:
    """What a method says: about the first image and three targets where it works by image, else about three images."""
    method, targets = build("method", spec).object, [3, 7, 20]
    if hasattr(method, "explain_targets"):
        return method.explain_targets(model, images[0], targets)
    return method.explain(model, images, np.array(targets))
