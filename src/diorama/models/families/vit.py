"""Vision transformer (Dosovitskiy et al. 2021): patches as tokens, a class token, learnt positions, blocks of attention.

Names of weights are those of timm and of the network that FunnyBirds took from Chefer et al. (2021). As in the latter, ε is
1e-6 in the blocks and 1e-5 in the last normalisation; timm has 1e-6 everywhere.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """softmax(q·kᵀ / √d)·v in several heads, then a linear layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (n, t, width) → the same shape."""
        q, k, v = self.qkv(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.proj(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (n, t, width) → the same shape."""
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    """x + attention(norm x), then x + mlp(norm x)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-6), Attention(width, heads)
        self.norm2, self.mlp = nn.LayerNorm(width, eps=1e-6), Mlp(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (n, t, width) → the same shape."""
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Patches(nn.Module):
    """Every square patch as a token: one convolution (`proj`), or `stem` convolutions of stride 2 before it."""

    def __init__(self, width: int, patch: int, stem: int) -> None:
        super().__init__()
        convolutions: list[nn.Module] = []
        channels = 3
        for i in range(stem):
            outside = width // 2 ** (stem - 1 - i)
            conv = nn.Conv2d(channels, outside, 3, 2, 1, bias=False)
            convolutions += [conv, nn.BatchNorm2d(outside), nn.ReLU()]
            channels = outside
        self.stem = nn.Sequential(*convolutions)
        side = patch // 2**stem
        self.proj = nn.Conv2d(channels, width, side, side)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, h, w) → (n, tokens, width)."""
        return self.proj(self.stem(x)).flatten(2).transpose(1, 2)


class VisionTransformer(nn.Module):
    """Patches, class token and positions, `depth` blocks, the class token's features, a linear head.

    classes  number of logits
    size     side of the images (224)
    patch    side of a patch (16)
    width    features of a token (768)
    depth    number of blocks (12)
    heads    number of attention heads (12)
    stem     number of convolutions of stride 2 before the patches are cut (0)
    """

    def __init__(
        self,
        classes: int,
        size: int = 224,
        patch: int = 16,
        width: int = 768,
        depth: int = 12,
        heads: int = 12,
        stem: int = 0,
    ) -> None:
        super().__init__()
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (size // patch) ** 2 + 1, width))
        self.patch_embed = Patches(width, patch, stem)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """The logits."""
        tokens = self.patch_embed(x)
        tokens = torch.cat([self.cls_token.expand(len(tokens), -1, -1), tokens], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(tokens))[:, 0])
