"""The variational autoencoder of Burgess et al. 2018 with weights of your own, or published ones for dSprites."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from diorama.core import device
from diorama.core.contracts import Decoding
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.guard import attempt
from diorama.io.digests import file_digest
from diorama.io.images import resize

if TYPE_CHECKING:
    from diorama.methods.represent.burgess_network import Autoencoder


@dataclass(frozen=True)
class BurgessVae(Decoding):
    """Codes are the means of q(z|x).

    checkpoint  plain state dict: .safetensors, or a .pt file without code in it; None for an untrained network, a
                control that scores above chance on several metrics
    seed        seed of the untrained weights

    The eight networks of github.com/YannDubs/disentangling-vae (VAE, β-VAE, FactorVAE, β-TCVAE on dSprites) load as
    they are. Latents, channels and the side of the images (64 or 32) are read from the weights. Larger images are resized
    to that square by area, as the CANDLE paper does with its 320 × 240 pixels.
    """

    cite: ClassVar[tuple[str, ...]] = ("burgess2018",)
    located = ("checkpoint",)

    checkpoint: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.checkpoint is not None and not Path(self.checkpoint).expanduser().is_file():
            raise InputError(f"burgess_vae: there is no checkpoint {self.checkpoint!r}")

    @property
    def file(self) -> Path | None:
        """The checkpoint in use; None for untrained weights."""
        return Path(self.checkpoint).expanduser() if self.checkpoint else None

    def fingerprint(self) -> str:
        """The digest of the weights."""
        return file_digest(self.file) if self.file else ""

    @cached_property
    def module(self) -> "Autoencoder":
        """The network in eval mode; built at first use."""
        try:
            import torch
        except ImportError as error:
            raise InputError("burgess_vae needs torch: pip install 'diorama[torch]'") from error
        from diorama.methods.represent.burgess_network import Autoencoder

        if self.file is None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                net = Autoencoder()
        else:
            net = _loaded(self.file)
        return net.eval().requires_grad_(False).to(device.current())

    @property
    def channels(self) -> int:
        """1 for gray networks, 3 for coloured ones."""
        return int(self.module.encoder.conv1.weight.shape[1])

    @property
    def side(self) -> int:
        """The side of its input and output images, in pixels."""
        return 32 if self.module.encoder.conv_64 is None else 64

    def tensor(self, frames: Sequence[Frame]) -> Any:
        """Frames as (n, channels, side, side) on the network's device."""
        import torch

        images = np.stack([squeezed(frame.srgb(), self.side) for frame in frames])
        images = images.mean(axis=3, keepdims=True) if self.channels == 1 else images
        return torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).to(next(self.module.parameters()).device)

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """Means (n, latents)."""
        x = self.tensor(frames)
        import torch

        with torch.inference_mode():
            return self.module.encoder(x)[0].cpu().numpy().astype(np.float64)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Images (n, side, side, 3) in [0, 1]."""
        return np.concatenate(list(self._decoded(codes)))

    def _decoded(self, codes: np.ndarray) -> Iterator[np.ndarray]:
        import torch

        place = next(self.module.parameters()).device
        size = device.chunk(place.type)
        for start in range(0, len(codes), size):
            z = torch.from_numpy(np.asarray(codes[start : start + size], np.float32)).to(place)
            with torch.inference_mode():
                images = torch.sigmoid(self.module.decoder(z)).cpu().numpy().transpose(0, 2, 3, 1)
            yield images if images.shape[3] == 3 else images.repeat(3, axis=3)


def squeezed(image: np.ndarray, side: int) -> np.ndarray:
    """An image (h, w, 3) resized to a square of a smaller side, by area; a smaller image is refused."""
    high, wide = image.shape[:2]
    if min(high, wide) < side:
        raise InputError(f"burgess_vae takes images of at least {side}×{side} pixels, not {wide}×{high}")
    return image if (high, wide) == (side, side) else resize(image, side, side)


def _loaded(checkpoint: Path) -> "Autoencoder":
    from diorama.methods.represent.burgess_network import Autoencoder

    weights = _weights(checkpoint)
    try:
        latents, channels = weights["decoder.lin1.weight"].shape[1], weights["encoder.conv1.weight"].shape[1]
        net = Autoencoder(latents, channels, 64 if "encoder.conv_64.weight" in weights else 32)
        net.load_state_dict(weights)
    except (KeyError, AttributeError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise InputError(f"burgess_vae: {checkpoint} holds weights of another network: {reason}") from error
    return net


def _weights(path: Path) -> dict[str, Any]:
    import torch
    from safetensors.torch import load_file

    plain = partial(torch.load, path, "cpu", weights_only=True)
    outcome = attempt(partial(load_file, path) if path.suffix == ".safetensors" else plain)
    if outcome.error:
        reason = outcome.reason.partition(".")[0]
        raise InputError(f"burgess_vae: {path} cannot be read as plain weights: {reason}") from outcome.error
    return outcome.value
