"""One image of every combination of candle's factors, as in the published data, and confounded data sets made of them.

A dose of confounding is a folder of `IMAGES` links into the pool, drawn by the weights of the dose: all doses show the same
pictures, only how often differs, and nothing is rendered twice.

    python -m studies.disentangle.pool [PART PARTS]         renders what is missing, or one part of it
"""

import os
import sys
from pathlib import Path

from diorama.core.catalogue import build
from diorama.core.scene import rng
from studies.disentangle.judged import COMBINATIONS, WORLD, write_image
from studies.page_kit import HOME

FOLDER = HOME / "build" / "reproduce" / "learners" / "pool"
#: Links of a dose; four fifths of a list are what trainings learn from.
IMAGES = 5_000


def pool(part: int = 0, parts: int = 1) -> Path:
    """The folder of all images; rendered where they are not there yet."""
    world = build("world", WORLD).object
    for combination in range(part, COMBINATIONS, parts):
        write_image(FOLDER, world, combination, combination, seed=2)
    return FOLDER


def confounded(name: str, world: str) -> str:
    """A data set of pool images as often as a world shows their combinations, as a world of its own."""
    folder = FOLDER.parent / "doses" / name
    if not (folder / f"{IMAGES - 1}.json").exists():
        weights = build("world", world).object.weights()
        chosen = rng(0, "dose", name).choice(COMBINATIONS, IMAGES, p=weights / weights.sum())
        folder.mkdir(parents=True, exist_ok=True)
        for number, combination in enumerate(chosen.tolist()):
            for kind in ("png", "json"):
                place = folder / f"{number}.{kind}"
                place.unlink(missing_ok=True)
                os.link((pool() if number == 0 else FOLDER) / f"{combination}.{kind}", place)
    return f"candle_recorded(root={folder})"


if __name__ == "__main__":
    print(pool(*map(int, sys.argv[1:3])))
