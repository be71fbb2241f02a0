"""Coverage-guided fuzzing of readers in one process: `scripts/fuzz --guided --minutes 5`, where atheris is installed.

Atheris changes bytes, watches which branches of our readers they reach, and keeps what reaches new ones. The rule is that of
the other fuzzers: a value, or one of the errors that become one line; any other exception ends the run and is printed with
the bytes that raised it.
"""

import importlib
import sys
import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

PLACE = Path(tempfile.gettempdir()) / "diorama-guided"


def _specs(data: bytes) -> None:
    from diorama.core.spec import parse

    parse(data.decode("utf-8", "surrogateescape"))


def _plans(data: bytes) -> None:
    from diorama.core.plan import Plan

    Plan.read(_file(data, "plan.toml"))


def _rows(data: bytes) -> None:
    from diorama.core.rows import read_row

    for line in data.splitlines():
        read_row("cell", line)


def _arrays(data: bytes) -> None:
    from diorama.io.array_files import read_arrays

    read_arrays(_file(data, "w.bin"))


def _npy(data: bytes) -> None:
    from diorama.io.saved import damage_named, read_npy

    with damage_named("a.npy"):
        read_npy(BytesIO(data), "a.npy")


#: The first byte of an input says which reader gets the rest.
READERS: tuple[Callable[[bytes], None], ...] = (_specs, _plans, _rows, _arrays, _npy)
#: Good inputs to start from.
SEEDS = (
    b"\x00name(k=[1, 'two', {'a': None}], other=./file.py:Name)",
    b'\x01worlds = ["mondrian"]\nmethods = ["baseline"]\nprotocols = ["lmse"]\ncases = 3\n',
    b'\x02{"case": "0-00000", "metric": "lmse", "value": 0.5, "status": "ok", "reason": "", "at": "", "seconds": 0.1}',
    b"\x03\x80\x03}q\x00X\x01\x00\x00\x00aq\x01K\x01s.",
    b"\x04\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"
    + b" " * 60
    + b"\n"
    + bytes(24),
)


def _file(data: bytes, name: str) -> Path:
    (PLACE / name).write_bytes(data)
    return PLACE / name


def one(data: bytes) -> None:
    """Give one input to its reader."""
    from diorama.core.errors import InputError

    if data:
        reader = READERS[data[0] % len(READERS)]
        try:
            reader(data[1:])
        except InputError as error:
            assert len(str(error)) <= 1000, f"a message of {len(str(error))} characters"
        except ValueError:
            if reader is not _rows:  # a part with such a row is set aside as damaged
                raise


def fuzz(minutes: float) -> None:
    """Fuzz for some minutes; ends the process, with 0 if nothing broke the rule."""
    import atheris

    with atheris.instrument_imports(include=["diorama.core"]):
        for name in ("array_files", "plan", "rows", "saved", "spec"):
            importlib.import_module(f"diorama.core.{name}")
    seeds = PLACE / "seeds"
    seeds.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(SEEDS):
        (seeds / str(i)).write_bytes(seed)
    atheris.Setup([sys.argv[0], str(seeds), f"-max_total_time={round(minutes * 60)}", "-rss_limit_mb=3000"], one)
    atheris.Fuzz()
