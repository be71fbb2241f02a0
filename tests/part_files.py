"""The rows of a run as files: read without timing, and lost as a crash might lose them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diorama.io.store import checksum


def rows(folder: Path) -> dict[str, list[str]]:
    """Every row of every cell without its timing, sorted, as text."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("cells/*/*/rows/*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            del row["seconds"]
            found.setdefault(path.parts[-3], []).append(json.dumps(row))
    return {cell: sorted(lines) for cell, lines in found.items()}


def lose(folder: Path, gone: Callable[[dict[str, Any]], bool]) -> None:
    """Put parts without some of their rows in the place of the parts that are there."""
    for path in list(folder.glob("cells/*/*/rows/*.jsonl")):
        kept = [line for line in path.read_bytes().splitlines(keepends=True) if not gone(json.loads(line))]
        path.unlink()
        data = b"".join(kept)
        if data:
            path.with_name(f"{path.stem.rpartition('-')[0]}-{checksum(data)}.jsonl").write_bytes(data)
