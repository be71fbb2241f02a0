"""Reads and writes image files: 16-bit RGB stays 16-bit, and a damaged file is an error that names it.

All pictures of worlds are decoded here: PNG, JPEG and Radiance HDR, recognised by their content. The structure of a file is
checked first (markers, lengths, checksums, size in pixels), because decoders return half an image for half a file, and
allocate any amount of memory that a header declares.
"""

import os
import re
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from diorama.core.errors import InputError
from diorama.io.files import check_pixels, read_bytes

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HDR_SIZE = re.compile(rb"\n[-+]Y +(\d{1,9}) +[-+]X +(\d{1,9})\n")
#: The end of the compressed part of a JPEG: a marker that is neither a stuffed byte nor a restart.
_MARK = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")
_AGAIN = "fetch it again"


def read_image(path: Path, bits: int | None = None) -> np.ndarray:
    """A PNG, JPEG or Radiance HDR as stored: (h, w) or (h, w, 3) uint8, uint16 or float32, RGB order, alpha dropped.

    EXIF rotation is ignored: masks and annotated points refer to the stored pixels. With `bits`, other depths are refused.
    """
    return decode(read_bytes(path), str(path), bits)


def read_png(path: Path, bits: int | None = None) -> np.ndarray:
    """A PNG as stored: (h, w) or (h, w, 3) uint8 or uint16, RGB order, alpha dropped; with `bits`, of that depth only."""
    data = read_bytes(path)
    if data[:8] != _SIGNATURE:
        raise InputError(f"{path} is not a PNG file")
    return decode(data, str(path), bits)


def read_rgb(path: Path) -> np.ndarray:
    """An 8-bit PNG or JPEG as (h, w, 3) uint8, gray ones with three equal channels."""
    stored = read_image(path, bits=8)
    return stored if stored.ndim == 3 else np.repeat(stored[:, :, None], 3, axis=2)


@dataclass(frozen=True, slots=True)
class _Header:
    """Size and depth from the header of a picture."""

    width: int
    height: int
    bits: int


def decode(data: bytes, name: str, bits: int | None = None) -> np.ndarray:
    """The picture in some bytes, named in errors; see `read_image`."""
    kinds: tuple[tuple[bytes, str, Callable[[bytes, str], _Header]], ...] = (
        (_SIGNATURE, "PNG", _walk_png),
        (b"\xff\xd8", "JPEG", _walk_jpeg),
        (b"#?", "Radiance HDR", _walk_hdr),
    )
    kind, walk = next(((kind, walk) for start, kind, walk in kinds if data.startswith(start)), ("", None))
    if walk is None:
        raise InputError(f"{name} is neither a PNG nor a JPEG picture")
    header = walk(data, name)
    check_pixels(header.width, header.height, name)
    if bits is not None and header.bits != bits:
        raise InputError(f"{name} has {header.bits} bits per channel, expected {bits}: did another program save it?")
    image = _pixels(data)
    if image is None:
        raise InputError(f"{name} cannot be decoded as a {kind} image: fetch or save it again")
    return image if image.ndim == 2 else np.ascontiguousarray(image[:, :, 2::-1])


def _pixels(data: bytes) -> np.ndarray | None:
    """The pixels as OpenCV decodes them; None for a damaged picture."""
    import cv2

    printed: list[str] = []
    with _stderr_of_decoders(printed):
        try:
            image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION)
        except cv2.error:
            return None
    harmless = ("extraneous bytes before marker", "Unknown Adobe color transform code", "libpng warning")
    damaged = any(line.startswith(_DAMAGE) and not any(part in line for part in harmless) for line in printed)
    return None if image is None or damaged or (image.ndim == 3 and image.shape[2] < 3) else image


#: How a warning of libjpeg begins when it has filled in missing pixels.
_DAMAGE = ("Corrupt JPEG data", "Premature end of JPEG", "Invalid SOS parameters", "Inconsistent progression")


