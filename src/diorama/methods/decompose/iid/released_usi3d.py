"""USI3D (Liu et al. 2020) as released: content and style of an image, the style split in two, a decoder for each layer.

Parts of the checkpoint: `i`, `r`, `s` are auto-encoders of images, reflectances and shadings, of which the image's encoders
and the layers' decoders are used; `fs` splits the style; `fm`, which merges styles, is not needed. Input and outputs are
in [−1, 1], gamma-encoded. Sides of images must be multiples of 4.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from diorama.methods.decompose.iid.networks import GAMMA, InstanceNorm, unit

LAYERS = (*(f"content{i}" for i in range(1, 8)), *(f"decoder{i}" for i in range(1, 8)), "output")
WIDE = 256
#: Residual blocks of content encoder and decoder.
BLOCKS = 4


class Conv(nn.Module):
    """Reflection padding, a convolution, a norm, an activation."""

    def __init__(
        self, inside: int, outside: int, kernel: int, stride: int, padding: int, norm: nn.Module, act: nn.Module
    ) -> None:
        super().__init__()
        self.pad, self.conv = nn.ReflectionPad2d(padding), nn.Conv2d(inside, outside, kernel, stride)
        self.norm, self.act = norm, act

    def forward(self, x: Tensor) -> Tensor:
        """(n, c, h, w) → (n, c', h', w')."""
        return self.act(self.norm(self.conv(self.pad(x))))


class LayerNorm(nn.Module):
    """Normalise each image over all its values (sample standard deviation), then scale and shift each channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        flat = x.flatten(1)
        mean, deviation = (v[:, None, None, None] for v in (flat.mean(1), flat.std(1)))
        return (x - mean) / (deviation + 1e-5) * self.gamma[:, None, None] + self.beta[:, None, None]


class AdaIN(nn.Module):
    """Instance norm whose scale and shift are given (Huang & Belongie 2017); its released buffers have no effect."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.instance = InstanceNorm()

    def forward(self, x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        """The same shape; `shift` and `scale` are (n, channels)."""
        return self.instance(x) * scale[:, :, None, None] + shift[:, :, None, None]


class Adapted(nn.Module):
    """Reflection padding, a convolution, AdaIN."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(WIDE, WIDE, 3), AdaIN(WIDE)

    def forward(self, x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
        """The same shape."""
        return self.norm(self.conv(functional.pad(x, (1, 1, 1, 1), "reflect")), shift, scale)


class Residual(nn.Module):
    """x + norm(conv(ReLU(norm(conv x))))."""

    def __init__(self) -> None:
        super().__init__()
        first = Conv(WIDE, WIDE, 3, 1, 1, InstanceNorm(), nn.ReLU())
        self.model = nn.Sequential(first, Conv(WIDE, WIDE, 3, 1, 1, InstanceNorm(), nn.Identity()))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return x + self.model(x)


class AdaptedResidual(nn.Module):
    """x + AdaIN(conv(ReLU(AdaIN(conv x)))); the style sets scale and shift of both norms."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.ModuleList([Adapted(), Adapted()])

    def forward(self, x: Tensor, modulation: Tensor) -> Tensor:
        """`modulation` is (n, 4·256): shift and scale of the first norm, then of the second."""
        shift1, scale1, shift2, scale2 = modulation.chunk(4, 1)
        y = torch.relu(self.model[0](x, shift1, scale1))
        return x + self.model[1](y, shift2, scale2)


class Blocks(nn.Module):
    """Residual blocks, named as released."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.model = nn.ModuleList([kind() for _ in range(BLOCKS)])


class Content(nn.Module):
    """7×7, two 4×4 of stride 2, four residual blocks, all with instance norm: (n, 3, h, w) → (n, 256, h/4, w/4)."""

    def __init__(self) -> None:
        super().__init__()
        sizes = ((3, 64, 7, 1, 3), (64, 128, 4, 2, 1), (128, WIDE, 4, 2, 1))
        self.model = nn.ModuleList([*(Conv(*s, InstanceNorm(), nn.ReLU()) for s in sizes), Blocks(Residual)])

    @property
    def levels(self) -> list[nn.Module]:
        """The modules in order."""
        return [*self.model[:3], *cast(Blocks, self.model[3]).model]

    def forward(self, x: Tensor) -> Tensor:
        """The content."""
        for level in self.levels:
            x = level(x)
        return x


class Style(nn.Module):
    """7×7, four 4×4 of stride 2, global average pooling, 1×1: (n, 3, h, w) → (n, 8)."""

    def __init__(self, style: int) -> None:
        super().__init__()
        sizes = (
            (3, 64, 7, 1, 3),
            (64, 128, 4, 2, 1),
            (128, WIDE, 4, 2, 1),
            (WIDE, WIDE, 4, 2, 1),
            (WIDE, WIDE, 4, 2, 1),
        )
        convolutions = [Conv(*s, nn.Identity(), nn.ReLU()) for s in sizes]
        self.model = nn.Sequential(*convolutions, nn.AdaptiveAvgPool2d(1), nn.Conv2d(WIDE, style, 1))

    def forward(self, x: Tensor) -> Tensor:
        """The style."""
        return self.model(x).flatten(1)


class _Linear(nn.Module):
    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.fc = nn.Linear(inside, outside)

    def forward(self, x: Tensor) -> Tensor:
        """(n, inside) → (n, outside)."""
        return self.fc(x)


class Mlp(nn.Module):
    """Three linear layers with ReLUs between them."""

    def __init__(self, inside: int, outside: int) -> None:
        super().__init__()
        self.model = nn.ModuleList([_Linear(inside, 256), _Linear(256, 256), _Linear(256, outside)])

    def forward(self, x: Tensor) -> Tensor:
        """(n, inside) → (n, outside)."""
        return self.model[2](torch.relu(self.model[1](torch.relu(self.model[0](x)))))


class Decoder(nn.Module):
    """Four AdaIN residual blocks, two of (×2, 5×5, layer norm), 7×7 with tanh."""

    def __init__(self) -> None:
        super().__init__()
        ups = [Conv(a, a // 2, 5, 1, 2, LayerNorm(a // 2), nn.ReLU()) for a in (WIDE, WIDE // 2)]
        last = Conv(WIDE // 4, 3, 7, 1, 3, nn.Identity(), nn.Tanh())
        self.model = nn.ModuleList(
            [Blocks(AdaptedResidual), nn.Upsample(scale_factor=2), ups[0], nn.Upsample(scale_factor=2), ups[1], last]
        )

    @property
    def levels(self) -> list[nn.Module]:
        """The layers in order, without those that only upsample."""
        return [*cast(Blocks, self.model[0]).model, self.model[2], self.model[4], self.model[5]]

    def forward(self, x: Tensor, modulation: Tensor) -> Tensor:
        """Content (n, 256, h, w) and shifts and scales of the norms → (n, 3, 4h, 4w)."""
        for block, own in zip(cast(Blocks, self.model[0]).model, modulation.chunk(BLOCKS, 1), strict=True):
            x = block(x, own)
        for level in self.model[1:]:
            x = level(x)
        return x


class Layer(nn.Module):
    """Decodes content and style to a layer: `r` and `s` of the checkpoint, without their encoders."""

    def __init__(self, style: int) -> None:
        super().__init__()
        self.dec, self.mlp = Decoder(), Mlp(style, 4 * BLOCKS * WIDE)

    def forward(self, content: Tensor, style: Tensor) -> Tensor:
        """(n, 3, h, w) in [−1, 1]."""
        return self.dec(content, self.mlp(style))


class Usi3d(nn.Module):
    """Images (n, 3, h, w) in [−1, 1] → reflectance and shading in [−1, 1], gamma-encoded, three channels each."""

    def __init__(self, style: int = 8) -> None:
        super().__init__()
        self.i = nn.ModuleDict({"enc_style": Style(style), "enc_content": Content()})
        self.fs = nn.ModuleDict({"mlp": Mlp(style, 2 * style)})
        self.r, self.s = Layer(style), Layer(style)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """The layers by branch."""
        content, styles = self.i["enc_content"](x), self.fs["mlp"](self.i["enc_style"](x))
        reflectance, shading = styles.chunk(2, 1)
        return {"reflectance": self.r(content, reflectance), "shading": self.s(content, shading)}

    def component(self, branch: str, output: Tensor, image: Tensor) -> Tensor:
        """The layer in linear light: ((output + 1)/2)^2.2."""
        return unit(output) ** (1 / GAMMA)

    def place(self, branch: str, layer: str) -> nn.Module:
        """`content1` is the finest, `decoder7` gives the layer before it is decoded to linear light."""
        if layer.startswith("content"):
            return cast(Content, self.i["enc_content"]).levels[int(layer[-1]) - 1]
        return (self.r if branch == "reflectance" else self.s).dec.levels[int(layer[-1]) - 1]
