"""Latent traversals: decodes an image's code while one latent at a time is moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diorama.adapt.live import component
from diorama.core.contracts import Decoding, Encoder, Fitting
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.spec import parse
from diorama.data.figures import Drawn, blank, short
from diorama.data.views import WorldView, numbered, world

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The most latents that are drawn, and the number of frames for the range of each latent.
SHOWN, FRAMES = 10, 256
#: A latent moves between these quantiles of its values.
ENDS = (0.025, 0.975)


@dataclass(frozen=True, eq=False, repr=False)
class Traversal(Drawn):
    """`images` (latents, steps, h, w, 3) are decoded with one latent at each of `values` (latents, steps).

    The others stay as in `code`, that of `frame`. `change` (latents,) is the mean absolute change of a pixel from the first
    to the last step; a latent that does nothing has about 0. `latents` are their numbers, those that change most first.
    """

    encoder: str
    world: str
    frame: Frame
    code: np.ndarray
    decoded: np.ndarray
    latents: tuple[int, ...]
    values: np.ndarray
    images: np.ndarray
    change: np.ndarray

    def __repr__(self) -> str:
        lead = ", ".join(f"{i} ({c:.3f})" for i, c in zip(self.latents[:3], self.change[:3], strict=False))
        return f"<traversal of {self.encoder} on {self.world}: {len(self.latents)} latents; most change: {lead}>"

    def figure(self) -> Figure:
        """A row of pictures for each latent; the first column has the image and its reconstruction."""
        rows, columns = self.images.shape[:2]
        drawn = blank(0.85 * (columns + 1) + 0.9, 0.85 * max(rows, 2) + 0.4)
        places = drawn.subplots(max(rows, 2), columns + 1, squeeze=False)
        for axes in places.ravel():
            axes.axis("off")
        first = {"image": self.frame.srgb(), "decoded": self.decoded}
        for axes, (title, image) in zip(places[:, 0], first.items(), strict=False):
            axes.imshow(image, interpolation="nearest")
            axes.set_title(title, fontsize=8)
        for r in range(rows):
            for c in range(columns):
                axes = places[r, c + 1]
                axes.imshow(np.clip(self.images[r, c], 0, 1), interpolation="nearest")
                axes.set_title(f"{self.values[r, c] + 0.0:.1f}".replace("-0.0", "0.0"), fontsize=6, pad=2, color="0.35")
            left = places[r, 1]
            left.text(-0.12, 0.5, f"z{self.latents[r]}", transform=left.transAxes, ha="right", va="center", fontsize=8)
        title = f"{short(self.encoder)} on {short(self.world)}: one latent at a time, strongest first"
        drawn.suptitle(title, fontsize=9)
        return drawn


def traverse(
    encoder: Any, on: Any = "sprites", scene: int = 0, steps: int = 7, latents: Any = None, seed: int = 0
) -> Traversal:
    """Move one latent at a time over its range and decode: traverse("beta_vae", "sprites").

    `encoder` is an encoder that can decode, or its spec; if it has to be fitted, it is fitted on frames of the world. `on`
    is a world or its spec, `latents` the indices of the latents to show (None: the ten that change the picture most).
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 2:
        raise InputError(f"traverse: steps={steps!r}: give at least 2")
    view = world(on)
    made = component("method", encoder).on(parse(view.name).name)
    method, name = made.object.for_track("represent"), made.label
    shown = numbered(view, scene, seed)[1]
    if not isinstance(method, Encoder) or not (ready := prepared(method, view, name, scene, seed)).decodes:
        raise InputError(f"traverse: {name} cannot decode: give an encoder with encode and decode, e.g. beta_vae")
    return moved(ready, view.name, view.render(shown), steps, latents)


@dataclass(frozen=True, eq=False)
class Prepared:
    """An encoder, fitted if necessary, and the codes (n, latents) of frames, for the range of each latent."""

    name: str
    method: Any
    codes: np.ndarray

    @property
    def decodes(self) -> bool:
        """Whether it can decode."""
        return isinstance(self.method, Decoding)


def prepared(method: Any, view: WorldView, name: str, scene: int = 0, seed: int = 0) -> Prepared:
    """The encoder with the codes of the first frames of a world, with that of `scene`; it is fitted on them if necessary."""
    count, length = max(FRAMES, scene + 1), view.world.length
    frames = list(view.frames(count if length is None else min(count, length), seed))
    method = method.fitted(method.fit(([f] for f in frames), None)) if isinstance(method, Fitting) else method
    return Prepared(name, method, np.asarray(method.encode([frame.blind() for frame in frames]), np.float64))


def moved(ready: Prepared, on: str, frame: Frame, steps: int, latents: Any) -> Traversal:
    """The traversal of one frame: each latent moved over its range and decoded."""
    method, count = ready.method, ready.codes.shape[1]
    code = np.asarray(method.encode([frame.blind()]), np.float64)[0]
    low, high = np.quantile(ready.codes, ENDS, axis=0)
    values = np.linspace(low, high, steps).T
    images = np.stack([method.decode(_with_latent(code, i, values[i])) for i in range(count)])
    change = np.abs(images[:, -1] - images[:, 0]).mean(axis=(1, 2, 3))
    shown = _shown(latents, change)
    picked = [values[shown], images[shown], change[shown]]
    return Traversal(ready.name, on, frame, code, method.decode(code[None])[0], tuple(shown), *picked)


def _with_latent(code: np.ndarray, latent: int, values: np.ndarray) -> np.ndarray:
    """Copies of a code with a latent set to each of the values."""
    moved = np.repeat(code[None], len(values), axis=0)
    moved[:, latent] = values
    return moved


def _shown(asked: Any, change: np.ndarray) -> list[int]:
    if asked is None:
        return np.argsort(-change, kind="stable")[:SHOWN].tolist()
    found = [int(i) for i in asked]
    bad = [i for i in found if not 0 <= i < len(change)]
    if bad or not found:
        raise InputError(f"traverse: latents={asked!r}: the encoder has latents 0 to {len(change) - 1}")
    return found
