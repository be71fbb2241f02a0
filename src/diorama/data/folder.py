"""The layout `dataset`: a folder for the user's own training loop.

    images/train-00000.png …   8-bit sRGB
    labels.csv                 file, split, label, every factor; for worlds with levels `labelled` (the 10 % whose labels may
                               be used), for confounded ones `confounded` (whether the image is in the confounded part)
    boxes.csv                  file, what, x0, y0, x1, y1 from the top left, far edge excluded
    pairs.csv                  first, second, shared: pairs of training images that share factors (weak supervision)
    dataset.json               world, seed, changes, counts, classes or levels

The scenes are those of `diorama.world(…).torch_dataset`: none of them is used by `diorama run`.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diorama.core.capabilities import Confounded, Levelled
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.core.writing import Writing
from diorama.data.views import Split, WorldView, plain_factors
from diorama.data.weak import labelled, sharing
from diorama.io.images import quantise, write_png
from diorama.io.sheet import Sheet
from diorama.io.store import write_json

Record = dict[str, Any]
SHARES: dict[Split, float] = {"train": 0.8, "val": 0.1, "test": 0.1}
#: The number of pairs that share a factor, for each factor, relative to the number of training images.
PAIRS = 0.1


def write_dataset(ask: Writing) -> Path:
    """Write 8-bit images, `labels.csv` with all factors and a split, boxes, and the weak labels of worlds with levels.

    Returns labels.csv.
    """
    world, count, seed, changes, out, sheet = ask.world, ask.count, ask.seed, ask.changes, ask.out, Sheet()
    view, staged = WorldView(world.object, world.label), world.object
    counts = _counts(count, staged.length)
    rows: list[Record] = []
    boxes: list[Record] = []
    out.mkdir(parents=True, exist_ok=True)
    for split, scene, name in _named(view, counts, seed):
        frame = staged.render([staged.do(scene, **changes) if changes else scene])[0]
        write_png(out / name, quantise(frame.srgb(), 8))
        label = frame.truth.get("label")
        row = {"file": name, "split": split} | ({} if label is None else {"label": int(label)}) | plain_factors(frame)
        if isinstance(staged, Confounded):
            row["confounded"] = int(staged.confounded(frame.scene))
        rows.append(row)
        boxes += _boxes(name, frame)
        sheet.add(frame.srgb())
        ask.progress(len(rows), count)
    pairs = _weak_labels(rows, staged, seed)
    for table, found in (("boxes.csv", boxes), ("pairs.csv", pairs)):
        if found:
            write_csv(out / table, found)
    levels = {name: list(values) for name, values in view.levels.items()}
    classes = [dict(c) if isinstance(c, dict) else c for c in view.classes]
    about = {"world": world.label, "seed": seed, "do": changes, "counts": counts, "levels": levels, "classes": classes}
    write_json(out / "dataset.json", about)
    sheet.written(out)
    write_csv(out / "labels.csv", rows)  # written last: if this file exists, all others do
    return out / "labels.csv"


def _counts(count: int, length: int | None) -> dict[Split, int]:
    """The number of images of each split, at least one."""
    if count < 10:
        raise InputError(f"-n {count}: a training, a validation and a test set need at least 10 scenes")
    if length is not None and count > length:
        raise InputError(f"-n {count}: the world has {length} scenes")
    watched, judged = (int(SHARES[name] * count) for name in ("val", "test"))
    return {"train": count - watched - judged, "val": watched, "test": judged}


def _named(view: WorldView, counts: dict[Split, int], seed: int) -> Iterator[tuple[Split, Scene, str]]:
    for split, n in counts.items():
        for i, scene in enumerate(view.examples(n, split, seed)):
            yield split, scene, f"images/{split}-{i:05d}.png"


def _boxes(name: str, frame: Frame) -> list[Record]:
    found = frame.truth.get("boxes") or {}
    named = found.items() if isinstance(found, dict) else enumerate(found)
    ends = ("x0", "y0", "x1", "y1")
    return [{"file": name, "what": what, **dict(zip(ends, box, strict=True))} for what, box in named if box]


def _weak_labels(rows: list[Record], world: Any, seed: int) -> list[Record]:
    """Mark the training images whose labels may be used; returns pairs of training images that share factors."""
    if not isinstance(world, Levelled):
        return []
    names, train = list(world.levels), [row for row in rows if row["split"] == "train"]
    chosen = set(labelled(len(train), seed=seed).tolist())
    places = {row["file"]: i for i, row in enumerate(train)}
    for row in rows:
        row["labelled"] = int(places.get(row["file"], -1) in chosen)
    pairs = []
    for name in names:
        if len({row[name] for row in train}) < len(train):  # otherwise no two images share it
            pairs += [(train[a], train[b]) for a, b in sharing(train, [name], max(1, int(PAIRS * len(train))), seed)]
    return [
        {"first": a["file"], "second": b["file"], "shared": " ".join(n for n in names if a[n] == b[n])}
        for a, b in pairs
    ]


def write_csv(path: Path, rows: list[Record]) -> None:
    """Write rows as a CSV table with the columns of all rows; a cell is empty if its row has no value."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows({k: "" if v is None else v for k, v in row.items()} for row in rows)
