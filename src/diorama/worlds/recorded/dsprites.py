"""dSprites: the original file of 737,280 sprites with their factors (Matthey et al. 2017; recorded)."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np

from diorama.core.capabilities import Levelled, Listed
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene, rng
from diorama.io.saved import damage_named, read_archive, read_header

NAMES = ("color", "shape", "scale", "orientation", "x", "y")
_SHAPES = {1.0: "square", 2.0: "ellipse", 3.0: "heart"}
_CHUNK = 4096


@dataclass(frozen=True)
class Dsprites(Listed, Levelled):
    """Rows of the published file as scenes.

    npz  the published file: arrays `imgs` (n, 64, 64) of 0 and 1, and `latents_values` (n, 6)

    The i-th scene is the i-th of a fixed shuffle, named by its row. Colour is constant and no factor. `do` looks up the row
    with other values. Images are kept in memory as bits: 377 MB for the whole set. The file's pickled metadata is not read.
    """

    cite = ("matthey2017",)
    located = ("npz",)
    factors: ClassVar[dict[str, str]] = dict.fromkeys(NAMES[1:], "one of the recorded values")
    truth: ClassVar[tuple[str, ...]] = ("factors",)
    size = 64

    npz: str

    def __post_init__(self) -> None:
        if not Path(self.npz).expanduser().is_file():
            raise InputError(f"dsprites: there is no file {self.npz!r}; npz is dsprites_ndarray_….npz of the data set")
        latents = self._latents
        if latents.shape[1:] != (len(NAMES),) or not len(latents) or latents.dtype.kind != "f":
            raise InputError(
                f"dsprites: latents_values in {self.npz} are {latents.dtype} {latents.shape}, expected (n, 6)"
            )
        if not np.isfinite(latents).all() or not np.isin(latents[:, 1], list(_SHAPES)).all():
            raise InputError(
                f"dsprites: latents_values in {self.npz} are not finite, or name a shape other than 1, 2, 3"
            )

    def fingerprint(self) -> str:
        """The checksums of the images and latents from the archive's directory."""
        with self._open() as file:
            listed = {i.filename: i.CRC for i in file.infolist()}
        return "-".join(f"{listed.get(f'{name}.npy', 0):08x}" for name in ("imgs", "latents_values"))

    def _open(self) -> zipfile.ZipFile:
        with damage_named(self.npz):
            return zipfile.ZipFile(Path(self.npz).expanduser())

    @cached_property
    def _latents(self) -> np.ndarray:
        arrays = read_archive(Path(self.npz).expanduser(), ["latents_values"])
        if not arrays:
            raise InputError(f"dsprites: {self.npz} has no array 'latents_values': is it the published file?")
        return arrays["latents_values"]

    @cached_property
    def _packed(self) -> np.ndarray:
        """Every image as bits (n, 512), read in pieces: the whole would take 3 GB."""
        with damage_named(self.npz), self._open() as file, _member(file, "imgs", self.npz) as stream:
            shape = _shape(stream, self.npz)
            if len(shape) != 3 or shape[1:] != (64, 64) or shape[0] != len(self._latents):
                raise InputError(
                    f"dsprites: imgs in {self.npz} has shape {shape}, expected ({len(self._latents)}, 64, 64)"
                )
            pieces = [_bits(stream, min(_CHUNK, shape[0] - i)) for i in range(0, shape[0], _CHUNK)]
        return np.concatenate(pieces)

    @cached_property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The recorded values of every factor."""
        values = {name: np.unique(self._latents[:, k]).tolist() for k, name in enumerate(NAMES) if k}
        return {name: tuple(map(_SHAPES.get, v)) if name == "shape" else tuple(v) for name, v in values.items()}

    @cached_property
    def _order(self) -> np.ndarray:
        return rng("sprites", len(self._latents)).permutation(len(self._latents))

    @cached_property
    def _rows(self) -> dict[tuple[float, ...], int]:
        return {tuple(row[1:]): i for i, row in enumerate(self._latents.tolist())}

    def __len__(self) -> int:
        return len(self._latents)

    def scene(self, index: int) -> tuple[str, Scene]:
        """The index-th scene of the shuffle, named by its row."""
        row = int(self._order[index])
        values = dict(zip(NAMES[1:], self._latents[row, 1:].tolist(), strict=True))
        return f"{row:06d}", Scene("dsprites", {**values, "shape": _SHAPES[values["shape"]], "row": row})

    def do(self, scene: Scene, **changes: Any) -> Scene:
        """The recorded scene that has other values of some factors."""
        unknown = sorted(set(changes) - set(self.factors))
        if unknown:
            raise InputError(f"dsprites cannot change {unknown[0]!r}; there are {', '.join(self.factors)}")
        wanted = {**scene.params, **changes}
        code = {name: number for number, name in _SHAPES.items()}.get(wanted["shape"], 0.0)
        row = self._rows.get((code, *(wanted[name] for name in NAMES[2:])))
        if row is None:
            values = ", ".join(f"{name}={value!r}" for name, value in changes.items())
            raise InputError(f"dsprites: no recorded image has {values} with the scene's other values (see levels)")
        return scene.changed({**changes, "row": row})

    def render(self, scenes: Sequence[Scene]) -> list[Frame]:
        """Read the images of some scenes."""
        bits = self._packed[[s.params["row"] for s in scenes]]
        images = np.unpackbits(bits, axis=1).reshape(-1, 64, 64, 1).astype(np.float32).repeat(3, axis=3)
        truth = [{"factors": {name: s.params[name] for name in NAMES[1:]}} for s in scenes]
        return [Frame(s, image, "srgb", t) for s, image, t in zip(scenes, images, truth, strict=True)]


def _member(file: zipfile.ZipFile, name: str, where: str) -> IO[bytes]:
    try:
        return file.open(f"{name}.npy")
    except KeyError:
        raise InputError(f"dsprites: {where} has no array {name!r}: is it the published file?") from None


def _shape(stream: IO[bytes], where: str) -> tuple[int, ...]:
    """The shape of an uint8 array whose bytes follow."""
    shape, fortran, kind = read_header(stream, f"imgs in {where}")
    if fortran or kind != np.uint8:
        raise InputError(f"dsprites: imgs are {kind}, expected uint8 in rows")
    return shape


def _bits(stream: IO[bytes], count: int) -> np.ndarray:
    data = stream.read(count * 64 * 64)
    if len(data) < count * 64 * 64:
        raise InputError("dsprites: imgs end early: fetch the file again")
    images = np.frombuffer(data, np.uint8).reshape(count, -1)
    if images.max(initial=0) > 1:
        raise InputError(f"dsprites: imgs hold {int(images.max())}, expected 0 and 1")
    return np.packbits(images, axis=1)
