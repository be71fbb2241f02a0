"""The device that models run on: one choice per process, inherited by the processes it starts."""

import importlib.util
import os

from diorama.core.errors import InputError

_VARIABLE = "DIORAMA_DEVICE"


def choose(device: str) -> None:
    """Choose the device for this process and its children: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`."""
    kind = device.partition(":")[0]
    if kind not in ("auto", "cpu", "cuda", "mps", "xpu"):
        raise InputError(f"unknown device {device!r}; write auto, cpu, cuda, cuda:1, mps or xpu")
    if kind not in ("auto", "cpu"):
        _check(device, kind)
    os.environ[_VARIABLE] = device


def current() -> str:
    """The device to use, `auto` resolved: an accelerator if torch sees one, otherwise the CPU."""
    device = os.environ.get(_VARIABLE, "auto")
    if device != "auto":
        return device
    if importlib.util.find_spec("torch") is None:
        return "cpu"
    import torch

    found = torch.accelerator.current_accelerator(check_available=True)
    return found.type if found else "cpu"


def _check(device: str, kind: str) -> None:
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"device {device!r} needs torch: pip install 'diorama[torch]', or use --device cpu")
    import torch

    module = getattr(torch.backends, "mps", None) if kind == "mps" else getattr(torch, kind, None)
    if module is None or not module.is_available():
        raise InputError(f"device {device!r} is not available to torch on this machine: use --device auto or cpu")


def one_thread() -> None:
    """Let torch use one thread in this process: several processes are faster, and results do not depend on the number."""
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
