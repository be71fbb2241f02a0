"""Panoramas for candle: photographs of its own sets, or real ones from a folder; the view of the camera and the light.

A panorama is seen from the camera's place and is infinitely far, as in the published simulator. It is stored twice: as a
sharp plate of what the camera may see, and as a small lat-long map that lights the object and the floor.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from diorama.core.errors import InputError
from diorama.core.keys import source_key
from diorama.core.scene import digest
from diorama.io.files import cache_folder
from diorama.io.locks import locked
from diorama.io.saved import read_archive
from diorama.render.stage import Camera, Environment, RectLight, Stage
from diorama.worlds.candle.kit import EYE, Set, instances, meshes
from diorama.worlds.candle.sets import SETS, build, texture

#: Half the width of the published view over its distance (18 mm / 50 mm), and the pitch down in degrees.
HALF, PITCH = 0.36, 0.94
#: The largest jitter of the camera in degrees; plates show this much more on every side.
TURN = 1.0
_BOUNCES, _LIGHT, _FACE = 2, 256, 48
KINDS = (".exr", ".hdr", ".png", ".jpg")
_LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


class Panorama(NamedTuple):
    """The background behind the object and the light that falls on it, in the same unit."""

    plate: np.ndarray  # (h, w, 3): the view of the unturned camera and TURN degrees more
    light: Environment
    floor: tuple[float, float, float]  # reflectance of the floor, from how bright it is


def view(pitch: float = 0.0, yaw: float = 0.0) -> np.ndarray:
    """Rows right, up, forward of the camera rotated by some degrees about its own axes (up and to the left)."""
    down = np.radians(PITCH)
    basis = np.array([[-1, 0, 0], [0, -np.sin(down), np.cos(down)], [0, -np.cos(down), -np.sin(down)]])
    a, b = np.radians(pitch), np.radians(yaw)
    right, up, forward = basis
    up, forward = np.cos(a) * up - np.sin(a) * forward, np.cos(a) * forward + np.sin(a) * up
    right, forward = np.cos(b) * right + np.sin(b) * forward, np.cos(b) * forward - np.sin(b) * right
    return np.stack([right, up, forward])


def directions(basis: np.ndarray, width: int, height: int, half: float) -> np.ndarray:
    """The directions (h, w, 3) through the pixel centres of a view; `half` is half its width at distance 1."""
    x = ((np.arange(width) + 0.5) / width * 2 - 1) * half
    y = (1 - (np.arange(height) + 0.5) / height * 2) * half * height / width
    found: np.ndarray = basis[2] + x[None, :, None] * basis[0] + y[:, None, None] * basis[1]
    return found


def plate_half() -> float:
    """Half the width of a plate at distance 1."""
    return float(np.tan(np.arctan(HALF) + np.radians(1.6 * TURN)))


def backdrop(panorama: Panorama, basis: np.ndarray, width: int, height: int) -> np.ndarray:
    """The plate as seen by the rotated camera, with four samples per pixel."""
    import cv2

    d = directions(basis, 2 * width, 2 * height, HALF) @ view().T
    h, w = panorama.plate.shape[:2]
    x, y = d[..., 0] / d[..., 2] / plate_half(), d[..., 1] / d[..., 2] / (plate_half() * h / w)
    where = ((x + 1) * w / 2 - 0.5).astype(np.float32), ((1 - y) * h / 2 - 0.5).astype(np.float32)
    seen = cv2.remap(panorama.plate, *where, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return cv2.resize(seen, (width, height), interpolation=cv2.INTER_AREA)


def panorama(scene: str, hdri: str | None, width: int) -> Panorama:
    """The panorama of a scene, for images of some width."""
    scale = 1.5 * plate_half() / HALF
    w = round(width * scale / 2) * 2
    h = round(w * 0.75)
    return _staged(scene, w, h) if hdri is None else _recorded(scene, hdri, w, h)


# From sets


@lru_cache(maxsize=len(SETS))
def _staged(scene: str, width: int, height: int) -> Panorama:
    """The photograph of a set, rendered once and kept in the user's cache under a key of all that determines it."""
    key = digest([source_key(Path(__file__)), scene, width, height])
    file = cache_folder() / f"candle-{key}.npz"
    try:
        with locked(file.with_suffix(".lock"), wait=True):
            kept = _kept(file)
            if kept is None:
                _store(file, _taken(scene, width, height))
                kept = _kept(file)
            if kept is not None:
                return kept
            return _taken(scene, width, height)
    except OSError:  # the cache cannot be written to
        return _taken(scene, width, height)


