"""The sixteen sets of candle, one for every scene name of the published data: their pieces, places and skies."""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np

from diorama.render.mesh import rotation, scaling
from diorama.render.stage import RectLight
from diorama.worlds.candle.kit import (
    EYE,
    Colour,
    Piece,
    Set,
    at,
    beam,
    block,
    facade,
    grooved,
    hedge,
    lamp,
    mixed,
    noise,
    post,
    room,
    sky,
    speckled,
    tree,
    turned,
    veiled,
    window_light,
    wood,
)

_WHITE: Colour = (1.0, 1.0, 1.0)
_GROUND = at(0, 14) @ scaling((200, 200, 1))


def build(name: str) -> Set:
    """The set of a scene."""
    return SETS[name]()


def ground(texture: str, gloss: tuple[float, float] | None = None) -> Piece:
    """A floor to the horizon; its texture repeats every 24 m."""
    return Piece("ground", _GROUND, _WHITE, texture, gloss)


# Textures by name, made when first asked for


@lru_cache(maxsize=64)
def texture(name: str) -> np.ndarray:
    """A surface texture (n, n, 3), linear."""
    return TEXTURES[name]()


def _grass(dark: Colour, light: Colour) -> Callable[[], np.ndarray]:
    return lambda: speckled(dark, light, "grass", 0.8, slope=0.8)


def _road() -> np.ndarray:
    """Asphalt with faint tracks along the road."""
    asphalt = speckled((0.055, 0.05, 0.045), (0.15, 0.135, 0.12), "asphalt", 0.6)
    x = np.arange(len(asphalt)) / len(asphalt) * 24
    tracks = 1 - 0.18 * np.exp(-(((x % 6) - 3) ** 2) / 0.5)
    return (asphalt * tracks[None, :, None]).astype(np.float32)


def _planks() -> np.ndarray:
    """Pale boards, half a metre wide and 4 m long, each a little different."""
    grain = np.repeat(noise("planks", 0.9, 1024)[:, ::16], 16, axis=1)
    wood = mixed((0.31, 0.232, 0.172), (0.41, 0.312, 0.236), grain)
    return (0.4 * wood + 0.6 * grooved(wood, 36, 5, 0.0008, 0.75, stagger=True)).astype(np.float32)


def _door() -> np.ndarray:
    """Dark wood with the grain upright and four panels."""
    grain = np.repeat(noise("door", 0.8, 256)[::16], 16, axis=0)
    y, x = np.mgrid[0:256, 0:256] / 256
    across, down = np.abs((2 * x) % 1 - 0.5), np.abs((2 * y) % 1 - 0.5)
    rim = (np.maximum(across, down) > 0.36) & (np.maximum(across, down) < 0.40)
    return (mixed((0.035, 0.016, 0.009), (0.10, 0.05, 0.028), grain) * np.where(rim, 0.5, 1)[..., None]).astype(
        np.float32
    )


