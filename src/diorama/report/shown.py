"""Formats numbers, labels and parameters in the same way for every output format."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: Shown in place of a missing value.
NONE = "–"
_PATH = re.compile(r"=(['\"]?)[^=,()]*/(?=[^/,()]+[,)])")


def decimals(values: Iterable[float | None]) -> int:
    """Decimals for a column: four for values below one, fewer for larger ones, more if all are tiny.

    >>> decimals([0.0215, 0.29]), decimals([31.0, 4.0]), decimals([3e-6]), decimals([])
    (4, 2, 9, 4)
    """
    top = max((abs(v) for v in values if v is not None), default=0.0)
    if top < 1e-12:
        return 4
    size = math.floor(math.log10(top))
    return max(0, min(3 - size, 12)) if size >= 0 or size < -2 else 4


def number(value: float | None, places: int = 4) -> str:
    """A value with a fixed number of decimals, never `nan` and never a negative zero.

    >>> number(0.02154), number(None), number(-1e-9)
    ('0.0215', '–', '0.0000')
    """
    if value is None or not math.isfinite(value):
        return NONE
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def bounds(lo: float | None, hi: float | None, places: int = 4) -> str:
    """An interval in brackets, or an empty string if there is none.

    >>> bounds(0.01, 0.02), bounds(None, None)
    ('[0.0100, 0.0200]', '')
    """
    return "" if lo is None or hi is None else f"[{number(lo, places)}, {number(hi, places)}]"


def brief(value: Any) -> str:
    """A parameter's value in few characters.

    >>> brief(0.37275937), brief(1.0), brief("shading")
    ('0.373', '1', 'shading')
    """
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def point(values: dict[str, Any]) -> str:
    """A grid point as `name=value` pairs.

    >>> point({"threshold": 0.1, "mode": "l1"})
    'threshold=0.1, mode=l1'
    """
    return ", ".join(f"{name}={brief(value)}" for name, value in values.items())


def label(text: str | None) -> str:
    """A component's label with paths shortened to their last part, and without control characters.

    >>> label("mit(root=/data/mit, image=diffuse)")
    'mit(root=…/mit, image=diffuse)'
    >>> label("photos(root='/data/my photos')")
    "photos(root='…/my photos')"
    """
    return _PATH.sub(r"=\1…/", printable(text or ""))


def crossed(cell: Mapping[str, Any]) -> str:
    """The name of a cell: world × model × method × protocol, as far as it has them.

    >>> crossed({"world": "birds", "model": None, "protocol": "lmse"})
    'birds × lmse'
    """
    return " × ".join(label(cell[kind]) for kind in ("world", "model", "method", "protocol") if cell.get(kind))


def printable(text: str) -> str:
    """The text on one line without control characters.

    >>> printable("a\\x1b[31m\\nb")
    'a [31m b'
    """
    return "".join(c if c.isprintable() else " " for c in text)


def seconds(value: float | None) -> str:
    """A duration with two or three digits.

    >>> seconds(0.0082), seconds(0.0996), seconds(0.53), seconds(99.6), seconds(4000.0), seconds(None)
    ('8.2 ms', '100 ms', '0.53 s', '100 s', '1.1 h', '–')
    """
    if value is None:
        return NONE
    if value < 0.1:
        return f"{value * 1000:.2g} ms" if value < 0.0095 else f"{value * 1000:.0f} ms"
    if value < 600:
        return f"{value:.2g} s" if value < 9.5 else f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 3600 else f"{value / 3600:.1f} h"


def listing(names: Iterable[str]) -> str:
    """Names joined as in a sentence.

    >>> listing(["a"]), listing(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    names = list(names)
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1] if names else ""


def chance(p: float) -> str:
    """A p-value with `=` or `<`.

    >>> chance(0.0044), chance(0.00003)
    ('= 0.0044', '< 0.001')
    """
    return f"= {p:.2g}" if p >= 0.001 else "< 0.001"
