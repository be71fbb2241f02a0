"""Pictures for part-based protocols: heat map, part importance beside measured effect, the image reduced to P(t)."""

import numpy as np

from diorama.core.answers import Answer, Boxes, Heatmap, Mask, Similarity
from diorama.core.bench import Bench
from diorama.core.cases import Matrix, Panel
from diorama.core.errors import Undefined
from diorama.core.scene import Scene
from diorama.io.images import resize
from diorama.io.pictures import coloured_parts, diverging
from diorama.protocols.parts.importance import Elements, part_importance

#: Colours of the bars, told apart by all colour vision: what the answer says, what was measured.
_SAID, _MEASURED = (0.90, 0.62, 0.00), (0.00, 0.45, 0.70)


def panels(
    bench: Bench, scene: Scene, answer: Answer, seen: Elements, drops: np.ndarray, kept: np.ndarray
) -> list[Panel]:
    """The frame, its parts, the answer, bars of importance and effect, and the frame with only the parts in `kept`."""
    frame, names = bench.frame(scene), bench.world.object.part_names
    found = [Panel("image", frame.srgb()), Panel("parts", coloured_parts(frame.truth["parts"]))]
    found.append(Panel("explanation", _shown(answer, frame.srgb())))
    try:
        said = part_importance(answer, seen)[: len(drops)]
    except Undefined:
        said = np.zeros(len(drops))
    named = Matrix(("importance", "measured effect"), names, np.stack([scaled(said), scaled(drops)]))
    found.append(Panel("importance (orange), measured effect (blue)", bars(names, said, drops), named))
    if isinstance(answer, Boxes) and answer.examples is not None:
        found.append(Panel("this … looks like that", looks_like(answer, frame.srgb())))
    gone = {part: None for part, keep in zip(names, kept, strict=True) if not keep}
    only = ", ".join(part for part in names if part not in gone) or "nothing"
    reduced = bench.frame(bench.world.object.do(scene, **gone) if gone else scene)
    return [*found, Panel(f"important at t = 0.02: {only}", reduced.srgb())]


def _shown(answer: Answer, image: np.ndarray) -> np.ndarray:
    if isinstance(answer, Heatmap | Similarity):
        return diverging(answer.values, image)
    heat = np.zeros(image.shape[:2])
    if isinstance(answer, Mask):
        heat = answer.values.astype(float)
    elif isinstance(answer, Boxes):
        for (x0, y0, x1, y1), weight in zip(answer.corners.astype(int), answer.weights, strict=True):
            heat[y0:y1, x0:x1] += weight
    return diverging(heat, image)


def looks_like(answer: Boxes, image: np.ndarray, most: int = 3, side: int = 96) -> np.ndarray:
    """The boxes of largest weight, each beside the picture that it is said to look like; (most · side, 2 · side, 3)."""
    assert answer.examples is not None
    rows = []
    for i in np.argsort(-answer.weights, kind="stable")[:most]:
        x0, y0, x1, y1 = answer.corners[i].astype(int)
        pair = [
            resize(np.ascontiguousarray(part, np.float32), side - 4, side - 4)
            for part in (image[y0:y1, x0:x1], answer.examples[i])
        ]
        rows.append(np.concatenate([np.pad(p, ((2, 2), (2, 2), (0, 0)), constant_values=1.0) for p in pair], 1))
    return np.concatenate(rows).astype(np.float32)


def scaled(values: np.ndarray) -> np.ndarray:
    """The values over the largest of them, by size.

    >>> scaled(np.array([1.0, -4.0])).tolist()
    [0.25, -1.0]
    """
    return values / max(float(np.abs(values).max(initial=0)), 1e-12)


def bars(names: tuple[str, ...], said: np.ndarray, measured: np.ndarray, side: int = 288) -> np.ndarray:
    """Two bars for every part, each series scaled to its largest value; (side, side, 3) in [0, 1]."""
    import cv2

    picture, middle, step = np.ones((side, side, 3)), side * 11 // 24, side / len(names)
    for k, (values, colour) in enumerate(((said, _SAID), (measured, _MEASURED))):
        for i, value in enumerate(scaled(values)):
            x = round((i + 0.14 + 0.36 * k) * step)
            y = sorted((middle, middle - round(value * side * 0.43)))
            picture[y[0] : y[1] + 1, x : x + max(1, round(0.34 * step))] = colour
    picture[middle : middle + 2] = 0.35
    shown = np.ascontiguousarray((picture * 255).astype(np.uint8))
    for i, name in enumerate(names):
        at = (round((i + 0.06) * step), side - 8)
        cv2.putText(shown, name[:6], at, cv2.FONT_HERSHEY_SIMPLEX, 0.55, (60, 60, 60), 1, cv2.LINE_AA)
    return shown.astype(np.float32) / 255