TEXTURES: dict[str, Callable[[], np.ndarray]] = {
    "leaf": lambda: mixed((0.02, 0.05, 0.01), (0.13, 0.24, 0.04), noise("leaf", 0.2, 64)),
    "park lawn": lambda: speckled((0.04, 0.048, 0.006), (0.155, 0.17, 0.034), "park", 0.75, slope=0.7),
    "clover": _grass((0.012, 0.035, 0.002), (0.13, 0.22, 0.02)),
    "lawn": _grass((0.035, 0.08, 0.008), (0.13, 0.22, 0.03)),
    "meadow": _grass((0.07, 0.11, 0.02), (0.20, 0.27, 0.07)),
    "garden lawn": _grass((0.045, 0.085, 0.01), (0.19, 0.28, 0.04)),
    "sand": lambda: speckled((0.20, 0.165, 0.11), (0.46, 0.40, 0.29), "sand", 0.55),
    "beach": lambda: speckled((0.38, 0.31, 0.24), (0.72, 0.62, 0.51), "beach", 0.5),
    "road": _road,
    "tarmac": lambda: speckled((0.15, 0.145, 0.14), (0.27, 0.26, 0.25), "tarmac", 0.55),
    "paving": lambda: grooved(speckled((0.15, 0.15, 0.16), (0.27, 0.27, 0.28), "paving", 0.4), 20, 20, 0.0012, 0.7),
    "slabs": lambda: grooved(speckled((0.62, 0.60, 0.56), (0.78, 0.77, 0.73), "slabs", 0.4), 10, 14, 0.0012, 0.75),
    "concrete": lambda: grooved(speckled((0.36, 0.36, 0.34), (0.50, 0.50, 0.48), "concrete", 0.35), 4, 4, 0.0006, 0.8),
    "warm paving": lambda: grooved(
        speckled((0.24, 0.17, 0.08), (0.42, 0.30, 0.14), "warm", 0.4), 24, 24, 0.0015, 0.7, stagger=True
    ),
    "planks": _planks,
    "door": _door,
    "parquet": lambda: grooved(speckled((0.30, 0.27, 0.22), (0.45, 0.41, 0.35), "parquet", 0.5), 40, 40, 0.0012, 0.75),
    "steel": lambda: grooved(speckled((0.20, 0.22, 0.25), (0.32, 0.34, 0.38), "steel", 0.3), 1, 60, 0.0015, 0.85),
    "plaster": lambda: mixed((0.60, 0.515, 0.42), (0.63, 0.545, 0.445), noise("wall", 2.2, 256)),
    "old wall": lambda: grooved(
        mixed((0.22, 0.15, 0.07), (0.42, 0.33, 0.19), noise("old wall", 1.2, 512)), 3, 12, 0.004, 0.6
    ),
    "hall wall": lambda: mixed((0.52, 0.53, 0.53), (0.66, 0.67, 0.67), noise("hall", 1.4, 256)),
    "brick": lambda: grooved(
        mixed((0.20, 0.075, 0.045), (0.36, 0.16, 0.10), noise("brick", 0.7, 512)), 48, 24, 0.002, 1.5, True
    ),
    "graffiti": lambda: np.where(
        (np.abs(noise("paint", 1.5, 512) - 0.5) < 0.06)[..., None],
        mixed((0.7, 0.7, 0.7), (0.15, 0.3, 0.6), noise("paint colour", 1.2, 512)),
        mixed((0.30, 0.28, 0.26), (0.5, 0.48, 0.45), noise("paint wall", 1.0, 512)),
    ).astype(np.float32),
    "flats": lambda: facade((0.42, 0.41, 0.39), (0.10, 0.12, 0.15), 14, 7),
    "office": lambda: facade((0.62, 0.62, 0.60), (0.14, 0.19, 0.24), 5, 12),
    "brick house": lambda: facade((0.26, 0.13, 0.09), (0.55, 0.56, 0.56), 5, 6),
    "evening house": lambda: facade((0.20, 0.07, 0.05), (0.04, 0.06, 0.10), 6, 8, 0.45, (2.2, 1.6, 0.8)),
    "evening tower": lambda: facade((0.07, 0.08, 0.12), (0.03, 0.05, 0.09), 12, 8, 0.5, (2.0, 1.6, 0.9)),
    "rock": lambda: mixed((0.10, 0.11, 0.10), (0.26, 0.25, 0.22), noise("rock", 1.1, 256)),
    "forest": lambda: mixed((0.03, 0.06, 0.03), (0.10, 0.14, 0.06), noise("forest", 0.8, 256)),
    "sea": lambda: mixed((0.03, 0.14, 0.20), (0.10, 0.30, 0.38), noise("sea", 1.0, 512)),
}


# Sets


