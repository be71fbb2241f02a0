"""Reads OpenEXR pictures with the OpenEXR package: the wheels of OpenCV are built without it."""

from pathlib import Path

import numpy as np

from diorama.core.errors import InputError
from diorama.io.files import check_pixels, check_regular


def read_exr(path: Path) -> np.ndarray:
    """The colour, or else the luminance, of an EXR as (h, w, 3) or (h, w, 1) float32."""
    try:
        import OpenEXR  # type: ignore[import-not-found]
    except ImportError as error:
        raise InputError(f"{path} needs the package OpenEXR: pip install OpenEXR, or save it as .npy") from error
    check_regular(path)
    try:
        with OpenEXR.File(str(path), header_only=True) as file:
            low, high = file.header()["dataWindow"]
        check_pixels(int(high[0]) - int(low[0]) + 1, int(high[1]) - int(low[1]) + 1, path)
        with OpenEXR.File(str(path), separate_channels=True) as file:
            channels = {name: channel.pixels.astype(np.float32) for name, channel in file.channels().items()}
    except InputError:
        raise
    except (RuntimeError, OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"{path} cannot be decoded as OpenEXR: {error}") from error
    names = next((n for n in (("R", "G", "B"), ("Y",)) if set(n) <= set(channels)), None)
    if names is None:
        raise InputError(f"{path} has the channels {', '.join(sorted(channels))}, expected R, G, B or Y")
    return np.stack([channels[name] for name in names], axis=2)
