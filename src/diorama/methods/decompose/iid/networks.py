"""The networks of the three decomposers: a U-Net with two decoders, and a content/style translator. Imports torch.

Each takes gamma-encoded images (n, 3, 64, 64) in [0, 1] and gives one map per branch; `component` turns a map, resized to
any size, into a layer in linear light. `place` gives the module whose output is a named layer of a branch.
"""

from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

BRANCHES = ("reflectance", "shading")
#: Images, and all outputs of a translator, are linear light to this power.
GAMMA = 1 / 2.2
WIDTHS = (16, 32, 48, 48, 48)


class Unet(nn.Module):
    """The two-decoder U-Net of CGIntrinsics and BigTime, five levels instead of seven and a quarter of the channels.

    Levels of the encoder: LeakyReLU, 4×4 convolution of stride 2, batch norm (neither in the first, no norm in the last).
    Levels of a decoder: ReLU, 4×4 transposed convolution of stride 2, batch norm; the encoder's level is concatenated.
    `coloured=False` is CGIntrinsics: log R and log S have one channel, colour is the image's chromaticity, S is gray.
    `coloured=True` is BigTime: log R has three channels, log S one, and a head on the deepest level gives the lamp's colour.
    """

    def __init__(self, coloured: bool) -> None:
        super().__init__()
        self.coloured = coloured
        pairs = list(pairwise((3, *WIDTHS)))
        self.encoder = nn.ModuleList([_down(a, b, i, len(pairs)) for i, (a, b) in enumerate(pairs)])
        self.decoders = nn.ModuleDict({"reflectance": _decoder(3 if coloured else 1), "shading": _decoder(1)})
        if coloured:
            self.lamp = nn.Sequential(nn.ReLU(), nn.Linear(WIDTHS[-1], 24), nn.ReLU(), nn.Linear(24, 3))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """log R and log S, up to a constant each; coloured shading has three channels."""
        levels = []
        for level in self.encoder:
            x = level(x)
            levels.append(x)
        outputs = {branch: _decoded(cast(nn.ModuleList, self.decoders[branch]), levels) for branch in BRANCHES}
        if self.coloured:
            lamp = self.lamp(levels[-1].mean((2, 3)))[:, :, None, None]
            outputs["shading"] = outputs["shading"] + lamp
        return outputs

    def component(self, branch: str, output: Tensor, image: Tensor) -> Tensor:
        """The layer in linear light: exp(output), for gray networks times I/ΣI in the reflectance."""
        layer = output.exp()
        return layer if self.coloured or branch == "shading" else layer * chromaticity(image)

    def place(self, branch: str, layer: str) -> nn.Module:
        """`encoder1` is the finest level, `decoder5` gives the logarithm."""
        levels = self.encoder if layer.startswith("encoder") else cast(nn.ModuleList, self.decoders[branch])
        return levels[int(layer[-1]) - 1]


def chromaticity(image: Tensor, floor: float = 1e-3) -> Tensor:
    """I/ΣI over channels of a linear image (n, 3, h, w), floored: black has no colour."""
    lifted = image.clamp(min=floor)
    return lifted / lifted.sum(1, keepdim=True)


def _down(inner: int, outer: int, level: int, levels: int) -> nn.Module:
    parts: list[nn.Module] = [nn.LeakyReLU(0.2)] if level else []
    parts.append(nn.Conv2d(inner, outer, 4, 2, 1))
    return nn.Sequential(*parts, *([nn.BatchNorm2d(outer)] if 0 < level < levels - 1 else []))


def _decoder(channels: int) -> nn.ModuleList:
    """From the deepest level outwards; the last one ends with a 1×1 convolution to `channels`."""
    levels = []
    for i in range(len(WIDTHS) - 1, -1, -1):
        inner = WIDTHS[i] if i == len(WIDTHS) - 1 else 2 * WIDTHS[i]
        outer = WIDTHS[i - 1] if i else 12
        levels.append(nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(inner, outer, 4, 2, 1), nn.BatchNorm2d(outer)))
    levels[-1].extend([nn.ReLU(), nn.Conv2d(12, channels, 1)])
    return nn.ModuleList(levels)


def _decoded(decoder: nn.ModuleList, levels: list[Tensor]) -> Tensor:
    y = levels[-1]
    for i, level in enumerate(decoder):
        y = level(y if i == 0 else torch.cat([y, levels[-1 - i]], 1))
    return y


FINE, WIDE, STYLE = (8, 16), 32, 8


class Translator(nn.Module):
    """The part of USI3D that decomposes: content and style of an image, the style split in two, a decoder for each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.content, self.style = Content(), style_encoder()
        self.split = mlp(STYLE, 2 * STYLE)
        self.decoders = nn.ModuleDict({branch: Decoder() for branch in BRANCHES})

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Gamma-encoded layers in [−1, 1]."""
        return self.decoded(self.content(x), self.split(self.style(x)))

    def decoded(self, content: list[Tensor], styles: Tensor) -> dict[str, Tensor]:
        """The layers of content and both styles (n, 2·8)."""
        halves = styles.chunk(2, 1)
        return {b: self.decoders[b](content, half) for b, half in zip(BRANCHES, halves, strict=True)}

    def component(self, branch: str, output: Tensor, image: Tensor) -> Tensor:
        """The layer in linear light: ((output + 1)/2)^2.2."""
        return unit(output) ** (1 / GAMMA)

    def place(self, branch: str, layer: str) -> nn.Module:
        """`content1` is the finest, `decoder5` gives the layer before it is decoded to linear light."""
        part = self.content if layer.startswith("content") else cast(Decoder, self.decoders[branch])
        return part.levels[int(layer[-1]) - 1]