def _indoor() -> Set:
    """A large room of which the camera sees one corner: a door in the left wall, a table at the right wall."""
    red: Colour = (0.40, 0.085, 0.038)
    door = [
        block(-22.85, 32.7, (0.4, 3.3, 7.5), (0.03, 0.016, 0.01)),
        block(-22.75, 32.7, (0.4, 2.8, 7.2), _WHITE, "door"),
    ]
    knob = Piece("ball", at(-22.4, 33.8, 3.1) @ scaling((0.12, 0.12, 0.3)), (0.5, 0.4, 0.2))
    legs = [post(-9.65 + r, 41.1 + d, 0.11, 2.2, red) for r in (-2.1, 2.1) for d in (-1.0, 1.0)]
    table = [block(-9.65, 41.1, (5.0, 2.7, 0.14), red, None, 2.2), block(-9.65, 41.1, (4.4, 2.2, 0.4), red, None, 1.8)]
    skirting = [
        block(0, 44.75, (46, 0.1, 0.22), (0.66, 0.62, 0.56)),
        block(-22.95, 21.8, (0.1, 46, 0.22), (0.66, 0.62, 0.56)),
    ]
    walls = room(23, 44.8, 17, "plaster", (0.75, 0.72, 0.68), -1.2)
    pieces = turned([*walls, *door, knob, *table, *legs, *skirting], -45, at(-23, 44.8), at(0, 44.8))
    floor = Piece(
        "ground", at(0, 14) @ rotation((0, 0, 1), 0.3) @ scaling((200, 200, 1)), _WHITE, "planks", (0.04, 0.2)
    )
    back = RectLight((-7.0, EYE[1] + 6, 5.0), (14.0, 0.0, 0.0), (0.0, 0.0, 11.0), (1.0, 0.98, 0.93))
    lamps = [back, lamp(0, 22, 16.8, (14, 14), 1.1, (1, 0.98, 0.94)), window_light(-19, 12, 4, (10, 9), 1.2, 1)]
    return Set([floor, *pieces], sky((0, 0, 0), (0, 0, 0)), lamps, 0.24, 64)


def _outdoor() -> Set:
    towers = [
        (-36, 140, 11, 26),
        (-33, 138, 18, 10),
        (-9.5, 140, 9, 15),
        (-2, 144, 8, 13),
        (17, 140, 13, 13),
        (37, 140, 18, 12),
    ]
    houses = [block(r, d, (w, 12, h), _WHITE, "flats") for r, d, w, h in towers]
    park = wood(-75, 80, 108, (3.5, 7.5), 5.5, (0.8, 0.85, 0.8))
    gate = [block(r, 75, (0.9, 0.9, 4.2), (0.05, 0.05, 0.05)) for r in (4, 8.5, 17, 21.5)]
    gate += [block(r, 75, (6.2, 1, 0.7), (0.05, 0.05, 0.05), None, 4.2) for r in (6.2, 19.2)]
    overcast = veiled(sky((0.50, 0.55, 0.62), (0.80, 0.80, 0.78), 1.0, None, 0.68, 1.5), (-50, 62, 3.6), 14)
    return Set([ground("park lawn"), *houses, *park, *gate], overcast, (), 0.165)


def _playground_set() -> Set:
    blue: Colour = (0.02, 0.05, 0.30)
    frame = [post(-7.6, 36, 0.34, 8.2, blue), post(5.6, 36, 0.30, 7.2, blue), post(8.0, 37, 0.2, 4, blue)]
    frame += [beam((-7.6, 36, 6.9), (5.6, 36, 6.2), 0.09, blue), beam((-13, 34, 5.5), (-7.6, 36, 6.9), 0.09, blue)]
    rungs = [beam((r, 36, 6.55 - 0.05 * (r + 7)), (r + 0.6, 36, 5.6), 0.06, blue) for r in np.arange(-5.5, 4, 0.9)]
    ring = [(-11.5 + 1.9 * np.cos(t), 33, 3.4 + 2.2 * np.sin(t)) for t in np.linspace(0, 2 * np.pi, 17)]
    net = [beam(a, b, 0.07, blue) for a, b in pairwise(ring)]
    net += [beam((-13.2, 33, h), (-9.8, 33, h), 0.05, blue) for h in (2.4, 3.4, 4.4)]
    slide = Piece("slide", at(9.6, 37, 0.3), (0.0, 0.42, 0.36), None, (0.04, 0.15))
    trees = wood(-60, 60, 50, (8, 13), 5.0, (0.9, 1.0, 0.8)) + hedge(-45, 45, 45, 3.4, (0.8, 1.0, 0.6))
    lawn = Piece("apron", at(0, 20.5, 0.01), _WHITE, "clover")
    grow = at(0, 0) @ scaling(1.6) @ np.linalg.inv(at(0, 0))  # farther away and as large to the eye
    yard = [p._replace(transform=grow @ p.transform) for p in (*frame, *rungs, *net, slide, *trees)]
    bright = sky((0.16, 0.36, 0.62), (0.62, 0.72, 0.74), 0.35, (-62, 46, 4.0))
    return Set([ground("sand"), lawn, *yard], bright, (), 0.138)


