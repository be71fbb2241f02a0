"""The references that a paper about a run should cite: protocols first, then methods and worlds, and this software last."""

from pathlib import Path

import diorama
from diorama.report.summary import CellResult, read_results

_OURS = "The Diorama developers: Diorama, known-truth evaluation of what vision models say about themselves. Version {}"
_OUR_BIB = (
    "@software{{diorama,\n  author = {{{{The Diorama developers}}}},\n  title = {{Diorama}},\n  version = {{{}}},\n}}"
)


def cited(folder: Path, bib: bool = False) -> str:
    """The references of a run: papers of protocols, then those of methods and worlds, then Diorama."""
    cells = read_results(folder).cells
    # papers of protocols; older manifests do not separate them from the others
    first = {text: None for cell in cells for text in cell.manifest.get("originals", cell.manifest.get("cite", []))}
    every = {text: entry for cell in cells for text, entry in _all(cell)}
    order = [*first, *(text for text in every if text not in first)]
    if bib:
        return "\n\n".join([*(every.get(t) or f"% {t}" for t in order), _OUR_BIB.format(diorama.__version__)]) + "\n"
    rest = [text for text in order if text not in first]
    lines = ["the protocols", *(f"  {text}" for text in first)]
    lines += ["the methods and worlds", *(f"  {text}" for text in rest)] if rest else []
    return "\n".join([*lines, "the software", f"  {_OURS.format(diorama.__version__)}"]) + "\n"


def _all(cell: CellResult) -> list[tuple[str, str]]:
    return list(zip(cell.manifest.get("cite", []), cell.manifest.get("bibtex", []), strict=False))
