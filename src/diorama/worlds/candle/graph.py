"""The causal model of CANDLE as data: the graph, confounding, sampling with conditions or interventions.

A distribution over the factors is a vector of weights, one for every row of `grid()`; confounding makes or multiplies such
vectors, sampling draws from them. Graph and sub-selections are from Reddy, Godfrey L and Balasubramanian 2022 (AAAI), the
Gaussian coupling from Träuble et al. 2021 (ICML).

    rows = grid()
    seen = draw(rng, rows, pairs(rows), 100)                    # the confounded world
    done = draw(rng, rows, intervene(rows, pairs(rows), color="red"), 100)   # do(color = red) cuts object – color
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from diorama.core.errors import InputError, did_you_mean
from diorama.worlds.candle.factors import NAMES, level_of

#: The causes of each variable. U and C are not observed: U is the light that comes with a scene, C the selection of objects
#: and colours in a data set. The image depends on all factors, on the place of the object and on the camera.
GRAPH: dict[str, tuple[str, ...]] = {
    "U": (),
    "C": (),
    "scene": ("U",),
    "light": ("U",),
    "object": ("C",),
    "color": ("C",),
    "size": (),
    "rotation": (),
    "place": (),
    "camera": (),
    "image": (*NAMES, "place", "camera"),
}
#: The sub-selection of the paper: two colours for each object.
PAIRS = {
    "cube": ("red", "blue"),
    "sphere": ("blue", "yellow"),
    "cylinder": ("yellow", "purple"),
    "cone": ("purple", "orange"),
    "torus": ("orange", "red"),
}
#: The combinations that the later data set's released rule drops from sixteen scenes; the first was meant for indoors only.
DROPPED: tuple[dict[str, tuple[Any, ...]], ...] = (
    {"size": (2.5,), "object": ("cube", "sphere", "cylinder", "cone")},
    {"size": (1.5,), "scene": ("garden", "garage")},
    {"color": ("yellow",), "scene": ("bridge", "city square")},
    {"size": (2.5,), "scene": ("hall",)},
    {"object": ("cone",), "scene": ("hall", "tunnel", "skywalk")},
    {"color": ("orange", "yellow"), "scene": ("station", "dusk city", "playground")},
    {"object": ("sphere",), "scene": ("skywalk",)},
)
#: The rule as its comments describe it: large objects are dropped indoors only, orange cones on the bridge too. They do not
#: say which scenes are indoors; with these, 16,146 images are left, the published lower count.
COMMENTED = (
    {"scene": ("indoor", "hall", "garage", "skywalk"), **DROPPED[0]},
    *DROPPED[1:],
    {"color": ("orange",), "object": ("cone",), "scene": ("bridge",)},
)


def column(name: str) -> int:
    """The column of a factor in `grid()`."""
    if name not in NAMES:
        raise InputError(f"candle has no factor {name!r}; {did_you_mean(name, list(NAMES))}")
    return NAMES.index(name)


def matches(rows: np.ndarray, values: Mapping[str, Any]) -> np.ndarray:
    """Which rows have the given values; a tuple of values means any of them.

    >>> from diorama.worlds.candle.factors import grid
    >>> int(matches(grid(), {"object": "cube", "color": ("red", "blue")}).sum())
    324
    """
    found = np.ones(len(rows), bool)
    for name, value in values.items():
        wanted = value if isinstance(value, tuple | list) else (value,)
        found &= np.isin(rows[:, column(name)], [level_of(name, v) for v in wanted])
    return found


# Confounding


def pairs(rows: np.ndarray) -> np.ndarray:
    """Object and colour confounded by sub-selection: the paper's 1,620 of 4,050 images.

    >>> from diorama.worlds.candle.factors import grid
    >>> int(pairs(grid()).sum())
    1620
    """
    return np.any([matches(rows, {"object": o, "color": c}) for o, c in PAIRS.items()], axis=0).astype(float)


def semantic(rows: np.ndarray, as_commented: bool = False) -> np.ndarray:
    """The rule of the later data set, as it was executed or as its comments describe it.

    >>> from diorama.worlds.candle.factors import grid
    >>> int(semantic(grid(16)).sum()), int(semantic(grid(16), as_commented=True).sum())
    (12546, 16146)
    """
    rules = COMMENTED if as_commented else DROPPED
    return (~np.any([matches(rows, rule) for rule in rules], axis=0)).astype(float)


def coupled(rows: np.ndarray, a: str, b: str, sigma: float) -> np.ndarray:
    """Two factors coupled: p(a, b) ∝ exp(−(a − b)²/2σ²) on levels scaled to 0..1 (Träuble et al. 2021)."""
    if not sigma > 0:
        raise InputError(f"candle: sigma={sigma!r}: give the width of the coupling, > 0 (the papers use 0.04 to 0.4)")
    gap = _scaled(rows, a) - _scaled(rows, b)
    return np.exp(-(gap**2) / (2 * sigma**2))


def one_to_all(rows: np.ndarray, name: str, sigma: float) -> np.ndarray:
    """One factor coupled to each of the others (Roth et al. 2023)."""
    return np.prod([coupled(rows, name, other, sigma) for other in NAMES if other != name], axis=0)


def hidden(rows: np.ndarray, strength: float) -> np.ndarray:
    """Light and scene with an unobserved cause U, uniform over three: p(light, scene) = Σ_u p(u) p(light|u) p(scene|u).

    p(light|u) = (1 − s)/3 + s·[light = u]; p(scene|u) likewise, where every third scene belongs to the same light.
    """
    if not 0 <= strength <= 1:
        raise InputError(f"candle: hidden={strength!r}: give the strength of the unobserved cause, 0 to 1")
    scene, light = rows[:, column("scene")], rows[:, column("light")]
    return np.sum([_given(scene, u, strength) * _given(light, u, strength) for u in range(3)], axis=0)


def _given(level: np.ndarray, u: int, strength: float) -> np.ndarray:
    count = int(level.max()) + 1
    alike = max(1, len(range(u, count, 3)))
    chance: np.ndarray = (1 - strength) / count + strength * (level % 3 == u) / alike
    return chance


def _scaled(rows: np.ndarray, name: str) -> np.ndarray:
    level = rows[:, column(name)]
    scaled: np.ndarray = level / max(1, int(level.max()))
    return scaled


# Seeing and doing


def condition(rows: np.ndarray, weights: np.ndarray, **values: Any) -> np.ndarray:
    """Weights of p(rows | values)."""
    kept = weights * matches(rows, values)
    if not kept.sum() > 0:
        raise InputError(f"candle: no image has {_listed(values)} under this confounding; use do, or other values")
    return kept


def intervene(rows: np.ndarray, weights: np.ndarray, **values: Any) -> np.ndarray:
    """Weights of p(rows | do(values)): the other factors keep their joint distribution, summed over the named ones."""
    rest = [i for i, name in enumerate(NAMES) if name not in values]
    sizes = rows.max(0)[rest] + 1
    group = np.ravel_multi_index(rows[:, rest].T, sizes) if rest else np.zeros(len(rows), int)
    return np.bincount(group, weights)[group] * matches(rows, values)


def draw(rng: np.random.Generator, rows: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """The indices of `count` rows drawn in proportion to the weights."""
    total = np.cumsum(weights)
    if not total[-1] > 0:
        raise InputError("candle: this confounding leaves no image; give other settings")
    return np.searchsorted(total, rng.random(count) * total[-1], side="right")


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