def _bridge() -> Set:
    rails = [block(s * 8.6, 40, (0.6, 110, 1.1), (0.46, 0.40, 0.33)) for s in (-1, 1)]
    stones = [block(s * 8.6, d, (0.9, 0.9, 1.5), (0.52, 0.46, 0.38)) for s in (-1, 1) for d in range(18, 92, 6)]
    trees = wood(-60, -14, 66, (6, 10), 6, (0.75, 0.8, 0.7)) + wood(14, 60, 70, (6, 12), 6, (0.75, 0.8, 0.7))
    ridge = Piece("hill", at(10, 330) @ scaling((260, 90, 26)), _WHITE, "forest")
    clear = sky((0.10, 0.20, 0.42), (0.50, 0.56, 0.62), 0.15, (75, 28, 4.5))
    return Set([ground("road"), *rails, *stones, *trees, ridge], clear, (), 0.12)


def _city_square() -> Set:
    houses = [block(-22, 70, (40, 14, 15), _WHITE, "office"), block(18, 62, (26, 12, 17), _WHITE, "office")]
    roof = [block(-22, 70, (42, 15, 3), (0.25, 0.08, 0.05), None, 15)]
    stalls = [block(r, 48, (3, 3, 0.2), (0.75, 0.72, 0.68), None, 3) for r in (2, 6, 10, 14)]
    stalls += [post(r, 48, 0.08, 3, (0.2, 0.2, 0.2)) for r in (2, 6, 10, 14)]
    trees = wood(38, 70, 75, (8, 11), 7)
    return Set(
        [ground("paving"), *houses, *roof, *stalls, *trees],
        sky((0.25, 0.42, 0.72), (0.75, 0.80, 0.85), 0.5, (-100, 38, 2.5)), (), 0.2,
    )  # fmt: skip


def _hall() -> Set:
    walls = room(13, 32, 14, "old wall", (0.4, 0.33, 0.22))
    stove = [
        block(8.6, 30.5, (5, 2, 8), (0.09, 0.05, 0.03)),
        block(8.6, 30.2, (3.4, 2.2, 4.4), (0.05, 0.03, 0.02), None, 0.4),
    ]
    stove += [Piece("ball", at(8.6, 30.5, 8.2) @ scaling((2.3, 0.9, 1.6)), (0.11, 0.06, 0.04))]
    door = [
        block(-3.6, 31.95, (4.4, 0.2, 7.6), (0.5, 0.4, 0.22)),
        block(-3.6, 31.85, (3.4, 0.2, 7.0), (0.75, 0.72, 0.66)),
    ]
    panes = [window_light(-12.9, d, 2.2, (4.5, 7.5), 5, 1) for d in (12, 20, 27.5)]
    lamps = [*panes, lamp(0, 10, 13.8, (6, 10), 2.0, (1, 0.92, 0.8))]
    return Set([ground("parquet", (0.03, 0.15)), *walls, *stove, *door], sky((0, 0, 0), (0, 0, 0)), lamps, 0.16)


def _grassland() -> Set:
    rock = Piece("hill", at(-55, 330) @ scaling((85, 60, 42)), _WHITE, "rock")
    far = wood(-150, 60, 210, (10, 15), 9, (0.55, 0.65, 0.6))
    near = wood(26, 62, 70, (15, 24), 7, (1.1, 1.0, 0.6))
    haze = sky((0.30, 0.45, 0.72), (0.70, 0.75, 0.80), 0.6, (-75, 42, 1.8))
    return Set([ground("meadow"), rock, *far, *near], haze, (), 0.17)


