"""Pictures for part-based protocols: heat map, part importance beside measured effect, the image reduced to P(t)."""

from functools import singledispatch

import numpy as np

from diorama.core.answers import Answer, Boxes, Heatmap, Mask, PartScores, Similarity
from diorama.core.bench import Bench
from diorama.core.cases import Matrix, Panel
from diorama.core.errors import Undefined
from diorama.core.scene import Scene
from diorama.io.images import resize
from diorama.io.pictures import coloured_parts, diverging
from diorama.protocols.parts.importance import Elements, part_importance

#: Colours of the bars, safe for colour-blind readers: the answer's importance, the measured effect.
_CLAIMED, _MEASURED = (0.90, 0.62, 0.00), (0.00, 0.45, 0.70)
#: Colours of the frames of the strongest boxes and of their prototypes, the strongest first.
_FRAMES = ((0.84, 0.37, 0.00), (0.00, 0.45, 0.70), (0.00, 0.62, 0.45))


def panels(
    bench: Bench, scene: Scene, answer: Answer, elements: Elements, drops: np.ndarray, important: np.ndarray
) -> list[Panel]:
    """The frame, its parts, the answer, bars of importance and effect, and the frame with only the parts in `kept`."""
    frame, names = bench.frame(scene), bench.world.object.part_names
    shown_panels = [Panel("image", frame.srgb()), Panel("parts", coloured_parts(frame.truth["parts"]))]
    shown_panels.append(Panel("explanation", diverging(heat_of(answer, frame.image.shape[:2])[0], frame.srgb())))
    try:
        claimed = part_importance(answer, elements)[: len(drops)]
    except Undefined:
        claimed = np.zeros(len(drops))
    named = Matrix(("importance", "measured effect"), names, np.stack([scaled(claimed), scaled(drops)]))
    shown_panels.append(Panel("importance (orange), measured effect (blue)", bars(names, claimed, drops), named))
    removed = {part: None for part, keep in zip(names, important, strict=True) if not keep}
    only = ", ".join(part for part in names if part not in removed) or "nothing"
    reduced = bench.frame(bench.world.object.do(scene, **removed) if removed else scene)
    shown_panels.append(Panel(f"important at t = 0.02: {only}", reduced.srgb()))
    if isinstance(answer, Boxes) and answer.examples is not None:
        shown_panels += looks_like(answer, frame.srgb())
    return shown_panels


@singledispatch
def heat_of(answer: Answer, size: tuple[int, int]) -> tuple[np.ndarray, bool]:
    """An answer as a map (h, w), and whether it has a sign; zeros for answers that have no values for pixels."""
    return np.zeros(size), False


@heat_of.register
def _(answer: Heatmap, size: tuple[int, int]) -> tuple[np.ndarray, bool]:
    values = np.asarray(answer.values, np.float64)
    return (values.sum(axis=2) if values.ndim == 3 else values), answer.signed


@heat_of.register(Mask)
@heat_of.register(Similarity)
def _(answer: Mask | Similarity, size: tuple[int, int]) -> tuple[np.ndarray, bool]:
    return np.asarray(answer.values, np.float64), False


@heat_of.register
def _(answer: Boxes, size: tuple[int, int]) -> tuple[np.ndarray, bool]:
    heat = np.zeros(size)
    for (x0, y0, x1, y1), weight in zip(answer.corners.astype(int), answer.weights, strict=True):
        heat[max(y0, 0) : max(y1, 0), max(x0, 0) : max(x1, 0)] += weight
    return heat, True


@heat_of.register
def _(answer: PartScores, size: tuple[int, int]) -> tuple[np.ndarray, bool]:
    return np.zeros(size), True


def looks_like(answer: Boxes, image: np.ndarray, side: int = 144) -> list[Panel]:
    """The boxes of largest weight framed in the image, then each of them beside the picture of its prototype."""
    assert answer.examples is not None
    strongest = list(zip(np.argsort(-answer.weights, kind="stable"), _FRAMES, strict=False))
    whole = np.array(image, np.float32)
    for i, colour in reversed(strongest):  # the strongest on top
        x0, y0, x1, y1 = answer.corners[i].astype(int)
        framed(whole[y0:y1, x0:x1], colour, max(1, len(image) // 40))
    patches = [Panel("where it looks: the strongest prototypes", whole)]
    for i, colour in strongest:
        x0, y0, x1, y1 = answer.corners[i].astype(int)
        this, that = (_square(part, side) for part in (image[y0:y1, x0:x1], answer.examples[i]))
        for patch in (this, that):
            framed(patch, colour, 4)
        patches += [Panel("this", this), Panel(f"looks like that: similarity × weight {answer.weights[i]:.2f}", that)]
    return patches


def framed(picture: np.ndarray, colour: tuple[float, float, float], width: int) -> None:
    """Draw a frame along the inner edges of a picture, in its own array."""
    for edge in (picture[:width], picture[-width:], picture[:, :width], picture[:, -width:]):
        edge[:] = colour


def _square(part: np.ndarray, side: int) -> np.ndarray:
    """A part of an image, enlarged to a square on white without changing its shape."""
    scale = side / max(part.shape[:2])
    height, width = (max(1, round(scale * n)) for n in part.shape[:2])
    square, top, left = np.ones((side, side, 3), np.float32), (side - height) // 2, (side - width) // 2
    square[top : top + height, left : left + width] = resize(np.ascontiguousarray(part, np.float32), width, height)
    return square


def scaled(values: np.ndarray) -> np.ndarray:
    """The values divided by the largest absolute one.

    >>> scaled(np.array([1.0, -4.0])).tolist()
    [0.25, -1.0]
    """
    return values / max(float(np.abs(values).max(initial=0)), 1e-12)


def bars(names: tuple[str, ...], claimed: np.ndarray, measured: np.ndarray, side: int = 288) -> np.ndarray:
    """Two bars for every part, each series scaled to its largest value; (side, side, 3) in [0, 1]."""
    import cv2

    picture, middle, step = np.ones((side, side, 3)), side * 11 // 24, side / len(names)
    for k, (values, colour) in enumerate(((claimed, _CLAIMED), (measured, _MEASURED))):
        for i, value in enumerate(scaled(values)):
            x = round((i + 0.14 + 0.36 * k) * step)
            y = sorted((middle, middle - round(value * side * 0.43)))
            picture[y[0] : y[1] + 1, x : x + max(1, round(0.34 * step))] = colour
    picture[middle : middle + 2] = 0.35
    labelled = np.ascontiguousarray((picture * 255).astype(np.uint8))
    for i, name in enumerate(names):
        at = (round((i + 0.06) * step), side - 8)
        cv2.putText(labelled, name[:6], at, cv2.FONT_HERSHEY_SIMPLEX, 0.55, (60, 60, 60), 1, cv2.LINE_AA)
    return labelled.astype(np.float32) / 255
