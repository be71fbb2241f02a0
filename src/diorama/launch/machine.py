"""The resources of this machine, within the limits of a container: physical cores, memory, GPUs."""

import os
from pathlib import Path

_GROUP = Path("/sys/fs/cgroup")


def cores() -> int:
    """Physical cores that this process may use: workers are no faster with two threads per core."""
    physical = len({_core_of(number) for number in _allowed_cpus()})
    quota, _, period = _read_text(_GROUP / "cpu.max").partition(" ")
    limit = max(1, int(quota) // int(period)) if quota.isdecimal() and period.strip().isdecimal() else physical
    return max(1, min(physical, limit))


def _allowed_cpus() -> set[int]:
    try:
        return os.sched_getaffinity(0)
    except AttributeError:  # not on every system
        return set(range(os.cpu_count() or 1))


def _core_of(number: int) -> tuple[str, str]:
    folder = Path(f"/sys/devices/system/cpu/cpu{number}/topology")
    return _read_text(folder / "physical_package_id"), _read_text(folder / "core_id") or str(number)


def memory() -> int:
    """Bytes of memory that are free for workers."""
    lines = dict(line.split(":", 1) for line in _read_text(Path("/proc/meminfo")).splitlines() if ":" in line)
    free = int(lines["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in lines else 8 * 2**30
    limit, used = _read_text(_GROUP / "memory.max"), _read_text(_GROUP / "memory.current")
    return min(free, int(limit) - int(used)) if limit.isdecimal() and used.isdecimal() else free


def gpus() -> list[str]:
    """The GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in visible.split(",") if name.strip()]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def _read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