def _garage() -> Set:
    walls = room(22, 58, 9.5, "hall wall", (0.62, 0.62, 0.62))
    pillars = [block(r, d, (0.9, 0.9, 9.5), (0.7, 0.7, 0.7)) for r in (-11, 9.5) for d in (30, 40, 50)]
    lift = [block(-8.8, 27, (0.5, 0.5, 9), (0.35, 0.02, 0.04)), block(-8.8, 27, (2.8, 1.4, 0.25), (0.1, 0.1, 0.1))]
    beams = [block(0, d, (44, 0.5, 0.8), (0.68, 0.68, 0.68), None, 8.4) for d in (22, 32, 42, 52)]
    doors = [
        block(r, 57.8, (4, 0.2, 3.6), c)
        for r, c in ((-14, (0.45, 0.3, 0.15)), (-3, (0.2, 0.3, 0.5)), (6, (0.45, 0.3, 0.15)))
    ]
    cars = [
        block(13.5, 44, (4.6, 2, 1.0), (0.02, 0.02, 0.025), None, 0.4),
        block(13.3, 44, (2.6, 1.8, 0.8), (0.05, 0.06, 0.07), None, 1.4),
    ]
    tubes = [lamp(r, d, 8.2, (4.5, 0.4), 22) for r in (-15, -5, 5, 15) for d in (12, 27, 37, 47)]
    pieces = [ground("concrete", (0.03, 0.2)), *walls, *pillars, *lift, *beams, *doors, *cars]
    return Set(pieces, sky((0, 0, 0), (0, 0, 0)), tubes, 0.3)


def _street() -> Set:
    left = [block(-15, d, (10, 16, h), _WHITE, "brick house") for d, h in ((34, 15), (52, 12), (72, 11))]
    fence = [
        block(13.5, 30, (0.3, 46, 3.2), (0.04, 0.04, 0.05)),
        *(post(13.4, d, 0.12, 4, (0.03, 0.03, 0.03)) for d in range(8, 54, 3)),
    ]
    wall = [block(16, 36, (3, 46, 4.4), _WHITE, "brick")]
    end = [block(-4, 95, (26, 8, 11), _WHITE, "brick house"), block(18, 90, (18, 8, 9), _WHITE, "brick house")]
    bins = [block(-8.6, 30, (1.6, 1.4, 1.9), (0.16, 0.03, 0.16)), block(-8.8, 33, (1.6, 1.4, 1.6), (0.4, 0.42, 0.45))]
    lines = [Piece("sheet", at(4.5, 34, 0.01) @ scaling((0.08, 20, 1)), (0.6, 0.6, 0.6)), *tree(-5, 62, 8, 1.0)]
    lines += [Piece("sheet", at(7.3, d, 0.01) @ scaling((2.8, 0.08, 1)), (0.6, 0.6, 0.6)) for d in (22, 30, 38)]
    gray = sky((0.30, 0.31, 0.34), (0.42, 0.43, 0.45), 1.0, None, 0.45)
    return Set([ground("tarmac"), *left, *fence, *wall, *end, *bins, *lines], gray, (), 0.17)


def _beach() -> Set:
    sea = Piece("sheet", at(0, 175, 0.02) @ scaling((400, 100, 1)), _WHITE, "sea", (0.04, 0.1))
    rock = Piece("hill", at(-130, 300) @ scaling((110, 60, 48)), _WHITE, "rock")
    town = [
        block(r, 240, (6, 6, h), (0.6, 0.5, 0.4))
        for r, h in zip(range(-110, -30, 9), (5, 8, 6, 9, 5, 7, 6, 8, 5), strict=True)
    ]
    clear = sky((0.14, 0.32, 0.62), (0.62, 0.74, 0.82), 0.05, (80, 48, 4.0))
    return Set([ground("beach"), sea, rock, *town], clear, (), 0.34)