def unit(output: Tensor) -> Tensor:
    """[−1, 1] → [0, 1], never quite 0, where a power has no gradient."""
    return ((output + 1) / 2).clamp(min=1e-4)


class Content(nn.Module):
    """7×7, two 4×4 of stride 2, two residual blocks, instance norm. Content is three maps: the finer two keep edges."""

    def __init__(self) -> None:
        super().__init__()
        stem = [_normed(nn.Conv2d(3, FINE[0], 7, 1, 3, padding_mode="reflect"))]
        stem += [_normed(nn.Conv2d(a, b, 4, 2, 1)) for a, b in pairwise((*FINE, WIDE))]
        self.levels = nn.ModuleList([*stem, Residual(), Residual()])

    def forward(self, x: Tensor) -> list[Tensor]:
        """(n, 3, h, w) → (n, 8, h, w), (n, 16, h/2, w/2), (n, 32, h/4, w/4)."""
        outputs = []
        for level in self.levels:
            x = level(x)
            outputs.append(x)
        return [outputs[0], outputs[1], outputs[-1]]


def style_encoder() -> nn.Sequential:
    """7×7, three 4×4 of stride 2, global average pooling, dense: (n, 3, h, w) → (n, 8)."""
    widths = (8, 16, 32, 32)
    parts: list[nn.Module] = [nn.Conv2d(3, widths[0], 7, 2, 3), nn.ReLU()]
    for a, b in pairwise(widths):
        parts += [nn.Conv2d(a, b, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], STYLE))


def mlp(inner: int, outer: int) -> nn.Sequential:
    """Two hidden layers of 32."""
    return nn.Sequential(nn.Linear(inner, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, outer))


def _normed(conv: nn.Conv2d) -> nn.Sequential:
    return nn.Sequential(conv, InstanceNorm(), nn.ReLU())


class InstanceNorm(nn.Module):
    """Every channel of every image with mean 0 and variance 1.

    A single image is passed twice: torch 2.13 has a wrong gradient for batches of one in channels-last memory.
    """

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) → the same shape."""
        batch = x if len(x) > 1 else torch.cat([x, x])
        return nn.functional.instance_norm(batch)[: len(x)]


class Residual(nn.Module):
    """x + conv(ReLU(norm(conv(x)))), each convolution with instance norm, whose scale and shift may be given."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(WIDE, WIDE, 3, 1, 1), nn.Conv2d(WIDE, WIDE, 3, 1, 1)

    def forward(self, x: Tensor, modulation: Tensor | None = None) -> Tensor:
        """`modulation` (n, 4·32): scale and shift of the first norm, then of the second (AdaIN, Huang and Belongie 2017)."""
        scales = [None] * 4 if modulation is None else list(modulation[:, :, None, None].chunk(4, 1))
        y = torch.relu(_scaled(self.first(x), scales[0], scales[1]))
        return x + _scaled(self.second(y), scales[2], scales[3])


def _scaled(x: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    x = InstanceNorm()(x)
    return x if scale is None or shift is None else (1 + scale) * x + shift


class Decoder(nn.Module):
    """Two AdaIN residual blocks, two of (3×3, layer norm, ×2), each with finer content concatenated, 3×3 with tanh.

    The style sets the AdaIN. USI3D decodes the coarsest content alone, which blurs with networks of this size.
    """

    def __init__(self) -> None:
        super().__init__()
        self.adapt = mlp(STYLE, 8 * WIDE)
        last = nn.Sequential(nn.Conv2d(2 * FINE[0], 3, 3, 1, 1, padding_mode="reflect"), nn.Tanh())
        self.levels = nn.ModuleList([Residual(), Residual(), _up(WIDE, FINE[1]), _up(2 * FINE[1], FINE[0]), last])

    def forward(self, content: list[Tensor], style: Tensor) -> Tensor:
        """Content and (n, 8) → (n, 3, h, w)."""
        x, modulation = content[2], self.adapt(style).chunk(2, 1)
        x = self.levels[1](self.levels[0](x, modulation[0]), modulation[1])
        x = torch.cat([self.levels[2](x), content[1]], 1)
        x = torch.cat([self.levels[3](x), content[0]], 1)
        return self.levels[4](x)


def _up(inner: int, outer: int) -> nn.Sequential:
    conv = nn.Conv2d(inner, outer, 3, 1, 1)
    return nn.Sequential(conv, nn.GroupNorm(1, outer), nn.ReLU(), nn.Upsample(scale_factor=2))


NETWORKS = {"iid_supervised": lambda: Unet(False), "iid_timelapse": lambda: Unet(True), "iid_translation": Translator}
