"""The CPU time of CSM at the paper's scale, extrapolated from a small part: `python -m studies.concepts.costs`.

A Δa set of 100 images and a Δi set of 44 at 256 pixels are rendered without a cache, passed through the three bundled
networks, and their CAVs fitted; a few textured paints, test images and negatives are measured as examples of all. The
numbers go to docs/results/concepts/costs.json, from which the page makes its table.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from diorama.core.catalogue import build
from diorama.core.scene import Scene, rng
from diorama.metrics.cav import draw_sets, fit_gram, gram
from studies.concepts.tables import FAMILY
from studies.page_kit import HOME, commit, table

FILE = HOME / "docs" / "results" / "concepts" / "costs.json"
SIZE = 256
#: How many paints, test images and negatives are measured.
FEW = 6
NEGATIVES, TESTS, RUNS, SETTINGS, BASES = 2000, 120, 100, 4, 10
SETS, IMAGES = {"albedo": 120, "light": 90}, {"albedo": 100, "light": 44}


@dataclass(frozen=True)
class Costs:
    """CPU seconds of one traced light or paint, one composed frame, one test image, one negative, …; passes by network."""

    light: float
    paint: float
    frame: float
    test: float
    negative: float
    set_albedo: float
    set_light: float
    forward: dict[str, float]
    gradient: dict[str, float]
    products: dict[str, float]
    cavs: dict[str, float]
    made: str


def cpu_seconds_of(work: Callable[[], Any]) -> float:
    """The CPU seconds that this process needs for some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def members(setting: str, change: str, count: int | None = None) -> tuple[Any, Sequence[Scene]]:
    """A world and the images of its first set."""
    world = build("world", f"concepts(setting={setting}, change={change}, scenes=1, size={SIZE})").object
    return world, world.members(world.scene(0)[1])[:count]


def rendering() -> dict[str, float]:
    """The CPU seconds of images; the first call of each kind, which compiles and reads meshes, is not counted."""
    world, painted = members("rgb-simple", "albedo")
    world.render(painted[:1])
    albedo = cpu_seconds_of(lambda: world.render(painted))
    swept, lit = members("rgb-simple", "light")
    light = cpu_seconds_of(lambda: swept.render(lit))
    textured, paints = members("textured-complex", "albedo", FEW + 1)
    textured.render(paints[:1])
    paint = cpu_seconds_of(lambda: textured.render(paints[1:])) / FEW
    images = {}
    for kind, name in (("test", "test_scenes"), ("negative", "random_scenes")):
        other = build("world", f"{name}(size={SIZE})").object
        images[kind] = cpu_seconds_of(lambda w=other: w.render([w.scene(i)[1] for i in range(FEW)])) / FEW  # type: ignore[misc]
    frame = albedo / len(painted)
    one_light = light / len(lit) - frame
    return {
        "light": one_light, "paint": paint - frame, "frame": frame, **images,
        "set_albedo": albedo + one_light, "set_light": light,
    }  # fmt: skip


def network_costs(name: str, frames: Sequence[Any], tests: Sequence[Any]) -> dict[str, float]:
    """The CPU seconds of an image's forward pass and gradient, of a product of two rows, and of a set's 100 CAVs."""
    method = build("method", name).object
    method.decompose(frames[:1])
    answers: list[Any] = []
    forward = cpu_seconds_of(lambda: answers.extend(method.decompose([f]) for f in frames)) / len(frames)
    rows = {b: np.stack([getattr(a, b).ravel() for a in answers]) for b in ("reflectance", "shading")}
    gradient = cpu_seconds_of(lambda: [residuals(method.decompose([f]), f) for f in tests]) / len(tests)
    products = cpu_seconds_of(lambda: [gram(x) for x in rows.values()]) / len(frames) ** 2
    spaces = [np.random.default_rng(0).normal(size=(244, 300)) for _ in rows]
    draws = draw_sets(100, 100, RUNS, rng("costs"))
    sets = [(a, 100 + b) for a, b in draws]  # the negatives are the rows after the set's 100
    fit_gram("hinge_sgd", spaces[0] @ spaces[0].T, sets[:2], rng("costs"))  # compiles
    cavs = cpu_seconds_of(lambda: [fit_gram("hinge_sgd", s @ s.T, sets, rng("costs")) for s in spaces])
    return {"forward": forward, "gradient": gradient, "products": products, "cavs": cavs}


