"""Contact sheets: many pictures on one, small ones enlarged so that pixels are visible."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from diorama.io.images import quantise, resize, write_png

#: Pictures on a contact sheet, at most.
SHOWN = 256


class Sheet:
    """Collects the first pictures of a contact sheet, shrunk as they are shown, so that memory stays bounded."""

    def __init__(self, limit: int = 192) -> None:
        self.limit, self.pictures = limit, list[np.ndarray]()

    def add(self, image: np.ndarray) -> None:
        """Add a picture (h, w, 3) in [0, 1]."""
        if len(self.pictures) < SHOWN:
            h, w = _size(image, min(self.limit, max(image.shape[:2])))
            self.pictures.append(quantise(image if image.shape[:2] == (h, w) else resize(image, w, h), 8))

    def picture(self, gap: int = 4) -> np.ndarray:
        """The pictures on a grid as uint8, small ones enlarged."""
        largest = max(max(image.shape[:2]) for image in self.pictures)
        side = largest * (self.limit // largest)
        sizes = [_size(image, side) for image in self.pictures]
        high, wide = np.max(sizes, axis=0) + gap
        columns = int(np.ceil(np.sqrt(len(sizes))))
        sheet = np.full((-(-len(sizes) // columns) * high + gap, columns * wide + gap, 3), 255, np.uint8)
        for i, (image, (h, w)) in enumerate(zip(self.pictures, sizes, strict=True)):
            y = gap + (i // columns) * high + (high - gap - h) // 2
            x = gap + (i % columns) * wide + (wide - gap - w) // 2
            sheet[y : y + h, x : x + w] = resize(image, w, h)
        return sheet

    def written(self, out: Path) -> Path:
        """Write the sheet as contact.png into a folder; returns its path."""
        write_png(out / "contact.png", self.picture())
        return out / "contact.png"


def _size(image: np.ndarray, side: int) -> tuple[int, int]:
    """Height and width of a picture whose longer side has `side` pixels."""
    h, w = np.maximum(np.rint(np.multiply(image.shape[:2], side / max(image.shape[:2]))), 1).astype(int)
    return int(h), int(w)


def contact_sheet(images: Iterable[np.ndarray], limit: int = 192) -> Sheet:
    """Pictures (h, w, 3) in [0, 1] on a sheet; none larger than `limit`, small ones enlarged."""
    sheet = Sheet(limit)
    for image in images:
        sheet.add(image)
    return sheet
