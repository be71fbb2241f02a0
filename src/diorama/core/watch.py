"""Guards the state that methods share against changes: the model, and global settings of torch, numpy and Python.

After every answer the cheap signs are compared (version counters, mode, hooks, gradients, settings), after every group of
answers all weights. Changes are undone, and the rows of the component that made them say what it changed.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from diorama.core.errors import AnswerError
from diorama.core.scene import digest

if TYPE_CHECKING:
    from torch import Tensor, nn

#: Dictionaries of a torch module, by attribute, with their names in messages.
_DICTS = {
    "_modules": "layers",
    "_parameters": "parameters",
    "_buffers": "buffers",
    "_forward_hooks": "forward hooks",
    "_forward_pre_hooks": "forward hooks",
    "_backward_hooks": "backward hooks",
    "_backward_pre_hooks": "backward hooks",
}
_PLAIN = (bool, int, float, str, tuple, type(None))
#: The most changes that a message names.
_NAMED = 3


class Snapshot:
    """The state of torch modules, with a copy of their weights, to detect and undo changes."""

    def __init__(self, *modules: nn.Module) -> None:
        self._modules = [_Layer(name, part) for module in modules for name, part in module.named_modules()]
        tensors = (t for module in modules for t in (*module.named_parameters(), *module.named_buffers()))
        self._tensors = [_Weights(name, tensor) for name, tensor in tensors]
        self._signs = self._look()

    def _look(self) -> list[Any]:
        return [layer.sign() for layer in self._modules] + [held.sign() for held in self._tensors]

    def put_back(self, thorough: bool) -> list[str]:
        """Undo every change and name them; `thorough` compares all values too."""
        if not thorough and self._look() == self._signs:
            return []
        found = [change for layer in self._modules for change in layer.put_back()]
        found += [change for held in self._tensors for change in held.put_back()]
        self._signs = self._look()
        return list(dict.fromkeys(found))


class _Layer:
    """One submodule: training or evaluation mode, hooks, and the settings of torch's own layers."""

    def __init__(self, name: str, module: nn.Module) -> None:
        self.name, self.fields = name or "the module", module.__dict__
        self.training, self.forward = module.training, self.fields.get("forward")
        self.live = [self.fields[kind] for kind in _DICTS]
        self.saved = {kind: dict(self.fields[kind]) for kind in _DICTS}
        own = type(module).__module__.startswith("torch.nn.")  # others may have counters or caches
        settings = {k: v for k, v in self.fields.items() if own and k[0] != "_" and isinstance(v, _PLAIN)}
        self.settings = {k: v for k, v in settings.items() if k != "training"}

    def sign(self) -> list[Any]:
        """A value that is cheap to compare: mode, and the identity of forward, layers, weights and hooks."""
        fields = self.fields
        return [fields["training"], id(fields.get("forward")), *(tuple(map(id, d.values())) for d in self.live if d)]

    def put_back(self) -> Iterator[str]:
        """Undo changes and name them."""
        if self.fields["training"] != self.training:
            self.fields["training"] = self.training
            yield f"{'eval' if self.training else 'training'} mode of {self.name}"
        for kind, saved in self.saved.items():
            if not _same_objects(self.fields[kind], saved):
                self.fields[kind].clear()
                self.fields[kind].update(saved)
                yield f"{_DICTS[kind]} of {self.name}"
        if self.fields.get("forward") is not self.forward:
            del self.fields["forward"]
            if self.forward is not None:
                self.fields["forward"] = self.forward
            yield f"forward of {self.name}"
        for name, value in self.settings.items():
            if self.fields.get(name) != value:
                self.fields[name] = value
                yield f"{name} of {self.name}"


def _same_objects(now: dict[str, Any], then: dict[str, Any]) -> bool:
    return now.keys() == then.keys() and all(now[name] is then[name] for name in then)


