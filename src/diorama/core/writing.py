"""The argument of layout functions (`World.layouts`): which scenes of a world to write to a folder, and how many."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diorama.core.catalogue import Component
from diorama.core.errors import InputError
from diorama.core.progress import Progress
from diorama.core.scene import Scene, json_bytes


@dataclass(frozen=True)
class Writing:
    """The first `count` scenes of a world, each with the same changes; `model` gives further targets (layout `flat`)."""

    world: Component
    count: int
    seed: int
    changes: dict[str, Any]
    out: Path
    progress: Progress
    model: Component | None = None

    def scenes(self, count: int) -> Iterator[tuple[str, Scene]]:
        """The scenes with their names, one after the other; each request for the next one reports progress."""
        for i in range(count):
            name, scene = self.world.object.scene_at(self.seed, i)
            yield name, self.world.object.do(scene, **self.changes) if self.changes else scene
            self.progress(i + 1, count)

    def unchanged(self, layout: str) -> None:
        """Refuse `--do` in a layout that writes scenes as they are."""
        if self.changes:
            raise InputError(f"layout {layout!r} writes scenes unchanged: leave --do {next(iter(self.changes))}=… out")

    @contextmanager
    def manifest(self) -> Iterator[Callable[[dict[str, Any]], None]]:
        """Write manifest.json case by case, as the frames are made; the file gets its name when it is complete."""
        self.out.mkdir(parents=True, exist_ok=True)
        part = self.out / f".manifest.json.{os.getpid()}"
        head = {"world": self.world.label, "seed": self.seed, "do": self.changes}
        try:
            with open(part, "wb") as file:
                between = json_bytes(head)[:-1] + b',"cases":[\n'

                def note(entry: dict[str, Any]) -> None:
                    nonlocal between
                    file.write(between + json_bytes(entry))
                    between = b",\n"

                yield note
                file.write(b"\n]}\n")
            os.replace(part, self.out / "manifest.json")
        finally:
            part.unlink(missing_ok=True)
