"""Methods made from torch modules (encoders and decomposers) and from transformers of scikit-learn."""

import copy
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from diorama.adapt.classifying import prepared
from diorama.adapt.splitting import Splits, TorchMethod
from diorama.adapt.wrapping import has
from diorama.core.answers import as_array
from diorama.core.contracts import Decoding, Encoder, Fitting, Method
from diorama.core.errors import InputError
from diorama.core.frame import Frame

#: Images that a transformer is fitted on.
FITTED_ON = 500


class Network(Method):
    """A torch module as a method. It is copied, so that the user's stays unchanged."""

    def __init__(self, given: Any):
        self.given = given

    def for_track(self, track: str) -> Method:
        """The module as an encoder or a decomposer."""
        if track not in ("represent", "decompose"):
            raise InputError(f"a {type(self.given).__name__} is a network, not a method of {track}: give it as model=")
        module = prepared(copy.deepcopy(self.given))
        if track == "decompose":
            return Splits(module)
        return _TorchAutoencoder(module) if has(module, "encode", "decode") else _TorchEncoder(module)


class _TorchEncoder(TorchMethod, Encoder):
    """`module.encode(x)` if it has one, else `module(x)`: codes, or a tuple with their means first; x (n, 3, h, w) sRGB."""

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """The codes (n, latents)."""
        import torch

        with torch.no_grad():
            found = self._output(self._images([frame.srgb() for frame in frames]), _encode)
        first = found[0] if isinstance(found, tuple | list) else found
        return as_array(first).reshape(len(frames), -1)


def _encode(module: Any, x: Any) -> Any:
    return module.encode(x) if has(module, "encode") else module(x)


class _TorchAutoencoder(_TorchEncoder, Decoding):
    """An encoder that also has `module.decode(z)`: images (n, 3, h, w)."""

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """Images (n, h, w, 3)."""
        import torch

        with torch.no_grad():
            found = as_array(self.module.decode(self._tensor(codes.astype(np.float32))))
        images = found.transpose(0, 2, 3, 1)
        return images.repeat(3, axis=3) if images.shape[3] == 1 else images


def transformer(given: Any) -> Encoder:
    """A transformer of scikit-learn as an encoder of flat images; an unfitted one is fitted on other draws."""
    return _SklearnEncoder(given) if _is_fitted(given) else _UnfittedSklearn(given)


def _is_fitted(given: Any) -> bool:
    """scikit-learn's own rule: fitting leaves attributes whose names end with an underscore."""
    return any(name.endswith("_") and not name.startswith("__") for name in vars(given))


class _SklearnEncoder(Encoder):
    def __init__(self, given: Any):
        self.given = given

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """The result of `transform`, (n, latents)."""
        return np.asarray(self.given.transform(_flat(frames)))


class _UnfittedSklearn(Fitting, Encoder):
    """Stores the training images and fits again when loaded: fitted estimators could only be stored as pickles."""

    def __init__(self, given: Any):
        self.given = given

    def fit(self, examples: Iterator[list[Frame]], objective: Any) -> dict[str, np.ndarray]:
        """The images to fit on."""
        return {"images": _flat([views[0] for views in islice(examples, FITTED_ON)]).astype(np.float32)}

    def fitted(self, fit: dict[str, np.ndarray]) -> Encoder:
        """A copy of the transformer, fitted, with random_state 0 where it takes one and none is given."""
        made = copy.deepcopy(self.given)
        if has(made, "get_params", "set_params") and made.get_params().get("random_state", 0) is None:
            made.set_params(random_state=0)
        return _SklearnEncoder(made.fit(fit["images"].astype(np.float64)))

    def encode(self, frames: Sequence[Frame]) -> np.ndarray:
        """Refused: the run has to fit it first."""
        raise InputError("this transformer is not fitted: a run fits it on other draws before it encodes")


def _flat(frames: Sequence[Frame]) -> np.ndarray:
    """sRGB images as (n, pixels · 3) float64."""
    return np.stack([frame.srgb().ravel() for frame in frames]).astype(np.float64)
