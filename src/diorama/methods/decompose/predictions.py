"""Saved predictions: reflectance and shading that were computed elsewhere, read from a folder by case."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from diorama.core.answers import Layers
from diorama.core.contracts import Decomposer, Saved
from diorama.core.errors import InputError
from diorama.core.frame import Frame, channel_mean, linear_to_srgb, residual, srgb_to_linear
from diorama.core.guard import Note
from diorama.io.digests import files_digest
from diorama.io.names import case_path
from diorama.io.saved import ENDINGS, read_archive, read_array


@dataclass(frozen=True, slots=True)
class Predictions(Saved):
    """`<case>.npz` with arrays `reflectance` and `shading`, or `<case>/reflectance.npy|png|exr` and `<case>/shading.…`.

    folder    where the files are; `diorama render WORLD --layout flat` writes the images to predict from, with the
              names of the cases
    encoding  how the files are encoded; scores need linear light
    divide    takes a missing layer as the image over the other one

    A protocol that asks for further lights of a case finds light 3 as `<case>/light03.npz` or `<case>/light03/…`.

    Where R·S explains the image clearly better in the other encoding, every row says so: confusing sRGB and linear
    light is the commonest reason why published numbers cannot be reproduced.
    """

    track, example = "decompose", Decomposer.example
    located = ("folder",)

    folder: str
    encoding: Literal["linear", "srgb"] = "linear"
    divide: bool = False

    def __post_init__(self) -> None:
        if not Path(self.folder).expanduser().is_dir():
            raise InputError(f"predictions: there is no folder {self.folder!r}")

    def fingerprint(self) -> str:
        """The digest of every file in the folder."""
        base = Path(self.folder).expanduser()
        return files_digest((p for p in base.rglob("*") if p.suffix in (*ENDINGS, ".npz")), base)

    def load(self, case: str, frame: Frame, target: int | None) -> Layers:
        """The saved layers of a case."""
        light = frame.scene.params.get("light")
        if isinstance(light, int) and light and not case.endswith(f"_light{light - 1}"):  # a further view of the case
            case = f"{case}/light{light:02d}"
        saved = {name: self._layer(case, name) for name in ("reflectance", "shading")}
        missing = [name for name, layer in saved.items() if layer is None]
        if missing and (len(missing) == 2 or not self.divide):
            raise InputError(
                f"no {missing[0]} for case {case!r} in {self.folder}: save {case}.npz or {case}/{missing[0]}.npy"
            )
        if missing:
            (known,) = (layer for layer in saved.values() if layer is not None)
            saved[missing[0]] = _divide(frame, known)
        layers = Layers(saved["reflectance"], saved["shading"])  # type: ignore[arg-type]
        if not missing:
            _warn_of_encoding(frame, layers, self.encoding)
        return layers

    def _layer(self, case: str, name: str) -> np.ndarray | None:
        base = Path(self.folder).expanduser()
        if (path := case_path(base, case, ".npz")).is_file():
            arrays = read_archive(path, [name])
            return self._decoded(arrays[name], path) if arrays else None
        for ending in ENDINGS:
            if (path := case_path(base, case) / f"{name}{ending}").is_file():
                return self._decoded(read_array(path), path)
        return None

    def _decoded(self, array: np.ndarray, path: Path) -> np.ndarray:
        if array.ndim == 2:
            array = array[:, :, None]
        if array.dtype.kind == "u":
            array = array.astype(np.float32) / np.iinfo(array.dtype).max
        if array.dtype.kind != "f":
            raise InputError(f"{path} holds {array.dtype}, expected floating point or unsigned integers")
        return srgb_to_linear(array) if self.encoding == "srgb" else array


def _warn_of_encoding(frame: Frame, layers: Layers, encoding: str) -> None:
    """Note a likely confusion: in the other encoding the product explains the image clearly better."""
    if layers.reflectance.shape[:2] != frame.mask.shape or layers.shading.shape[:2] != frame.mask.shape:
        return  # `check_answer` reports this
    other, recode = ("linear", linear_to_srgb) if encoding == "srgb" else ("srgb", srgb_to_linear)
    if encoding == "linear" and max(layers.reflectance.max(), layers.shading.max()) > 1.5:
        return  # values far above 1 are no screen values
    as_given = _unexplained(frame, layers)
    recoded = _unexplained(frame, Layers(*map(recode, (layers.reflectance, layers.shading))))
    if as_given > 0.1 and recoded < 0.5 * as_given:
        text = f"files look {other}-encoded, not {encoding}: R·S is off the image by {as_given:.0%}"
        warnings.warn(f"{text}, as {other} by {recoded:.0%}; try encoding={other}", Note, stacklevel=3)


def _unexplained(frame: Frame, layers: Layers) -> float:
    truth = {"mask": frame.mask, "reflectance": layers.reflectance, "shading": layers.shading}
    if not all(np.isfinite(layer).all() for layer in (layers.reflectance, layers.shading)):
        return 0.0  # `check_answer` reports this
    return residual(Frame(frame.scene, frame.image, frame.encoding, truth))


def _divide(frame: Frame, known: np.ndarray) -> np.ndarray:
    image = frame.linear() if known.shape[2] == 3 else channel_mean(frame.linear())[:, :, None]
    return np.where(known > 0, image / np.where(known > 0, known, 1), 0)