def _station() -> Set:
    roof = Piece("vault", at(0, 40) @ scaling((30, 70, 22)), (1.2, 1.2, 1.2), "rock")
    ribs = [
        beam((30 * np.cos(a), d, 22 * np.sin(a)), (30 * np.cos(b), d, 22 * np.sin(b)), 0.35, (0.04, 0.04, 0.04))
        for d in (35, 55, 75, 95) for a, b in zip(np.linspace(0, np.pi, 13), np.linspace(0, np.pi, 13)[1:], strict=False)
    ]  # fmt: skip
    train = [
        block(-13, 40, (3.4, 40, 4), (0.5, 0.04, 0.05), None, 0.3),
        block(-13, 40, (3.42, 40, 0.7), (0.6, 0.6, 0.6), None, 2.6),
    ]
    far = [
        block(0, 92, (56, 1, 4), (0.08, 0.07, 0.07), None, 5),
        block(6, 91, (14, 1, 1.2), (0.4, 0.04, 0.03), None, 6),
    ]
    track = [Piece("sheet", at(11.5, 50, 0.01) @ scaling((1.6, 60, 1)), (0.06, 0.055, 0.05))]
    posts = [post(2.6, d, 0.25, 5, (0.1, 0.1, 0.1)) for d in (44, 60, 76)]
    lights = [lamp(0, d, 20, (26, 8), 2.6) for d in (10, 30, 50)]
    bright = sky((0.55, 0.58, 0.62), (0.7, 0.7, 0.7))
    return Set([ground("slabs"), roof, *ribs, *train, *far, *track, *posts], bright, lights, 0.2)


def _tunnel() -> Set:
    tube = Piece("vault", at(0, 15) @ scaling((11.5, 24, 8.4)), _WHITE, "brick")
    walls = [block(s * 11.2, 15, (0.4, 48, 3.2), _WHITE, "graffiti") for s in (-1, 1)]
    kerbs = [block(s * 9.6, 30, (3.0, 80, 0.25), (0.3, 0.29, 0.28)) for s in (-1, 1)]
    lines = [Piece("sheet", at(s * 7.7, 40, 0.015) @ scaling((0.07, 60, 1)), (0.5, 0.4, 0.05)) for s in (-1, 1)]
    bollards = [post(s * 8.6, d, 0.22, 2.0, (0.03, 0.03, 0.03)) for s in (-1, 1) for d in (26, 32, 38)]
    houses = [
        block(-18, 60, (10, 40, 14), _WHITE, "brick house"),
        block(17, 62, (9, 46, 15), _WHITE, "office"),
        *wood(-6, 8, 85, (7, 9), 6),
    ]
    lights = [lamp(s * 8, d, 5.6, (0.8, 3.0), 14, (1, 0.85, 0.6)) for s in (-1, 1) for d in (6, 19, 29)]
    pale = sky((0.30, 0.31, 0.33), (0.36, 0.36, 0.36))
    pieces = [ground("tarmac", (0.03, 0.2)), tube, *walls, *kerbs, *lines, *bollards, *houses]
    return Set(pieces, pale, lights, 0.19)


def _moonlit_grass() -> Set:
    trees = wood(-60, -16, 60, (6, 10), 6) + wood(-14, 60, 85, (5, 9), 6)
    house = [block(8, 82, (16, 6, 4), (0.9, 0.6, 0.25)), block(8, 82, (18, 8, 2), (0.05, 0.04, 0.04), None, 4)]
    lights = [lamp(r, 78, 4.5, (2, 2), 30, (1, 0.7, 0.35)) for r in (3, 8, 13)]
    night = sky((0.055, 0.06, 0.075), (0.085, 0.085, 0.09), 0.4, (60, 45, 0.12), 0.08)
    return Set([ground("lawn"), *trees, *house], night, lights, 0.035)