class _Weights:
    """One parameter or buffer: its values, whether it requires gradients, and its gradient."""

    def __init__(self, name: str, tensor: Tensor) -> None:
        self.name, self.tensor = name, tensor
        self.copy, self.wants = tensor.detach().clone(), tensor.requires_grad
        self.grad = None if tensor.grad is None else tensor.grad.clone()

    def sign(self) -> tuple[int, bool, int | None]:
        """A value that is cheap to compare."""
        grad = self.tensor.grad
        return self.tensor._version, self.tensor.requires_grad, None if grad is None else grad._version

    def put_back(self) -> Iterator[str]:
        """Undo changes and name them."""
        if self.tensor.requires_grad != self.wants:
            self.tensor.requires_grad_(self.wants)
            yield f"requires_grad of {self.name}"
        if not _same_gradient(self.tensor.grad, self.grad):
            self.tensor.grad = None if self.grad is None else self.grad.clone()
            yield f"the gradient of {self.name}"
        if not _equal(self.tensor.detach(), self.copy):
            self.tensor.data = self.copy.clone()
            yield f"the values of {self.name}"


def _same_gradient(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b if a is None or b is None else _equal(a, b)


def _equal(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors hold the same bytes, so that NaN equals itself."""
    import torch

    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(a.element_size())
    return torch.equal(a, b) if whole is None else torch.equal(a.view(whole), b.view(whole))


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted under us
        return ""


def _set_folder(folder: str) -> None:
    if folder:
        os.chdir(folder)


#: How a switch is read and set.
_Switch = tuple[Callable[[], Any], Callable[[Any], Any]]
_SWITCHES: dict[str, _Switch] = {
    "numpy's handling of errors": (np.geterr, lambda v: np.seterr(**v)),
    "the working directory": (_working_folder, _set_folder),
}


def _switches() -> dict[str, _Switch]:
    torch = sys.modules.get("torch")
    if torch is None:
        return _SWITCHES
    return _SWITCHES | {
        "torch's gradient mode": (torch.is_grad_enabled, torch._C._set_grad_enabled),
        "torch's default dtype": (torch.get_default_dtype, torch.set_default_dtype),
        "torch's default device": (torch.get_default_device, torch.set_default_device),
        "torch's number of threads": (torch.get_num_threads, torch.set_num_threads),
        "torch's deterministic mode": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
        "torch's matmul precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        "torch's anomaly detection": (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
        "torch's autocast": (lambda: torch.is_autocast_enabled("cpu"), lambda v: torch.set_autocast_enabled("cpu", v)),
        "hooks on all of torch's modules": (_global_hooks, _unhook),
    }


def _global_hooks() -> tuple[int, ...]:
    module = sys.modules["torch.nn.modules.module"]
    return tuple(key for name in _GLOBAL for key in getattr(module, name))


def _unhook(kept: tuple[int, ...]) -> None:
    module = sys.modules["torch.nn.modules.module"]
    for name in _GLOBAL:
        hooks = getattr(module, name)
        for key in set(hooks) - set(kept):
            del hooks[key]


_GLOBAL = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")


@contextmanager
def undisturbed(who: str, watch: Snapshot | None, seed: str) -> Iterator[None]:
    """Guard a call of a component: restore shared state that it changed, and raise AnswerError.

    Inside, the global generators (`random`, `numpy.random`, `torch`) are seeded from the text `seed`; their states are
    restored afterwards. So no answer depends on another one, and the caller's random numbers do not depend on the answers.
    """
    switches = _switches()
    before = {name: read() for name, (read, _) in switches.items()}
    states = _seed_globals(seed)
    try:
        yield
    finally:
        for put_back in states:
            put_back()
        changed = [name for name, value in before.items() if switches[name][0]() != value]
        for name in changed:
            switches[name][1](before[name])
        changed += watch.put_back(thorough=False) if watch else []
    raise_if_changed(who, changed)


def raise_if_changed(who: str, changed: list[str]) -> None:
    """Raise AnswerError if a component changed anything."""
    if changed:
        more = f" and {len(changed) - _NAMED} more" if len(changed) > _NAMED else ""
        raise AnswerError(f"{who} changed shared state: {', '.join(changed[:_NAMED])}{more}; it was restored")


def _seed_globals(text: str) -> list[Callable[[], Any]]:
    """Seed the global generators; returns functions that restore their states."""
    seed = int(digest(text)[:8], 16)
    python, array = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    states: list[Callable[[], Any]] = [lambda: random.setstate(python), lambda: np.random.set_state(array)]
    if torch := sys.modules.get("torch"):
        tensor = torch.get_rng_state()
        torch.default_generator.manual_seed(seed)
        states.append(lambda: torch.set_rng_state(tensor))
    return states
