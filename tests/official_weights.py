"""Weights that anyone can make again: the rule of `tests/golden/official_architectures.json`, and its image."""

import json
import math
import zlib

import numpy as np

from tests.conftest import REPOSITORY

_SCALES = ("scale", "gamma")


def golden():
    """Names, shapes and outputs of the papers' networks as their authors released them."""
    return json.loads((REPOSITORY / "tests" / "golden" / "official_architectures.json").read_text())


def weights(shapes, prefix=""):
    """A state dict of these names and shapes, float32; the rule sees the name behind a prefix."""
    import torch

    return {name: torch.from_numpy(_values(prefix + name, shape)) for name, shape in shapes.items()}


def _values(name, shape):
    g = np.random.default_rng(zlib.crc32(name.encode()))
    if name.endswith("num_batches_tracked"):
        return np.array(0, np.int64)
    if name.endswith("running_var"):
        return g.uniform(0.5, 1.5, shape).astype(np.float32)
    if name.endswith("running_mean"):
        return (0.1 * g.standard_normal(shape)).astype(np.float32)
    if len(shape) >= 2 and not name.endswith(("pos_embed", "cls_token")):
        return (g.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))).astype(np.float32)
    if (len(shape) == 1 and name.endswith("weight")) or any(word in name for word in _SCALES):
        return (1 + 0.1 * g.standard_normal(shape)).astype(np.float32)
    return (0.1 * g.standard_normal(shape)).astype(np.float32)


def image(channels, side):
    """(channels, side, side): .5 + .5·sin(.1·(k + 1)·i + .07·j)."""
    k, i, j = np.meshgrid(np.arange(channels), np.arange(side), np.arange(side), indexing="ij")
    return (0.5 + 0.5 * np.sin(0.1 * (k + 1) * i + 0.07 * j)).astype(np.float32)
