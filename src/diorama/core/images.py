"""Image files without loss: 16-bit RGB stays 16-bit, and a damaged file is an error that names it."""

import struct
import zlib
from pathlib import Path

import numpy as np

from diorama.core.errors import InputError

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def read_png(path: Path, bits: int | None = None) -> np.ndarray:
    """A PNG as stored: (h, w) or (h, w, 3) uint8 or uint16, RGB order, alpha dropped.

    Pillow reduces 16-bit RGB to 8 bits and OpenCV returns half an image for a truncated file; here the file's chunks are
    checked first. With `bits`, another depth is refused.
    """
    depth = _check_png(path)
    if bits is not None and depth != bits:
        raise InputError(
            f"{path} has {depth} bits per channel, expected {bits}: was it saved again by another program?"
        )
    import cv2

    image = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    if image is None:
        raise InputError(f"{path} cannot be decoded as a PNG image: fetch or save it again")
    return image if image.ndim == 2 else np.ascontiguousarray(image[:, :, 2::-1])


def _check_png(path: Path) -> int:
    """Walk the chunks of a PNG: every length and checksum must fit. Returns the bit depth."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} is missing") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if data[:8] != _SIGNATURE:
        raise InputError(f"{path} is not a PNG file")
    at, depth = 8, 0
    while True:
        if at + 12 > len(data):
            raise InputError(f"{path} is truncated after {len(data)} bytes: fetch it again")
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        if len(body) < length or len(data) < at + 12 + length:
            raise InputError(f"{path} is truncated after {len(data)} bytes: fetch it again")
        if zlib.crc32(kind + body) != struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]:
            raise InputError(f"{path} is damaged (checksum of chunk {kind.decode('latin1')} is wrong): fetch it again")
        if kind == b"IHDR":
            depth = body[8]
        if kind == b"IEND":
            return depth
        at += 12 + length


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
    scaled = cv2.resize(
        np.ascontiguousarray(image), (width, height), interpolation=cv2.INTER_AREA if smaller else cv2.INTER_NEAREST
    )
    return scaled if scaled.ndim == image.ndim else scaled[:, :, None]
