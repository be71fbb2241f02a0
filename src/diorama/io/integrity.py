"""Whether a run directory is what was written: every file checked by its checksum, rows against each other."""

from collections.abc import Callable, Iterator
from pathlib import Path

from diorama.io.row_files import Rows, merge, parts, strange
from diorama.io.run_folder import check_readable, damage, manifest_damage, read_document
from diorama.io.store import checksum, content, is_temporary


def check_run(folder: Path, say: Callable[[str], None]) -> bool:
    """Say what is wrong with a run directory, and what was looked at; True if nothing is. Nothing is changed."""
    check_readable(folder)
    cells = sorted(path for path in folder.glob("cells/*/*") if path.is_dir())
    found = [line for cell in cells for line in _cell(cell)]
    found += [f"{path}: {why}" for path in sorted(folder.glob("*.json")) if (why := damage(path))]
    for line in found:
        say(line)
    rows = sum(len(_rows(cell)[0]) for cell in cells)
    left = sum(map(is_temporary, folder.rglob(".*.tmp")))
    aside = len(list(folder.rglob("*.damaged")))
    say(
        f"{folder}: {len(cells)} cells, {rows} rows, {len(found)} damaged or contradicting files"
        + (f", {aside} set aside earlier" if aside else "")
        + (f", {left} of writers that are at work or have died" if left else "")
        + ("; the same `diorama run` command computes again what is lost" if found else "")
    )
    return not found


def _cell(folder: Path) -> Iterator[str]:
    """What is wrong with a cell."""
    path = folder / "manifest.json"
    if not path.exists():
        yield f"{path} is missing"
    elif why := manifest_damage(path):
        yield f"{path}: {why}"
    for stray in strange(folder):
        yield f"{stray}: it has not the name of a part"
    yield from _rows(folder)[1]
    for captions in sorted((folder / "keep").rglob("*.json")):
        if not whole_picture(captions.with_suffix(".webp")):
            yield f"{captions}: it does not belong to the picture beside it"


def _rows(folder: Path) -> tuple[Rows, list[str]]:
    """The rows of a cell, and what is wrong with its parts: the damaged ones, and the ones that contradict another row."""
    sound, wrong, first = [], [], Rows()
    for part in parts(folder):
        try:
            sound.append(part.rows(folder.name))
        except (OSError, ValueError) as error:
            wrong.append(f"{part.path}: {' '.join(str(error).split())[:200]}")
            continue
        for row in (row for row in sound[-1] if row.status != "error"):
            if first.setdefault((row.case, row.metric), row).result != row.result:
                wrong.append(f"{part.path}: {row.case}, {row.metric} has another value in an earlier part")
    return merge(sound), wrong


def whole_picture(path: Path) -> bool:
    """Whether a picture and its captions are there and whole."""
    try:
        return read_document(path.with_suffix(".json")).get("picture") == checksum(content(path))
    except (OSError, ValueError):
        return False
