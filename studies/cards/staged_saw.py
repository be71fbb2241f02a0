"""A folder in SAW's layout made from staged table tops: its labels come from the true shading, not from people.

The photos and labels of Shading Annotations in the Wild are not in the repository. Staged scenes show how truth, chance and
methods score: a pixel is smooth where true log shading changes by less than `SMOOTH` per pixel everywhere within `REACH`
pixels, a shadow boundary where it changes by more than `STEP`, and otherwise ignored.
"""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.ndimage import maximum_filter

from diorama.core.catalogue import build
from diorama.core.frame import Frame, channel_mean
from diorama.io.images import quantise, write_png

SMOOTH, STEP, REACH = 0.02, 0.15, 5
BOUNDARY, EVEN, IGNORED = 1, 2, 100


def staged_saw(folder: Path, photos: int = 6, world: str = "tabletop(size=128, samples=32, objects=3)") -> Path:
    """Write pictures, labels and the list of ids, and return the folder."""
    staged: Any = build("world", world).object
    pictures, labels, lists = (folder / name for name in ("saw_images_512", "saw_pixel_labels/staged", "saw_splits"))
    for subfolder in (pictures, labels, lists):
        subfolder.mkdir(parents=True, exist_ok=True)
    frames = staged.render([staged.scene_at(0, i)[1] for i in range(photos)])
    for i, frame in enumerate(frames):
        write_png(pictures / f"{i}.png", quantise(frame.srgb(), 8))
        np.save(labels / f"{i}.npy", labelled(frame))
    np.save(lists / "test_ids.npy", np.arange(photos))
    return folder


def labelled(frame: Frame) -> np.ndarray:
    """The label of every pixel of a frame with true shading; (h, w)."""
    shading = np.log(np.maximum(channel_mean(frame.truth["shading"]), 1e-4))
    change = np.hypot(*np.gradient(shading))
    labels = np.full(change.shape, IGNORED)
    labels[maximum_filter(change, 2 * REACH + 1) < SMOOTH] = EVEN
    labels[change > STEP] = BOUNDARY
    return labels