@contextmanager
def _stderr_of_decoders(printed: list[str]) -> Iterator[None]:
    """Collect the warnings that libjpeg and libpng print: only these reveal that missing pixels were filled in."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        printed += file.read().decode(errors="replace").splitlines()


def _walk_png(data: bytes, name: str) -> _Header:
    """Check every length and checksum, from the header to the end."""
    at, header = 8, None
    while True:
        if at + 12 > len(data):
            raise InputError(f"{name} is truncated after {len(data)} bytes: {_AGAIN}")
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if len(data) < at + 12 + length:
            raise InputError(f"{name} is truncated after {len(data)} bytes: {_AGAIN}")
        if zlib.crc32(kind + body) != struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]:
            raise InputError(f"{name} is damaged (checksum of chunk {kind.decode('latin1')!r} is wrong): {_AGAIN}")
        if header is None:
            if kind != b"IHDR" or length != 13:
                raise InputError(f"{name} is damaged (it does not begin with a header of 13 bytes): {_AGAIN}")
            width, height, depth = struct.unpack(">IIB", body[:9])
            header = _Header(width, height, depth)
        if kind == b"IEND":
            return header
        at += 12 + length


def _walk_jpeg(data: bytes, name: str) -> _Header:
    """Check the segments up to the marker that ends the picture; data that cameras append after it is ignored."""
    at, header, scans = 2, None, 0
    while True:
        while data[at : at + 2] == b"\xff\xff":  # fill bytes
            at += 1
        if at + 2 > len(data):
            raise InputError(f"{name} is damaged or truncated after {len(data)} bytes: {_AGAIN}")
        mark = data[at + 1]
        if data[at] != 0xFF:
            raise InputError(f"{name} is damaged (no segment begins at byte {at}): {_AGAIN}")
        if mark == 0xD9:
            break
        (length,) = struct.unpack(">H", data[at + 2 : at + 4].ljust(2, b"\0"))
        body = data[at + 4 : at + 2 + length]
        if length < 2 or len(body) < length - 2:
            raise InputError(f"{name} is damaged or truncated after {len(data)} bytes: {_AGAIN}")
        at += 2 + length
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            if len(body) < 6:
                raise InputError(f"{name} is damaged (its header is too short): {_AGAIN}")
            depth, height, width = struct.unpack(">BHH", body[:5])
            header = _Header(width, height, depth)
        if mark == 0xDA:
            scans += 1
            end = _MARK.search(data, at)
            at = end.start() if end else len(data)
    if header is None or not scans:
        raise InputError(f"{name} is damaged (it ends before any pixel): {_AGAIN}")
    return header


def _walk_hdr(data: bytes, name: str) -> _Header:
    found = _HDR_SIZE.search(data[:65536])
    if not found:
        raise InputError(f"{name} is damaged (its header has no size): {_AGAIN}")
    return _Header(int(found[2]), int(found[1]), 32)


def write_png(path: Path, image: np.ndarray) -> None:
    """Write (h, w) or (h, w, 3) uint8 or uint16 as a PNG."""
    import cv2

    if image.dtype not in (np.uint8, np.uint16):
        raise ValueError(f"a PNG holds uint8 or uint16, not {image.dtype}")
    ordered = image if image.ndim == 2 else image[:, :, ::-1]
    done, data = cv2.imencode(".png", np.ascontiguousarray(ordered), [cv2.IMWRITE_PNG_COMPRESSION, 3])
    if not done:
        raise ValueError(f"cannot encode {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.tobytes())


def quantise(image: np.ndarray, bits: int) -> np.ndarray:
    """Values in [0, 1] as unsigned integers, rounded; values outside are clipped.

    >>> quantise(np.array([0.0, 0.5, 1.2]), 16)
    array([    0, 32768, 65535], dtype=uint16)
    """
    top = 2**bits - 1
    return np.rint(np.clip(image, 0, 1) * top).astype(np.uint16 if bits == 16 else np.uint8)


def encode_webp(image: np.ndarray, quality: int = 80) -> bytes:
    """An (h, w, 3) uint8 picture as WebP bytes."""
    import cv2

    done, data = cv2.imencode(".webp", np.ascontiguousarray(image[:, :, ::-1]), [cv2.IMWRITE_WEBP_QUALITY, quality])
    if not done:
        raise ValueError("cannot encode a WebP picture")
    return data.tobytes()


def resize(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """Shrink by area averaging, or enlarge with nearest neighbours so that pixels stay visible."""
    import cv2

    smaller = width < image.shape[1] or height < image.shape[0]
    how = cv2.INTER_AREA if smaller else cv2.INTER_NEAREST
    scaled = cv2.resize(np.ascontiguousarray(image), (width, height), interpolation=how)
    return scaled if scaled.ndim == image.ndim else scaled[:, :, None]
