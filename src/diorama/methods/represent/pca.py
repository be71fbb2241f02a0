"""PCA: the coordinates of an image along the directions of largest variance; a linear encoder with its decoder."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diorama.core.bounds import Count, Several
from diorama.core.contracts import Decoding, Fitting
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.methods.represent.pixels import same_length, training_vectors, vectors


@dataclass(frozen=True)
class Pca(Fitting, Decoding):
    """z = (x − mean)·V with the first right singular vectors V of images of other draws.

    latents    number of latents
    fitted_on  number of images of other draws that it is fitted on
    state      mean and V of a fit; set by the run, not by the user
    """

    latents: Count = 10
    fitted_on: Several = 1000
    state: dict[str, np.ndarray] | None = None

    def fit(self, examples: Iterable[Sequence[Frame]], objective: Any) -> dict[str, np.ndarray]:
        """Mean and directions, each with its largest entry positive."""
        x = training_vectors(examples, self.fitted_on)
        mean = x.mean(axis=0)
        _, _, rows = np.linalg.svd(x - mean, full_matrices=False)
        directions = rows[: self.latents]
        signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
        return {"mean": mean, "directions": directions * signs[:, None]}

    def fitted(self, fit: dict[str, np.ndarray]) -> "Pca":
        """The encoder with its directions."""
        return replace(self, state=fit)

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """Coordinates (n, latents)."""
        state = self._state()
        return (same_length(vectors(frames), len(state["mean"])) - state["mean"]) @ state["directions"].T

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Images (n, h, w, 3) in [0, 1]; square ones."""
        state = self._state()
        flat = np.clip(codes @ state["directions"] + state["mean"], 0, 1)
        channels = 1 if np.sqrt(flat.shape[1]) % 1 == 0 else 3
        side = int(np.sqrt(flat.shape[1] // channels))
        return flat.reshape(len(flat), side, side, channels).repeat(3 // channels, axis=3).astype(np.float32)

    def _state(self) -> dict[str, np.ndarray]:
        if self.state is None:
            raise InputError("pca is fitted on other draws by a run: it cannot encode before")
        return self.state
