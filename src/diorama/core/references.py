"""References: what components cite, as text and as BibTeX, from references.bib."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

#: What TeX writes before a letter, and the character that follows it in Unicode.
_ACCENTS = {'"': "\u0308", "'": "\u0301", "`": "\u0300", "^": "\u0302", "~": "\u0303"}


@dataclass(frozen=True, slots=True)
class Reference:
    """A cited work."""

    key: str
    text: str
    bibtex: str


def references(keys: list[str]) -> list[Reference]:
    """The works of some keys; a key that is not in the file is taken as the text of the reference.

    >>> references(["weiss2001"])[0].text
    'Yair Weiss: Deriving intrinsic images from image sequences. International Conference on Computer Vision, 2001'
    >>> references(["trauble2021"])[0].text.partition(",")[0]
    'Frederik Träuble'
    >>> references(["Doe 1999"])[0].text
    'Doe 1999'
    """
    return [_all_references().get(key, Reference(key, key, "")) for key in keys]


@cache
def _all_references() -> dict[str, Reference]:
    entries = Path(__file__).with_name("references.bib").read_text(encoding="utf-8").strip().split("\n\n")
    return {reference.key: reference for reference in map(_parse, entries)}


def _parse(entry: str) -> Reference:
    head = re.match(r"@\w+\{([^,]+),", entry)
    if not head:
        raise ValueError(f"references.bib: cannot read {entry[:40]!r}")
    field = dict(re.findall(r"^\s*(\w+) = \{(.*)\},?$", entry, re.MULTILINE))
    authors = field["author"].split(" and ")
    named = ", ".join(authors[:3]) + (" et al." if len(authors) > 3 else "")
    where = field.get("booktitle") or field.get("journal") or field.get("howpublished") or ""
    plain = re.sub(r"\{\\(.)(\w)\}", lambda found: unicodedata.normalize("NFC", found[2] + _ACCENTS[found[1]]), named)
    return Reference(head[1], f"{plain}: {field['title']}. {where}, {field['year']}", entry)
