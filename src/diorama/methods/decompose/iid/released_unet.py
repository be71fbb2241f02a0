"""CGIntrinsics (Li & Snavely 2018a) and BigTime, "Watching the World" (2018b), as released: a U-Net with two decoders.

Seven levels of 64, 128, 256, 512, 512, 512, 512 channels. A level of the encoder is LeakyReLU, 4×4 convolution of stride 2,
batch norm (the outermost has only the convolution, the innermost no norm); a level of a decoder is ReLU, 4×4 transposed
convolution of stride 2, batch norm. Levels are nested as in the authors' code, so that weights have the released names.
Sides of images must be multiples of 128.

CGIntrinsics gives log R and log S of linear light, one channel each; colour is the image's chromaticity. BigTime gives log S
(one channel), log R (three) and the lamp's colour, all times 0.4545, so that exp is gamma-encoded.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn

from diorama.methods.decompose.iid.networks import chromaticity

#: Channels after every level of the encoder.
WIDTHS = (64, 128, 256, 512, 512, 512, 512)
LEVELS = len(WIDTHS)
LAYERS = (*(f"encoder{i + 1}" for i in range(LEVELS)), *(f"decoder{i + 1}" for i in range(LEVELS)), "output")
#: BigTime's gamma.
GAMMA = 0.4545
#: Pixels are lifted to this before their chromaticity is taken, as released.
_FLOOR = 1e-4


class Level(nn.Module):
    """One level of encoder and both decoders, with the levels inside it."""

    def __init__(
        self, outer: int, inner: int, last: tuple[list[nn.Module], list[nn.Module]], inside: Level | None
    ) -> None:
        super().__init__()
        down: list[nn.Module] = [nn.Conv2d(outer, inner, 4, 2, 1)]
        outermost = outer == 3
        if not outermost:
            down = [nn.LeakyReLU(0.2), *down, *([] if inside is None else [nn.BatchNorm2d(inner)])]
        self.downconv_model = nn.Sequential(*down)
        if inside is not None:
            self.submodule = inside
        self.upconv_model_1, self.upconv_model_2 = nn.Sequential(*last[0]), nn.Sequential(*last[1])
        self.innermost, self.outermost = inside is None, outermost

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The outputs of both decoders at this level, each concatenated with the level's input (not at the outermost)."""
        y = self.downconv_model(x)
        first, second = (y, y) if self.innermost else self.submodule(y)
        decoded = self.upconv_model_1(first), self.upconv_model_2(second)
        return decoded if self.outermost else (torch.cat([decoded[0], x], 1), torch.cat([decoded[1], x], 1))


def _up(inner: int, outer: int, innermost: bool) -> list[nn.Module]:
    conv = nn.ConvTranspose2d(inner if innermost else 2 * inner, outer, 4, 2, 1)
    return [nn.ReLU(), conv, nn.BatchNorm2d(outer)]


def _levels(outermost: tuple[list[nn.Module], list[nn.Module]], innermost: type[Level] = Level) -> Level:
    """All levels, from the innermost outwards."""
    level: Level | None = None
    for outer, inner in reversed(list(pairwise((3, *WIDTHS)))):
        ends = outermost if outer == 3 else (_up(inner, outer, level is None), _up(inner, outer, level is None))
        level = (innermost if level is None else Level)(outer, inner, ends, level)
    assert level is not None
    return level


class _Unet(nn.Module):
    """What both networks share."""

    #: Which decoder gives which branch.
    decoders: ClassVar[dict[str, str]] = {"reflectance": "upconv_model_1", "shading": "upconv_model_2"}
    outer: Level

    def place(self, branch: str, layer: str) -> nn.Module:
        """`encoder1` is the finest level, `decoder7` gives the logarithm."""
        level, number = self.outer, int(layer[-1])
        for _ in range(number - 1 if layer.startswith("encoder") else LEVELS - number):
            level = level.submodule
        return level.downconv_model if layer.startswith("encoder") else level.get_submodule(self.decoders[branch])


class CgIntrinsics(_Unet):
    """log R and log S of linear light, one channel each, of sRGB images (n, 3, h, w) in [0, 1]."""

    def __init__(self) -> None:
        super().__init__()
        self.outer = _levels((_gray_end(), _gray_end()))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The logarithms by branch."""
        reflectance, shading = self.outer(x)
        return {"reflectance": reflectance, "shading": shading}

    def component(self, branch: str, output: Tensor, image: Tensor) -> Tensor:
        """The layer in linear light: exp(log R)·I/ΣI, exp(log S)."""
        return output.exp() * chromaticity(image, _FLOOR) if branch == "reflectance" else output.exp()


def _gray_end() -> list[nn.Module]:
    conv = nn.ConvTranspose2d(2 * WIDTHS[0], WIDTHS[0], 4, 2, 1)
    return [nn.ReLU(), conv, nn.BatchNorm2d(WIDTHS[0]), nn.ReLU(), nn.Conv2d(WIDTHS[0], 1, 1)]


class _WithLamp(Level):
    """The innermost level of BigTime, which also estimates the colour of the light."""

    def __init__(
        self, outer: int, inner: int, last: tuple[list[nn.Module], list[nn.Module]], inside: Level | None
    ) -> None:
        super().__init__(outer, inner, last, inside)
        self.int_conv = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.ReLU(), nn.Conv2d(inner, inner // 2, 3, 1, 1), nn.ReLU()
        )
        self.fc = nn.Sequential(nn.Linear(inner // 2, 3))

    def lamp(self, deepest: Tensor) -> Tensor:
        """The log colour (n, 3) of the light."""
        return self.fc(self.int_conv(deepest).flatten(1))


class BigTime(_Unet):
    """log S, log R and the lamp's log colour, all times 0.4545, of sRGB images (n, 3, h, w) in [0, 1]."""

    decoders: ClassVar[dict[str, str]] = {"reflectance": "upconv_model_2", "shading": "upconv_model_1"}

    def __init__(self) -> None:
        super().__init__()
        ends = (
            [nn.ReLU(), nn.ConvTranspose2d(2 * WIDTHS[0], 1, 4, 2, 1)],
            [nn.ReLU(), nn.ConvTranspose2d(2 * WIDTHS[0], 3, 4, 2, 1)],
        )
        self.outer = _levels(ends, _WithLamp)

    def released(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """S (n, 1, h, w), R (n, 3, h, w) and lamp (n, 3) as the released network gives them."""
        deepest: list[Tensor] = []
        inner = self.outer
        while not inner.innermost:
            inner = inner.submodule
        with inner.downconv_model.register_forward_hook(lambda *call: deepest.append(call[2])):
            shading, reflectance = self.outer(x)
        return GAMMA * shading, GAMMA * reflectance, GAMMA * inner.lamp(deepest[0])  # type: ignore[operator]

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The logarithms of gamma-encoded layers by branch; coloured shading has three channels."""
        shading, reflectance, lamp = self.released(x)
        return {"reflectance": reflectance, "shading": shading + lamp[:, :, None, None]}

    def component(self, branch: str, output: Tensor, image: Tensor) -> Tensor:
        """The layer in linear light."""
        return (output / GAMMA).exp()
