"""Checks a run directory: every file against its checksum, and rows against each other."""

from collections.abc import Callable, Iterator
from pathlib import Path

from diorama.io.row_files import Rows, merge, misnamed, parts
from diorama.io.run_folder import check_readable, damage, manifest_damage, read_document
from diorama.io.store import checksum, content, is_temporary


def check_run(folder: Path, say: Callable[[str], None]) -> bool:
    """Report what is wrong with a run directory, and how much was checked; True if all is well. Nothing is changed."""
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
        + (f", {left} temporary files of processes that are writing or have died" if left else "")
        + ("; run the same `diorama run` command again to recompute the lost rows" if found else "")
    )
    return not found


def _cell(folder: Path) -> Iterator[str]:
    """What is wrong with a cell."""
    path = folder / "manifest.json"
    if not path.exists():
        yield f"{path} is missing"
    elif why := manifest_damage(path):
        yield f"{path}: {why}"
    for stray in misnamed(folder):
        yield f"{stray}: this is not the name of a part"
    yield from _rows(folder)[1]
    for captions in sorted((folder / "keep").rglob("*.json")):
        if not whole_picture(captions.with_suffix(".webp")):
            yield f"{captions}: its checksum is not that of the picture beside it"


def _rows(folder: Path) -> tuple[Rows, list[str]]:
    """The rows of a cell, and messages about damaged parts and contradicting rows."""
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
    """Whether a picture and its captions exist and are undamaged."""
    try:
        return read_document(path.with_suffix(".json")).get("picture") == checksum(content(path))
    except (OSError, ValueError):
        return False
