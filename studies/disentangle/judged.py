"""The images that learners of candle are judged on: combinations of independent factors, rendered once, in random order.

A run renders the frames of a draw for every method anew; here many learners and protocols look at the same ones, so they are
written as a data set of the world `candle_recorded`.

    python -m studies.disentangle.judged          renders what is missing
"""

import os
from pathlib import Path
from typing import Any

from diorama.core.catalogue import build
from diorama.core.scene import rng
from diorama.io.images import quantise, write_png
from diorama.io.store import write_json
from diorama.worlds.candle.layout import metadata_of
from studies.page_kit import HOME

#: 128 × 96 pixels with 16 light paths each, squeezed to 64 × 64: 48 paths for a pixel that a learner sees.
DRAWN = "width=128, samples=16"
#: What learners of candle are judged on, how many images of it, and where they lie.
WORLD, COUNT, FOLDER = f"candle({DRAWN})", 4_050, HOME / "build" / "reproduce" / "learners" / "candle"
#: All combinations of the factors.
COMBINATIONS = 4_050


def recorded() -> str:
    """The images as a world; rendered where they are not there yet."""
    world: Any = build("world", WORLD).object
    order = rng(0, "judged").permutation(COMBINATIONS)[:COUNT]
    for number, combination in enumerate(order.tolist()):
        write_image(FOLDER, world, number, combination, seed=1)
    return f"candle_recorded(root={FOLDER})"


def write_image(folder: Path, world: Any, number: int, combination: int, seed: int) -> None:
    """The image, then its metadata, where they are not there: where there is metadata, the image is complete."""
    if (folder / f"{number}.json").exists():
        return
    frame = world.render([world.numbered(combination, seed)])[0]
    folder.mkdir(parents=True, exist_ok=True)
    part: Path = folder / f".{number}.png"
    write_png(part, quantise(frame.srgb(), 8))
    os.replace(part, folder / f"{number}.png")
    told = metadata_of(world, frame.scene.params, frame.truth["boxes"]["object"])
    write_json(folder / f"{number}.json", told)


if __name__ == "__main__":
    print(recorded())
