"""Any encoder, with or without a decoder, given as functions of arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from diorama.core.answers import as_array
from diorama.core.catalogue import Component
from diorama.core.contracts import Decoding, Method
from diorama.core.errors import InputError
from diorama.core.frame import Frame


@dataclass(frozen=True)
class Pair(Decoding):
    """Two functions, on numpy arrays or torch tensors.

    encoder  `./file.py:function` or `package.module:function`: takes images (n, h, w, 3) float32 in [0, 1], gives codes
             (n, latents)
    decoder  written like `encoder`: takes codes, gives images (n, h, w) or (n, h, w, 3); None if there is none

    A class of your own with `encode(frames)` and `decode(codes)` needs no Pair.
    """

    encoder: Component[Method]
    decoder: Component[Method] | None = None

    def __post_init__(self) -> None:
        for name, part in (("encoder", self.encoder), ("decoder", self.decoder)):
            if part is not None and not callable(part.made):
                raise InputError(f"pair: {name}={part.label} is no function: give ./file.py:function")

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """The codes of some frames."""
        return as_array(self.encoder.made(np.stack([frame.srgb() for frame in frames])))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Images (n, h, w, 3) of some codes."""
        if self.decoder is None:
            raise InputError("pair has no decoder: write pair(encoder=…, decoder=…)")
        images = as_array(self.decoder.made(codes)).astype(np.float32)
        return images[..., None].repeat(3, axis=3) if images.ndim == 3 else images
