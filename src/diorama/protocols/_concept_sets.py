"""What protocols on concept sets share: a case is one set, a world of sets has `members(scene)`.

`params["change"]` of a set's scene says what varies in it: "albedo" (Δa) or "light" (Δi).
"""

from typing import Any

from diorama.core.bench import Bench
from diorama.core.contracts import Case, World
from diorama.core.errors import InputError
from diorama.core.scene import Scene

BRANCHES = ("reflectance", "shading")
#: The change that a set of the other kind shows.
OTHER = {"albedo": "light", "light": "albedo"}


def one_set(self: Any, world: World, seed: int, index: int) -> Case:
    """One concept set of the world."""
    if not hasattr(world, "members"):
        raise InputError(
            f"{type(world).__name__.lower()} has no concept sets: take a world of sets, like concepts or natural_concepts"
        )
    name, scene = world.scene(index)  # type: ignore[attr-defined]
    return Case(name, {"scene": scene.to_json(), "seed": seed})


def set_of(case: Case) -> Scene:
    """The concept set of a case."""
    return Scene.from_json(case.payload["scene"])


def change_of(case: Case) -> str:
    """What varies in the set of a case: "albedo" or "light"."""
    return case.payload["scene"]["params"]["change"]


def set_members(bench: Bench, case: Case) -> list[Scene]:
    """The images of a case's set."""
    return list(bench.world.object.members(set_of(case)))


def image_case(case: Case, i: int) -> Case:
    """The i-th image of a set as a case, for answers that are saved by name."""
    return Case(f"{case.key}/{i:03d}", case.payload)


def partner(world: Any, scene: Scene) -> Scene | None:
    """The set of the other change of the same staged scene, light temperature and setting; None where there is none."""
    if hasattr(world, "opposite"):
        return world.opposite(scene)
    return _first(world, scene, OTHER[scene.params["change"]], same=True)


def stranger(world: Any, scene: Scene) -> Scene | None:
    """A set of the same change, temperature and setting of another staged scene; None where there is none."""
    return _first(world, scene, scene.params["change"], same=False)


def _first(world: Any, scene: Scene, change: str, same: bool) -> Scene | None:
    """The first set that fits, counted from after this one, so that not all sets get the same."""
    sets = [world.scene(i)[1] for i in range(len(world))]
    start = next((i for i, s in enumerate(sets) if s.key == scene.key), 0)
    for other in sets[start:] + sets[:start]:
        alike = all(other.params.get(k) == scene.params.get(k) for k in ("setting", "temperature"))
        if other.params["change"] == change and alike and (other.params["index"] == scene.params["index"]) == same:
            return other
    return None
