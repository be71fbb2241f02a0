"""The autoencoder of Burgess et al. 2018 for images of 64 or 32 pixels, with the parameter names of published checkpoints.

In passes of mixed precision the dense layers stay in float32: they cost little, and rounding a mean to eight bits moves it
by a good part of a narrow latent's standard deviation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

CHANNELS, HIDDEN, SMALL = 32, 256, 4


class Encoder(nn.Module):
    """Four convolutions of 4 × 4 with stride 2, two dense layers; the mean and log variance of each latent alternate."""

    def __init__(self, latents: int, channels: int, side: int = 64) -> None:
        super().__init__()
        self.latents = latents
        self.conv1 = nn.Conv2d(channels, CHANNELS, 4, 2, 1)
        self.conv2 = nn.Conv2d(CHANNELS, CHANNELS, 4, 2, 1)
        self.conv3 = nn.Conv2d(CHANNELS, CHANNELS, 4, 2, 1)
        self.conv_64 = nn.Conv2d(CHANNELS, CHANNELS, 4, 2, 1) if side == 64 else None
        self.lin1 = nn.Linear(CHANNELS * SMALL * SMALL, HIDDEN)
        self.lin2 = nn.Linear(HIDDEN, HIDDEN)
        self.mu_logvar_gen = nn.Linear(HIDDEN, 2 * latents)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(n, channels, side, side) in [0, 1] → mean and log variance (n, latents)."""
        for layer in (self.conv1, self.conv2, self.conv3, self.conv_64):
            x = x if layer is None else torch.relu(layer(x))
        with torch.autocast(x.device.type, enabled=False):
            x = x.flatten(1).float()
            for dense in (self.lin1, self.lin2):
                x = torch.relu(dense(x))
            mean, log_variance = self.mu_logvar_gen(x).view(-1, self.latents, 2).unbind(-1)
        return mean, log_variance


class Decoder(nn.Module):
    """The layers of the encoder in reverse order, convolutions transposed."""

    def __init__(self, latents: int, channels: int, side: int = 64) -> None:
        super().__init__()
        self.lin1 = nn.Linear(latents, HIDDEN)
        self.lin2 = nn.Linear(HIDDEN, HIDDEN)
        self.lin3 = nn.Linear(HIDDEN, CHANNELS * SMALL * SMALL)
        self.convT_64 = nn.ConvTranspose2d(CHANNELS, CHANNELS, 4, 2, 1) if side == 64 else None
        self.convT1 = nn.ConvTranspose2d(CHANNELS, CHANNELS, 4, 2, 1)
        self.convT2 = nn.ConvTranspose2d(CHANNELS, CHANNELS, 4, 2, 1)
        self.convT3 = nn.ConvTranspose2d(CHANNELS, channels, 4, 2, 1)

    def forward(self, z: Tensor) -> Tensor:
        """(n, latents) → logits of pixels (n, channels, side, side)."""
        with torch.autocast(z.device.type, enabled=False):
            z = z.float()
            for dense in (self.lin1, self.lin2, self.lin3):
                z = torch.relu(dense(z))
        x = z.view(-1, CHANNELS, SMALL, SMALL)
        for layer in (self.convT_64, self.convT1, self.convT2):
            x = x if layer is None else torch.relu(layer(x))
        return self.convT3(x)


class Autoencoder(nn.Module):
    """Encoder and decoder of images of `side` 64 or 32; for 32 one convolution less on either side."""

    def __init__(self, latents: int = 10, channels: int = 1, side: int = 64) -> None:
        super().__init__()
        self.encoder = Encoder(latents, channels, side)
        self.decoder = Decoder(latents, channels, side)

    def forward(self, x: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of the reconstruction, mean and log variance; with standard normal `noise` the code is sampled."""
        mean, log_variance = self.encoder(x)
        z = mean if noise is None else mean + noise * torch.exp(log_variance / 2)
        return self.decoder(z), mean, log_variance


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(q(z|x) ‖ N(0, 1)) = ½ Σ (μ² + σ² − log σ² − 1), for every image (n,)."""
    return divergences(mean, log_variance).sum(1)


def divergences(mean: Tensor, log_variance: Tensor) -> Tensor:
    """The KL of each latent, for every image (n, latents)."""
    return 0.5 * (mean**2 + log_variance.exp() - log_variance - 1)