def _kept(file: Path) -> Panorama | None:
    """The panorama of a file in the cache; None if there is none or it is damaged."""
    if not file.is_file():
        return None
    try:
        kept = read_archive(file, ("plate", "light", "floor"))
        return Panorama(kept["plate"], Environment(kept["light"], seen=False), tuple(kept["floor"].tolist()))
    except (InputError, KeyError):
        return None


def _store(file: Path, made: Panorama) -> None:
    temporary = file.with_suffix(f".{os.getpid()}.npz")
    np.savez(temporary, plate=made.plate, light=made.light.image, floor=np.array(made.floor))
    os.replace(temporary, file)


def _taken(scene: str, width: int, height: int) -> Panorama:
    made = build(scene)
    surfaces, share = _photograph(made, view(), plate_half(), width, height, made.samples)
    plate = surfaces + share[..., None] * made.sky.even(directions(view(), width, height, plate_half()))
    return _exposed(plate, _light_map(made), made.key)


def _photograph(
    made: Set, basis: np.ndarray, half: float, width: int, height: int, samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """The image of a set without its sky from a camera at EYE, and the share of the sky in every pixel."""
    from diorama.render.path import render

    fov = float(np.degrees(2 * np.arctan(half * height / width)))
    at, up = np.add(EYE, basis[2]).tolist(), basis[1].tolist()
    picture = render(_stage(made, Camera(EYE, tuple(at), tuple(up), fov)), width, height, samples, _BOUNCES)
    image, share = despeckled(picture["image"]), 1 - picture["coverage"]
    for light in made.lamps:  # the renderer shows lamps in reflections only
        reach, inside = _meet(light, directions(basis, width, height, half))
        front = inside & (reach < picture["depth"])
        image, share = np.where(front[..., None], np.array(light.radiance), image), np.where(front, 0, share)
    return image, share


def despeckled(image: np.ndarray) -> np.ndarray:
    """The image without lone bright dots, which rare light paths leave.

    A dot is brighter than all but one of its eight neighbours by more than their own spread explains: a few per cent on an
    even wall, more than a factor of two among leaves.
    """
    h, w = image.shape[:2]
    wide = np.pad(image, ((1, 1), (1, 1), (0, 0)), mode="edge")
    around = np.stack([wide[i : i + h, j : j + w] for i, j in np.ndindex(3, 3) if (i, j) != (1, 1)])
    bright = np.sort(around @ _LUMINANCE, axis=0)
    spread = bright[-2] - bright[1]
    dots = image @ _LUMINANCE > np.minimum(2 * bright[-2], 1.03 * bright[-2] + spread) + 1e-3
    return np.where(dots[..., None], np.median(around, axis=0), image).astype(np.float32)


def _stage(made: Set, camera: Camera) -> Stage:
    pieces = list(made.pieces)
    names = {piece.texture for piece in pieces if piece.texture}
    around = Environment(made.sky.even(map_directions(_LIGHT // 4)).astype(np.float32), seen=False)
    lamps = [*made.lamps, *([made.sky.sun] if made.sky.sun else [])]
    return Stage(meshes(), instances(pieces), camera, lamps, {n: texture(n) for n in names}, around)


def _meet(light: RectLight, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distance of a lamp along every direction, in lengths of the direction, and whether the ray hits its front."""
    u, v = np.array(light.edge_u), np.array(light.edge_v)
    normal, corner = np.cross(u, v), np.subtract(light.corner, EYE)
    facing = d @ normal
    t = (corner @ normal) / np.where(facing < 0, facing, -1e-12)
    p = t[..., None] * d - corner
    a, b = p @ u / (u @ u), p @ v / (v @ v)
    return t, (facing < 0) & (t > 0) & (a >= 0) & (a <= 1) & (b >= 0) & (b <= 1)


def map_directions(height: int) -> np.ndarray:
    """The directions (h, 2h, 3) of a lat-long map: row 0 is +z, columns run from azimuth −π to π."""
    theta = (np.arange(height) + 0.5) / height * np.pi
    phi = (np.arange(2 * height) + 0.5) / height * np.pi - np.pi
    x, y = np.sin(theta)[:, None] * np.cos(phi), np.sin(theta)[:, None] * np.sin(phi)
    return np.stack([x, y, np.broadcast_to(np.cos(theta)[:, None], x.shape)], -1)


_FACES = tuple(
    np.array(rows, float)
    for rows in (
        [[0, -1, 0], [0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 0, 1], [-1, 0, 0]], [[1, 0, 0], [0, 0, 1], [0, 1, 0]],
        [[-1, 0, 0], [0, 0, 1], [0, -1, 0]], [[1, 0, 0], [0, -1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, -1]],
    )
)  # fmt: skip


def _light_map(made: Set) -> np.ndarray:
    """The surroundings as a lat-long map: surfaces from six photographs, the sky itself where nothing covers it."""
    d = map_directions(_LIGHT)
    light = made.sky.even(d) + (made.sky.disc(d) if made.sky.disc else 0)
    for basis in _FACES:
        surfaces, share = _photograph(made, basis, 1.0, _FACE, _FACE, made.samples)
        local = d @ basis.T
        inside = local[..., 2] >= np.abs(local[..., :2]).max(-1)
        x, y = (local[inside][:, i] / local[inside][:, 2] for i in (0, 1))
        column, row = (np.clip(((v + 1) / 2 * _FACE).astype(int), 0, _FACE - 1) for v in (x, -y))
        light[inside] = surfaces[row, column] + share[row, column][:, None] * light[inside]
    return light


def _exposed(plate: np.ndarray, light: np.ndarray, key: float) -> Panorama:
    """Scale plate and light so that the plate's log-average is `key` (Reinhard et al. 2002); the floor's reflectance is the
    ratio of the irradiance from below to that from above.

    Light from below the horizon is then set to 0: the floor hides it from every surface, and samples of it would be wasted.
    """
    from diorama.render.catcher import irradiance

    scale = key / np.exp(np.log(plate @ _LUMINANCE + 1e-4).mean())
    image = np.maximum(light * scale, 0).astype(np.float32)
    floor = np.clip(irradiance(image[::-1]) / np.maximum(irradiance(image), 1e-9), 0.03, 0.8).tolist()
    image[len(image) // 2 :] = 0
    return Panorama((plate * scale).astype(np.float32), Environment(image, seen=False), (floor[0], floor[1], floor[2]))


# From files


def panorama_files(hdri: str) -> dict[str, Path]:
    """The file of every scene: the one with its name, or else the next of the other files in alphabetical order."""
    found = sorted(path for path in Path(hdri).expanduser().glob("*") if path.suffix.lower() in KINDS)
    if not found:
        raise InputError(f"candle: hdri={hdri!r} holds no panorama; put .exr or .hdr lat-long images there")
    named = {path.stem.lower().replace("_", " "): path for path in found}
    others = [path for name, path in named.items() if name not in SETS] or found
    places = {name: i for i, name in enumerate(name for name in SETS if name not in named)}
    return {name: named[name] if name in named else others[places[name] % len(others)] for name in SETS}


def read_panorama(path: Path) -> np.ndarray:
    """A lat-long picture (h, 2h, 3), linear, rotated so that its middle is in view and columns follow the azimuth."""
    from diorama.core.frame import srgb_to_linear
    from diorama.worlds.recorded.reading import colour, read_picture

    image = colour(read_picture(path))
    image = image if path.suffix.lower() in (".exr", ".hdr") else srgb_to_linear(image)
    h, w = image.shape[:2]
    if abs(w - 2 * h) > 2:
        raise InputError(f"{path} is {w}×{h} pixels; a panorama is twice as wide as high")
    image = np.clip(np.nan_to_num(image, posinf=6e4), 0, None).astype(np.float32)
    return np.roll(image[:, ::-1], -(w // 4), axis=1)


@lru_cache(maxsize=len(SETS))
def _recorded(scene: str, hdri: str, width: int, height: int) -> Panorama:
    import cv2

    image = read_panorama(panorama_files(hdri)[scene])
    d = directions(view(), 2 * width, 2 * height, plate_half())
    d /= np.linalg.norm(d, axis=-1, keepdims=True)
    h, w = image.shape[:2]
    x = (np.arctan2(d[..., 1], d[..., 0]) + np.pi) / (2 * np.pi) * w - 0.5
    y = np.arccos(d[..., 2]) / np.pi * h - 0.5
    seen = cv2.remap(image, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_WRAP)
    plate = np.maximum(cv2.resize(seen, (width, height), interpolation=cv2.INTER_AREA), 0)
    light = cv2.resize(image, (2 * _LIGHT, _LIGHT), interpolation=cv2.INTER_AREA)
    return _exposed(plate, light.astype(np.float64), build(scene).key)
