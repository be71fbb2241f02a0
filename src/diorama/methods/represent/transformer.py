"""Any scikit-learn transformer as an encoder: FastICA, NMF, KernelPCA …, or a class of your own with fit and transform."""

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from diorama.core.contracts import Encoder, Fitting
from diorama.core.errors import InputError, did_you_mean
from diorama.core.frame import Frame
from diorama.methods.represent.pixels import same_length, training_vectors, vectors


@dataclass(frozen=True)
class Transformer(Fitting, Encoder):
    """An estimator with fit and transform, on images as flat vectors.

    name       class of sklearn.decomposition, or `package.module:Class`
    options    arguments of the class
    fitted_on  number of images of other draws that it is fitted on
    images     images of a fit; set by the run, not by the user

    A fit is stored as its images: estimators could only be stored as pickles, so they are fitted again, with random_state 0
    if they take one.
    """

    name: str = "PCA"
    options: dict[str, Any] | None = None
    fitted_on: int = 500
    images: np.ndarray | None = None

    def __post_init__(self) -> None:
        self._estimator()

    def _estimator(self) -> Any:
        module, _, name = self.name.rpartition(":")
        try:
            library = importlib.import_module(module or "sklearn.decomposition")
        except ImportError as error:
            raise InputError(f"transformer: {error}: pip install 'diorama[represent]' for scikit-learn") from error
        estimator_class = getattr(library, name, None)
        if estimator_class is None or not hasattr(estimator_class, "transform"):
            known = [n for n in vars(library) if hasattr(getattr(library, n), "transform")]
            raise InputError(f"transformer: {name!r} is no transformer; {did_you_mean(name, known)}")
        options = dict(self.options or {})
        try:
            estimator = estimator_class(**options)
        except TypeError as error:
            raise InputError(f"transformer: {error}") from error
        if "random_state" in getattr(estimator, "get_params", dict)() and "random_state" not in options:
            estimator.set_params(random_state=0)
        return estimator

    def fit(self, examples: Iterable[Sequence[Frame]], objective: Any) -> dict[str, np.ndarray]:
        """The images to fit on."""
        return {"images": training_vectors(examples, self.fitted_on).astype(np.float32)}

    def fitted(self, fit: dict[str, np.ndarray]) -> "Transformer":
        """The encoder with its images."""
        return Transformer(self.name, self.options, self.fitted_on, fit["images"])

    @cached_property
    def _fitted(self) -> Any:
        if self.images is None:
            raise InputError("transformer is fitted on other draws by a run: it cannot encode before")
        return self._estimator().fit(self.images.astype(np.float64))

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """What `transform` gives, (n, latents)."""
        assert self.images is not None or self._fitted
        return np.asarray(self._fitted.transform(same_length(vectors(frames), self.images.shape[1])))  # type: ignore[union-attr]