def _dusk_city() -> Set:
    left = [
        block(-16, 44, (14, 26, 16), _WHITE, "evening house"),
        block(-10, 74, (12, 16, 13), _WHITE, "evening house"),
    ]
    towers = [block(r, 150, (14, 12, h), _WHITE, "evening tower") for r, h in ((12, 16), (30, 24), (48, 36), (66, 20))]
    stalls = [block(r, 38 + r, (3, 3, 1.2), (0.5, 0.25, 0.05)) for r in (-8, -5)]
    lamps = [lamp(r, d, 9, (1.2, 1.2), 42, (1, 0.66, 0.28)) for r, d in ((-8, 14), (8, 20), (-6, 34), (9, 44))]
    masts = [post(r, d, 0.1, 9, (0.1, 0.1, 0.1)) for r, d in ((9, 44), (14, 60))]
    dusk = sky((0.14, 0.20, 0.42), (0.45, 0.42, 0.52), 0.7, None, 0.4)
    return Set([ground("warm paving"), *left, *towers, *stalls, *masts], dusk, lamps, 0.2)


def _skywalk() -> Set:
    floor = Piece("ground", _GROUND, _WHITE, "steel", (0.05, 0.12))
    top = [block(0, 30, (15, 84, 0.3), (0.42, 0.44, 0.47), None, 8.6)]
    sills = [block(s * 7.8, 30, (0.5, 84, 1.4), (0.10, 0.11, 0.13)) for s in (-1, 1)]
    ribs = [
        beam((s * 8.2, d, 0), (s * 6.9, d + 2.2, 8.7), 0.22, (0.05, 0.06, 0.07))
        for s in (-1, 1)
        for d in range(2, 70, 6)
    ]
    rails = [beam((s * 7.2, -8, 2.6), (s * 7.2, 72, 2.6), 0.12, (0.20, 0.06, 0.04)) for s in (-1, 1)]
    end = [block(0, 73, (15, 0.5, 9), (0.12, 0.12, 0.12))]
    outside = [block(-42, 60, (30, 40, 26), _WHITE, "office"), block(44, 70, (26, 40, 14), _WHITE, "office")]
    strip = [lamp(0, 30, 8.5, (0.5, 76), 14)]
    pale = sky((0.55, 0.62, 0.75), (0.85, 0.88, 0.92), 0.5, None, 1.0)
    return Set([floor, *top, *sills, *ribs, *rails, *end, *outside], pale, strip, 0.16)


def _garden() -> Set:
    brown: Colour = (0.30, 0.21, 0.12)
    fence = [post(r, 38, 0.28, 2.6, brown) for r in (-12, -5.5, 2, 5, 11, 16)]
    fence += [beam((2, 38, h), (16, 38, h), 0.09, brown) for h in (0.9, 2.3)]
    fence += [beam((-5.5, 38, 1.4), (2, 38, 1.9), 0.10, brown)]
    deck = [block(-9.5, 33 + 0.8 * i, (6, 0.6, 0.3), (0.34, 0.26, 0.18), None, 0.25 * i) for i in range(8)]
    stones = [
        Piece("ball", at(r, 36, 0.1) @ rotation((0, 0, 1), r) @ scaling((w, 0.8, 0.55)), (0.34, 0.31, 0.27))
        for r, w in ((-2.5, 1.4), (4.5, 1.7))
    ]
    green = wood(-55, 55, 62, (11, 17), 6, (1.0, 1.1, 0.7)) + hedge(-40, 40, 48, 4.2, (1.0, 1.25, 0.6))
    blue = sky((0.10, 0.34, 0.55), (0.50, 0.72, 0.72), 0.05, (-70, 55, 5.0))
    return Set([ground("garden lawn"), *fence, *deck, *stones, *green], blue, (), 0.17)


SETS: dict[str, Callable[[], Set]] = {
    "indoor": _indoor,
    "outdoor": _outdoor,
    "playground": _playground_set,
    "bridge": _bridge,
    "city square": _city_square,
    "hall": _hall,
    "grassland": _grassland,
    "garage": _garage,
    "street": _street,
    "beach": _beach,
    "station": _station,
    "tunnel": _tunnel,
    "moonlit grass": _moonlit_grass,
    "dusk city": _dusk_city,
    "skywalk": _skywalk,
    "garden": _garden,
}
