"""How every kernel is compiled: cached on disk, without the interpreter lock, announced on stderr when it takes time.

No fast-math: images are compared to the byte. `NUMBA_CACHE_DIR` moves the cache away from a read-only install.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any


class MissingPackageError(ImportError, ValueError):
    """A package of the `render` extra is not installed."""


MISSING = "rendering needs numba and embreex: pip install 'diorama[render]'"

try:
    import numba
    from numba.core import event, types
    from numba.extending import intrinsic
except ImportError as error:
    raise MissingPackageError(MISSING) from error

kernel: Callable[..., Any] = partial(numba.njit, cache=True, nogil=True, error_model="numpy")


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


class _Announce(event.Listener):
    """Says once per process that kernels are being compiled; loading them from the cache is silent."""

    said = False

    def on_start(self, happening: Any) -> None:
        module = happening.data["dispatcher"].py_func.__module__
        if not self.said and module.startswith("diorama.render"):
            self.said = True
            print("compiling the renderer, once, ~20 s …", file=sys.stderr, flush=True)

    def on_end(self, happening: Any) -> None:
        pass


event.register("numba:compile", _Announce())
