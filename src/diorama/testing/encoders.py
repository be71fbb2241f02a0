"""Contract checks for encoders. Each takes the component and returns a problem in one line, or an empty string."""

from functools import lru_cache
from typing import Any

import numpy as np

from diorama.adapt import adapt
from diorama.core.catalogue import Component, build
from diorama.core.contracts import Decoding, Fitting
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.protocols.codes.draws import encode

_COUNT = 24


@lru_cache(maxsize=4)
def _staged(first: int) -> tuple[list[str], list[Frame]]:
    world = build("world", "sprites").object
    named = [world.scene(i) for i in range(first, first + _COUNT)]
    return [name for name, _ in named], world.render([scene for _, scene in named])


def _frames(first: int = 0) -> tuple[list[str], list[Frame]]:
    """Names, and frames in the form that a run gives to an encoder."""
    names, frames = _staged(first)
    return names, [frame.blind() for frame in frames]


def _prepared(component: Component) -> Any:
    """The method, fitted if necessary."""
    method = _weighted(component).object.for_track("represent")
    if isinstance(method, Fitting):
        learned = method.fitted(method.fit(iter([[frame] for frame in _staged(100)[1]]), None))
        return adapt("method", learned, component.name)
    return method


def _weighted(component: Component) -> Component:
    """The method with weights for sprites, or else for candle: the checks work with any picture."""
    try:
        return component.on("sprites")
    except InputError:
        return component.on("candle")


def answer_is_valid(component: Component) -> str:
    """Codes are finite, (frames, latents)."""
    codes = encode(_prepared(component), *_frames())
    return "" if np.isfinite(codes).all() else "the codes have values that are NaN or infinite"


def answers_the_same_twice(component: Component) -> str:
    """A code is a function of the frame, not of global random states or earlier frames."""
    method = _prepared(component)
    first = encode(method, *_frames())
    encode(method, *_frames(_COUNT))
    same = np.array_equal(first, encode(method, *_frames()))
    return "" if same else "the same frames gave two different codes: make randomness a function of (seed, scene)"


def codes_do_not_depend_on_their_neighbours(component: Component) -> str:
    """A frame's code does not depend on the other frames of the batch, up to rounding."""
    method, (names, frames) = _prepared(component), _frames()
    straight, turned = encode(method, names, frames), encode(method, names[::-1], frames[::-1])[::-1]
    return "" if np.allclose(straight, turned, atol=1e-4) else "a frame's code depends on the other frames of the batch"


def frames_are_left_alone(component: Component) -> str:
    """Encoding changes no frame."""
    names, frames = _frames()
    before = [frame.image.copy() for frame in frames]
    encode(_prepared(component), names, frames)
    same = all(np.array_equal(a, frame.image) for a, frame in zip(before, frames, strict=True))
    return "" if same else "encode changed the frames it was given"


def decoding_gives_images(component: Component) -> str:
    """A decoder, if there is one, gives one (h, w, 3) image in [0, 1] per code."""
    method, (names, frames) = _prepared(component), _frames()
    if not isinstance(method, Decoding) or getattr(method, "decoder", "") is None:
        return ""
    images = np.asarray(method.decode(encode(method, names, frames)))
    if images.shape != (len(frames), *frames[0].image.shape):
        return f"decode gave shape {images.shape}, expected {(len(frames), *frames[0].image.shape)}"
    return "" if images.min() >= 0 and images.max() <= 1 else "decode gave values outside [0, 1]"


CHECKS = (
    answer_is_valid,
    answers_the_same_twice,
    codes_do_not_depend_on_their_neighbours,
    frames_are_left_alone,
    decoding_gives_images,
)