def residuals(layers: Any, frame: Any) -> list[np.ndarray]:
    """The gradient of the squared error at the output, by branch."""
    pairs = [(getattr(layers, b), frame.truth[b]) for b in ("reflectance", "shading")]
    return [2 / a.size * (a - (t if a.shape == t.shape else t.mean(axis=2, keepdims=True))) for a, t in pairs]


def measured() -> Costs:
    """All costs."""
    os.environ["DIORAMA_FRAMES_MB"] = "0"
    images: dict[str, Any] = rendering()
    world, painted = members("rgb-simple", "albedo")
    frames = world.render(painted)
    other = build("world", f"test_scenes(size={SIZE})").object
    tests = other.render([other.scene(i)[1] for i in range(FEW)])
    by_network = {name: network_costs(name, frames, tests) for name in FAMILY}
    parts: dict[str, Any] = {
        part: {name: costs[part] for name, costs in by_network.items()}
        for part in ("forward", "gradient", "products", "cavs")
    }
    return Costs(**images, **parts, made=f"commit {commit()}, Python {platform.python_version()}, one thread")


def rows(costs: Costs) -> list[tuple[str, str, float]]:
    """The stages at the paper's scale: name, number, CPU seconds."""
    lights = 2 * BASES * (IMAGES["light"] + 4)
    paints = 2 * BASES * IMAGES["albedo"]
    sets = {change: SETTINGS * n for change, n in SETS.items()}
    images = sum(sets[change] * IMAGES[change] for change in sets)
    drawn = sum(sets.values())
    crossed = images * (NEGATIVES + TESTS) + NEGATIVES**2
    forward, gradient, products, cavs = (
        sum(x.values()) for x in (costs.forward, costs.gradient, costs.products, costs.cavs)
    )
    return [
        ("lights traced, shared by paints, colours of the lamp and both surfaces", f"{lights:,}", lights * costs.light),
        ("textured paints traced, shared by all lights", f"{paints:,}", paints * costs.paint),
        ("frames composed, for each network", f"3 × {images:,}", 3 * images * costs.frame),
        ("test images", f"{TESTS}", TESTS * costs.test),
        ("negatives", f"{NEGATIVES:,}", NEGATIVES * costs.negative),
        ("forward, three networks", f"3 × {images + NEGATIVES:,}", (images + NEGATIVES) * forward),
        ("gradients at the output, three networks", f"3 × {TESTS}", TESTS * gradient),
        ("products with negatives and gradients, both branches", f"3 × {crossed:,}", crossed * products),
        (f"{RUNS} CAVs of each set, both branches", f"3 × {drawn:,}", drawn * cavs),
    ]


def report() -> str:
    """The table of the page."""
    costs = Costs(**json.loads(FILE.read_text(encoding="utf-8")))
    stages = rows(costs)
    total = sum(seconds for *_, seconds in stages)
    lines = [[what, count, f"{seconds / 60:,.1f}"] for what, count, seconds in (*stages, ("all", "", total))]
    forward = ", ".join(f"{name} {1000 * s:.0f} ms" for name, s in costs.forward.items())
    measurements = (
        f"Measured: a Δa set of 100 images {costs.set_albedo:.1f} s to render (one light, flat paints), a Δi set of 44"
        f" {costs.set_light:.1f} s; a light {costs.light:.2f} s, a textured paint {costs.paint:.2f} s, composing a frame"
        f" {1000 * costs.frame:.1f} ms, a test image {costs.test:.2f} s, a negative {costs.negative:.2f} s; a forward pass"
        f" {forward}; 100 CAVs of a set in both branches {max(costs.cavs.values()):.2f} s ({costs.made})."
    )
    return f"{measurements}\n\n" + table(["stage", "number", "CPU minutes"], lines)


def main() -> None:
    """Measure, and write the file."""
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(asdict(measured()), indent=1) + "\n", encoding="utf-8")
    print(FILE.relative_to(HOME))
    print(report())


if __name__ == "__main__":
    main()
