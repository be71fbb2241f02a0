"""Released weights of CGIntrinsics, BigTime ("Watching the World") or USI3D: the networks of the papers at full size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from diorama.adapt.classifying import place
from diorama.adapt.folding import folded
from diorama.adapt.state_dicts import fill, read_file
from diorama.core.errors import InputError
from diorama.core.frame import Frame, linear_to_srgb
from diorama.io.digests import file_digest
from diorama.methods.decompose.iid.passes import HookedNetwork, exposed, tensor

if TYPE_CHECKING:
    from torch import Tensor, nn

    from diorama.adapt.folding import Folded

Family = Literal["cgintrinsics", "bigtime", "usi3d"]
#: A tensor's name that only the state dict of this family has, after `model.` and `module.` are removed.
_TELLTALE: dict[Family, str] = {
    "cgintrinsics": "upconv_model_1.4.weight",
    "bigtime": ".".join(["submodule"] * 6) + ".fc.0.weight",
    "usi3d": "fs.mlp.model.0.fc.weight",
}
_PREFIXES = ("module.", "model.")
#: The U-Nets' input: the least ratio of the longer to the shorter side, and the sides (longer, shorter), as released.
_SIDES = ((1.73, (512, 256)), (1.41, (384, 256)), (1.15, (512, 384)), (0.0, (384, 384)))
_USI3D_PARTS = ("i", "r", "s", "fs")
#: USI3D's shorter side.
_SHORTER = 256


@dataclass(frozen=True)
class IidCheckpoint(HookedNetwork):
    """The network in `path`, a torch or safetensors file of weights as the authors released them.

    path     the file
    family   cgintrinsics, bigtime or usi3d; None recognises it by the names in the file
    size     side of square input; None: the family's own (U-Nets: 512×256, 384×256, 512×384 or 384×384 by the ratio of the
             sides; USI3D: the shorter side 256, both multiples of 4)
    feed     usi3d only: images in [−1, 1], as it was trained (trained), or in [0, 1], as its released test.py (test)

    A frame is exposed (its 99th percentile is white) and sRGB-encoded. Layers come out in linear light, in a relative scale:
    cgintrinsics gives exp(log R) times the image's chromaticity and gray exp(log S); bigtime exp(out / 0.4545), coloured
    shading being S plus the lamp's colour; usi3d ((out + 1)/2)^2.2 (its test.py stretches every image to [0, 1] instead).
    Layers of U-Nets: encoder1 … encoder7, decoder1 … decoder7, output; of USI3D: content1 … content7, decoder1 …
    """

    name = "iid_checkpoint"
    cite = ("li2018", "li2018watching", "liu2020")
    located = ("path",)

    path: str
    family: Family | None = None
    size: int | None = None
    feed: Literal["trained", "test"] = "trained"

    def __post_init__(self) -> None:
        step = 4 if self.kind == "usi3d" else 128
        if self.size is not None and (self.size < step or self.size % step):
            raise InputError(f"iid_checkpoint: size={self.size}: {self.kind} takes multiples of {step}")

    @property
    def layers(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names that `features` and `loss_grad` take."""
        if self.kind == "usi3d":
            from diorama.methods.decompose.iid.released_usi3d import LAYERS as OF_USI3D

            return OF_USI3D
        from diorama.methods.decompose.iid.released_unet import LAYERS as OF_UNETS

        return OF_UNETS

    def fingerprint(self) -> str:
        """The digest of the weights."""
        return file_digest(Path(self.path).expanduser())

    @cached_property
    def kind(self) -> Family:
        """The family, given or recognised."""
        return self.family or recognise(self._tensors, self.path)

    @cached_property
    def _tensors(self) -> dict[str, Tensor]:
        return released_tensors(read_file(self.path, self.name), self.path)

    @cached_property
    def module(self) -> nn.Module:
        """The network in eval mode, its parameters without gradients; built at first use."""
        net = _network_class(self.kind)()
        if self.kind == "usi3d":  # the layers' encoders, the image's decoder and the merger are not used
            state = {name: self._tensors[name] for name in net.state_dict() if name in self._tensors}
        else:
            state = {f"outer.{name}": values for name, values in self._tensors.items()}
        fill(net, state, self.path, f"iid_checkpoint({self.kind})")
        return place(net)

    @cached_property
    def twin(self) -> Folded | None:
        """The faster twin that `decompose` uses."""
        return folded(self.module, self.size or 128)

    def network_input(self, frame: Frame) -> Tensor:
        """The input of the released network."""
        import cv2

        image = exposed(frame.linear())
        height, width = self._sides(*image.shape[:2])
        if image.shape[:2] != (height, width):
            image = np.clip(cv2.resize(image, (width, height), interpolation=_interpolation(image, height)), 0, 1)
        x = tensor(linear_to_srgb(image).astype(np.float32))
        return 2 * x - 1 if self.kind == "usi3d" and self.feed == "trained" else x

    def _sides(self, height: int, width: int) -> tuple[int, int]:
        """The input's height and width for a frame's."""
        if self.size is not None:
            return self.size, self.size
        if self.kind == "usi3d":
            share = _SHORTER / min(height, width)
            return max(4, 4 * round(height * share / 4)), max(4, 4 * round(width * share / 4))
        ratio = max(height, width) / min(height, width)
        longer, shorter = next(sides for least, sides in _SIDES if ratio > least)
        return (longer, shorter) if height > width else (shorter, longer)


def _interpolation(image: np.ndarray, height: int) -> int:
    """By area if the image gets smaller, else bilinear."""
    import cv2

    return cv2.INTER_AREA if height < image.shape[0] else cv2.INTER_LINEAR


def released_tensors(content: Any, path: str) -> dict[str, Tensor]:
    """The tensors of a released file by name: parts of USI3D prefixed by their name, `model.` and `module.` removed."""
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if isinstance(content, Mapping) and all(isinstance(content.get(part), Mapping) for part in _USI3D_PARTS):
        parts = {part: content[part] for part in (*_USI3D_PARTS, "fm") if part in content}
        content = {f"{part}.{k}": v for part, tensors in parts.items() for k, v in tensors.items()}
    if not isinstance(content, Mapping) or not content or not all(hasattr(v, "shape") for v in content.values()):
        raise InputError(f"iid_checkpoint: {path} holds no state dict of cgintrinsics, bigtime or usi3d")
    state = dict(content)
    while any(all(name.startswith(prefix) for name in state) for prefix in _PREFIXES):
        state = {name.partition(".")[2]: tensor for name, tensor in state.items()}
    return state


def recognise(state: Mapping[str, Tensor], path: str) -> Family:
    """The family whose telltale tensor a state dict has."""
    family = next((family for family, name in _TELLTALE.items() if name in state), None)
    if family is None:
        raise InputError(
            f"iid_checkpoint: {path} is not of cgintrinsics, bigtime or usi3d ({len(state)} tensors, the first is"
            f" {next(iter(state))!r}): give the authors' own state dict"
        )
    return family


def _network_class(family: Family) -> Callable[[], nn.Module]:
    if family == "usi3d":
        from diorama.methods.decompose.iid.released_usi3d import Usi3d

        return Usi3d
    from diorama.methods.decompose.iid.released_unet import BigTime, CgIntrinsics

    return CgIntrinsics if family == "cgintrinsics" else BigTime
