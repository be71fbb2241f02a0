"""What protocols on concept sets share: a case is one set, whose images are the world's `members`.

`params["change"]` of a set's scene says what varies in it: "albedo" (Δa) or "light" (Δi).
"""

from diorama.core.bench import Bench
from diorama.core.capabilities import Sets
from diorama.core.cases import Case, Score
from diorama.core.contracts import World
from diorama.core.scene import Scene
from diorama.protocols.layers.judging import OnLayers

BRANCHES = ("reflectance", "shading")
#: For each change of a set, the other one.
OTHER = {"albedo": "light", "light": "albedo"}


class OnSets(OnLayers):
    """A protocol whose case is one concept set."""

    __slots__ = ()

    needs = (Sets,)
    example = 'diorama run -w "concepts(scenes=2, images=20)" -m iid_supervised -p {}'

    def case(self, world: World, seed: int, index: int) -> Case:
        """One concept set of the world."""
        name, scene = world.scene_at(seed, index)
        return Case(name, {"scene": scene.to_json(), "seed": seed, "index": index})


def change_of(case: Case) -> str:
    """What varies in the set of a case: "albedo" or "light"."""
    return case.payload["scene"]["params"]["change"]


def not_in_set(metric: str, case: Case) -> Score:
    """The score of a metric about the change that the set of a case does not show."""
    return Score(metric, None, status="excluded", reason=f"the set's {change_of(case)} changes")


def set_members(bench: Bench, case: Case) -> list[Scene]:
    """The images of a case's set."""
    return list(bench.world.object.members(case.scene))


def image_case(case: Case, i: int) -> Case:
    """The i-th image of a set as a case, for answers that are saved by name."""
    return Case(f"{case.key}/{i:03d}", case.payload)


def partner(world: Sets, case: Case) -> Scene | None:
    """The set of the other change of the same staged scene, light temperature and setting; None if there is none."""
    scene = case.scene
    if known := world.opposite(scene):
        return known
    wanted = {name: scene.params.get(name) for name in ("setting", "index", "temperature")}
    return _next(world, case, {**wanted, "change": OTHER[scene.params["change"]]})


def other_scene(world: Sets, case: Case) -> Case | None:
    """The next set of another staged scene with the same change and setting, as a case; None if there is none."""
    own = case.scene
    for i in _after(world, case):
        name, other = world.scene(i)
        alike = all(other.params.get(k) == own.params.get(k) for k in ("change", "setting"))
        if alike and other.params["index"] != own.params["index"]:
            return Case(name, {**case.payload, "scene": other.to_json(), "index": i})
    return None


def _next(world: Sets, case: Case, wanted: dict[str, object]) -> Scene | None:
    scenes = (world.scene(i)[1] for i in _after(world, case))
    return next((s for s in scenes if all(s.params.get(k) == v for k, v in wanted.items())), None)


def _after(world: Sets, case: Case) -> list[int]:
    """The indices of all other sets, beginning with the next one and wrapping around."""
    count, index = len(world), case.payload["index"]
    return [(index + step) % count for step in range(1, count)]
