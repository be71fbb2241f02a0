"""The device that models run on: one choice per process, inherited by the processes it starts."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from diorama.core.errors import InputError

_VARIABLE = "DIORAMA_DEVICE"
_WORKERS = "DIORAMA_WORKERS"
#: Entries of /dev on Linux that show that there may be an accelerator.
_NODES = ("nvidia0", "nvidiactl", "kfd", "dri", "dxg", "accel")


def choose(device: str) -> None:
    """Choose the device for this process and the processes it starts: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`."""
    kind = device.partition(":")[0]
    if kind not in ("auto", "cpu", "cuda", "mps", "xpu"):
        raise InputError(f"unknown device {device!r}; write auto, cpu, cuda, cuda:1, mps or xpu")
    if kind not in ("auto", "cpu"):
        _check(device, kind)
    os.environ[_VARIABLE] = device


@contextmanager
def using(device: str) -> Iterator[None]:
    """Use a device inside, and restore the previous choice afterwards."""
    before = os.environ.get(_VARIABLE)
    choose(device)
    try:
        yield
    finally:
        _set(_VARIABLE, before)


def current() -> str:
    """The device to use, `auto` resolved: an accelerator if torch sees one, otherwise the CPU."""
    device = os.environ.get(_VARIABLE, "auto")
    if device != "auto":
        return device
    if not _accelerated() or importlib.util.find_spec("torch") is None:
        return "cpu"
    import torch

    found = torch.accelerator.current_accelerator(check_available=True)
    return found.type if found else "cpu"


def _accelerated() -> bool:
    """Whether this machine could have an accelerator, without importing torch, which takes seconds."""
    return sys.platform != "linux" or any(os.path.exists(f"/dev/{node}") for node in _NODES)


def set_for_workers(device: str) -> None:
    """Declare the device of workers on other machines, `cpu` or `gpu`: the run is planned for it, not for this machine's."""
    _set(_WORKERS, device or None)


def for_workers() -> str:
    """The device of the run's passes: the declared one of workers elsewhere, or this process's own."""
    return os.environ.get(_WORKERS) or current()


def check_for_workers() -> None:
    """Raise InputError if the run was planned for GPUs and this process has none."""
    if os.environ.get(_WORKERS) == "gpu" and current() == "cpu":
        raise InputError("the run was planned for GPUs (--gpus), and torch finds none here: its rows would differ")


def chunk(device: str) -> int:
    """Images that pass through a model at once: a fixed number, because the last bits of logits depend on it."""
    return 8 if device == "cpu" else 64


def _check(device: str, kind: str) -> None:
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"device {device!r} needs torch: pip install 'diorama[torch]', or use --device cpu")
    import torch

    module = getattr(torch.backends, "mps", None) if kind == "mps" else getattr(torch, kind, None)
    if module is None or not module.is_available():
        raise InputError(f"device {device!r} is not available to torch on this machine: use --device auto or cpu")


#: Environment variables from which libraries read their number of threads when they are loaded.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def start_with_one_thread() -> None:
    """Give one thread to libraries that are not loaded yet, in this process and those it starts."""
    os.environ.update(dict.fromkeys(THREADS, "1"))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and torch use one thread, so that sums are added in the same order on every machine.

    Several processes are also faster than several threads.
    """
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in THREADS}
    start_with_one_thread()
    try:
        with threadpool_limits(1), _torch_with_one_thread():
            yield
    finally:
        for name, value in before.items():
            _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


@contextmanager
def _torch_with_one_thread() -> Iterator[None]:
    torch = sys.modules.get("torch")
    if torch is None:  # loaded later, it reads the environment
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
