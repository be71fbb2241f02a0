"""Any encoder, with or without a decoder, given as functions of arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.answers import as_array
from diorama.core.catalogue import find
from diorama.core.contracts import Decoding
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.keys import source_key


@dataclass(frozen=True)
class Pair(Decoding):
    """Two functions, on numpy arrays or torch tensors.

    encoder  `./file.py:function` or `package.module:function`: takes images (n, h, w, 3) float32 in [0, 1], gives codes
             (n, latents)
    decoder  written alike: takes codes, gives images (n, h, w) or (n, h, w, 3); None where there is none

    A class of your own with `encode(frames)` and `decode(codes)` needs no Pair.
    """

    encoder: str
    decoder: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("encoder", self.encoder), ("decoder", self.decoder)):
            if text is not None and ":" not in text:
                raise InputError(f"pair: {name}={text!r} should be ./file.py:function or package.module:function")
        _ = self._encode, self._decode

    def fingerprint(self) -> str:
        """The digest of the source of both functions' files, so that an edit makes a new key."""
        files = [find("method", text).path for text in (self.encoder, self.decoder) if text]
        return "-".join(str(source_key(Path(path))["source"]) for path in files)

    @cached_property
    def _encode(self) -> Callable[[np.ndarray], Any]:
        return find("method", self.encoder).target

    @cached_property
    def _decode(self) -> Callable[[np.ndarray], Any] | None:
        return find("method", self.decoder).target if self.decoder else None

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """The codes of some frames."""
        return as_array(self._encode(np.stack([frame.srgb() for frame in frames])))

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Images (n, h, w, 3) of some codes."""
        if self._decode is None:
            raise InputError("pair has no decoder: write pair(encoder=…, decoder=…)")
        images = as_array(self._decode(codes)).astype(np.float32)
        return images[..., None].repeat(3, axis=3) if images.ndim == 3 else images
