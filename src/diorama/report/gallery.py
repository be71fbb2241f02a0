"""The gallery: pictures of each method's worst cases, as many as fit into the report."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from diorama.io.names import case_path
from diorama.io.store import content
from diorama.report.sections import Line, Section
from diorama.report.shown import decimals, number, point, printable

#: Bytes of markup around a picture, a little more than it takes.
MARKUP = 1_200


@dataclass(frozen=True, slots=True)
class Picture:
    """A strip of panels of one case with what is said about it; `value` names its metric."""

    path: Path
    method: str
    case: str
    value: str
    chosen: str
    captions: list[str]
    width: int
    height: int

    @property
    def cost(self) -> int:
        """The bytes it adds to the report."""
        return self.path.stat().st_size * 4 // 3 + MARKUP + 40 * len(self.captions)

    @property
    def source(self) -> str:
        """The picture as a data URI."""
        return "data:image/webp;base64," + base64.b64encode(content(self.path)).decode()

    @property
    def alt(self) -> str:
        """What the picture shows, in words."""
        return f"{self.method} on {self.case}, from left to right: {', '.join(self.captions)}"


def pictures(section: Section, line: Line) -> list[Picture]:
    """A line's pictures, worst case first; those of grid points that are no longer chosen are left aside."""
    metrics = (line.cell.case_metric, *line.cell.manifest["metrics"])
    metric = next((m for m in metrics if line.values(m)), metrics[0])
    values = line.values(metric)
    worst = sorted(values, key=lambda case: values[case], reverse=section.direction == "lower")
    places = decimals(values.values())
    found = [_picture(line, case, f"{metric} {number(values[case], places)}") for case in worst]
    return [picture for picture in found if picture]


def _picture(line: Line, case: str, value: str) -> Picture | None:
    place = line.cell.settled.chosen.get(case, 0)
    path = case_path(line.cell.folder / "keep", f"{case}@{place}", ".webp")
    try:
        said = json.loads(content(path.with_suffix(".json")))
        width, height = webp_size(content(path)[:32])
    except (OSError, ValueError):  # a picture is not worth a report
        return None
    captions = [printable(str(c)) for c in said["captions"]]
    chosen = point(said["point"]) if said["point"] else ""
    return Picture(path, line.name, printable(case), value, chosen, captions, width, height)


def webp_size(head: bytes) -> tuple[int, int]:
    """Width and height from the first 30 bytes of a WebP file, lossy, lossless or extended (RFC 9649)."""
    if len(head) < 30 or head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        raise ValueError("not a WebP picture")
    kind = head[12:16]
    if kind == b"VP8 ":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1


@dataclass(frozen=True, slots=True)
class Gallery:
    """The pictures that fit, by section and line, and the number of those that do not."""

    shown: dict[int, list[tuple[Line, list[Picture]]]]
    left_out: int


def select(found: list[Section], budget: int, most: int | None = None) -> Gallery:
    """Take each line's worst case, then each line's second worst, and so on while the budget of bytes lasts.

    `most` is the most pictures of a line.
    """
    stacks = [(i, line, pictures(s, line)[:most]) for i, s in enumerate(found) for line in s.lines]
    stacks.sort(key=lambda stack: bool(stack[1].control))  # controls are shown where there is room
    taken = [0] * len(stacks)
    for depth in range(max((len(p) for _, _, p in stacks), default=0)):
        for k, (_, _, stack) in enumerate(stacks):
            if taken[k] == depth < len(stack) and stack[depth].cost <= budget:
                budget -= stack[depth].cost
                taken[k] += 1
    shown: dict[int, list[tuple[Line, list[Picture]]]] = {}
    for n, (i, line, stack) in zip(taken, stacks, strict=True):
        if n:
            shown.setdefault(i, []).append((line, stack[:n]))
    return Gallery(shown, sum(len(p) for _, _, p in stacks) - sum(taken))
