"""Base class of pictures that can be saved or shown in a notebook. matplotlib is imported when one is drawn."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import TYPE_CHECKING

from diorama.core.errors import InputError, importing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".png", ".pdf", ".svg")
#: Pixels per inch of the files.
SHARP = 144


class Drawn:
    """An object with a picture: `figure()` makes it, `save` writes it, and notebooks show it."""

    def figure(self) -> Figure:
        """The picture as a matplotlib figure."""
        raise NotImplementedError

    def save(self, path: str | Path) -> Path:
        """Write the picture as PNG, PDF or SVG, by the ending of the path."""
        file = Path(path)
        if file.suffix.lower() not in ENDINGS:
            raise InputError(f"{file}: give a file that ends in {', '.join(ENDINGS)}")
        file.parent.mkdir(parents=True, exist_ok=True)
        self.figure().savefig(file, dpi=SHARP)
        return file

    def _repr_html_(self) -> str:
        held = io.BytesIO()
        self.figure().savefig(held, format="png", dpi=SHARP)
        data = base64.b64encode(held.getvalue()).decode()
        about = f'alt="{html.escape(repr(self))}" style="max-width:100%;background:white"'
        return f'<img {about} src="data:image/png;base64,{data}">'


def blank(width: float, height: float) -> Figure:
    """An empty figure; width and height in inches."""
    with importing():
        from matplotlib.figure import Figure
    return Figure(figsize=(width, height), layout="constrained")


def short(spec: str) -> str:
    """A short form of a spec for titles: its name without parameters and folders.

    >>> short("checkpoint(path=out, arch='./mine.py:build')"), short("../nets/mine.py:build"), short("timm:resnet18")
    ('checkpoint', 'mine.py:build', 'timm:resnet18')
    """
    return spec.partition("(")[0].rpartition("/")[2]
