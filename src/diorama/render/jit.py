"""How every kernel is compiled: cached on disk, without the interpreter lock, announced on stderr when it takes time.

No fast-math: images are compared to the byte. `NUMBA_CACHE_DIR` moves the cache away from a read-only install.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any


class MissingPackageError(ImportError, ValueError):
    """A package of the `render` extra is not installed."""


MISSING = "rendering needs numba and embreex: pip install 'diorama[render]'"

try:
    import numba
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import event, types
    from numba.extending import intrinsic
except ImportError as error:
    raise MissingPackageError(MISSING) from error

kernel: Callable[..., Any] = partial(numba.njit, cache=True, nogil=True, error_model="numpy")
# every array is passed to a kernel as nine words, so that calling a small function costs more than running it
inlined: Callable[..., Any] = partial(kernel, forceinline=True)
carray: Callable[..., Any] = numba.carray  # type: ignore[attr-defined]


@intrinsic
def pointer_to_float32(typing_context: Any, address: Any) -> Any:
    """An integer address as a pointer that `numba.carray` takes."""
    return _pointer_cast(types.float32)


@intrinsic
def pointer_to_int32(typing_context: Any, address: Any) -> Any:
    """An integer address as a pointer that `numba.carray` takes."""
    return _pointer_cast(types.int32)


def _pointer_cast(kind: Any) -> tuple[Any, Callable[..., Any]]:
    signature = types.CPointer(kind)(types.int64)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

    return signature, generate


@intrinsic
def call_c(typing_context: Any, function: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    """Call the C function at an integer address with four pointers; unlike a call by ctypes, this can be cached."""
    signature = types.void(types.intp, types.intp, types.intp, types.intp, types.intp)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer] * 4)
        target = builder.inttoptr(values[0], kind.as_pointer())
        builder.call(target, [builder.inttoptr(value, pointer) for value in values[1:]])
        return context.get_dummy_value()

    return signature, generate


class _Announce(event.Listener):
    """Says once per process that kernels are being compiled; loading them from the cache is silent."""

    said = False

    def on_start(self, happening: Any) -> None:
        """Say once that kernels of ours are being compiled."""
        module = happening.data["dispatcher"].py_func.__module__
        if not self.said and module.startswith("diorama.render"):
            self.said = True
            print("compiling the renderer, once, ~20 s …", file=sys.stderr, flush=True)

    def on_end(self, happening: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _Announce())
