"""The rules of CANDLE written out image by image, as the papers and the released code tell them."""

import itertools
import math

SCENES = [
    "indoor",
    "outdoor",
    "playground",
    "bridge",
    "city_square",
    "hall",
    "grassland",
    "garage",
    "street",
    "beach",
    "station",
    "tunnel",
    "moonlit_grass",
    "dusk_city",
    "skywalk",
    "garden",
]
LIGHTS = ("left", "middle", "right")
OBJECTS = ("cube", "sphere", "cylinder", "cone", "torus")
COLORS = ("red", "blue", "yellow", "purple", "orange")
SIZES = (1.5, 2.0, 2.5)
ROTATIONS = (0, 15, 30, 45, 60, 90)


def images(scenes):
    """Every image as (scene, light, object, color, size, rotation), in the published order."""
    return list(itertools.product(SCENES[:scenes], LIGHTS, OBJECTS, COLORS, SIZES, ROTATIONS))


def in_the_paper(scene, light, thing, color, size, rotation):
    """The observed confounding of the paper."""
    allowed = {
        "cube": "red blue",
        "sphere": "blue yellow",
        "cylinder": "yellow purple",
        "cone": "purple orange",
        "torus": "orange red",
    }
    return color in allowed[thing].split()


def kept_later(scene, light, thing, color, size, rotation):
    """The released rule of the sixteen scenes, as executed."""
    if size == 2.5 and thing != "torus":
        return False
    if size == 1.5 and scene in ("garden", "garage"):
        return False
    if color == "yellow" and scene in ("bridge", "city_square"):
        return False
    if size == 2.5 and scene == "hall":
        return False
    if thing == "cone" and scene in ("hall", "tunnel", "skywalk"):
        return False
    if color in ("orange", "yellow") and scene in ("station", "dusk_city", "playground"):
        return False
    return not (thing == "sphere" and scene == "skywalk")


def coupling(a, count_a, b, count_b, sigma):
    """exp(−(a/(|A|−1) − b/(|B|−1))²/2σ²)."""
    gap = a / (count_a - 1) - b / (count_b - 1)
    return math.exp(-(gap**2) / (2 * sigma**2))
