"""`diorama check` fails, saying why, on components that are broken on purpose."""

from pathlib import Path

import pytest

from diorama.testing.check import check_all

BROKEN = """
from dataclasses import dataclass, replace
import numpy as np
from diorama import Case, Layers, Score, Scene
from diorama.protocols.layers.lmse import Lmse
from diorama.worlds.mondrian import Mondrian


def flat(frames, value=1.0):
    g = np.full((*frames[0].image.shape[:2], 1), value)
    return Layers(g, g)

class Nan:
    def decompose(self, frames):
        return flat(frames, float("nan"))

class Moody:
    def decompose(self, frames):
        return flat(frames, np.random.default_rng().random())

class Scribbler:
    def decompose(self, frames):
        frames[0].image[:] = 0
        return flat(frames)

class Crooked:
    def __init__(self, k: float = 1.0):
        self.k = k
        self.grid = ({"k": 1.0}, {"k": 2.0}) if k == 1.0 else ()
    def decompose(self, frames):
        return flat(frames, self.k)
    def sweep(self, frames):
        return [flat(frames, 1.0), flat(frames, 7.0)]

class Raises:
    def decompose(self, frames):
        raise KeyError("weights")

class Forgetful(Mondrian):
    def sample(self, rng):
        return super().sample(np.random.default_rng())

class Impure(Mondrian):
    def render(self, scenes):
        return [replace(f, image=f.image + np.float32(i)) for i, f in enumerate(super().render(scenes))]

class Leaky(Mondrian):
    def render(self, scenes):
        return [replace(f, image=f.image * np.float32(0.5) + np.float32(0.2)) for f in super().render(scenes)]

class Sloppy(Mondrian):
    def do(self, scene, **changes):
        return scene.changed({"light": changes.get("light", 0), "colours": scene.params["colours"][::-1]})

class Boastful(Mondrian):
    truth = ("mask", "reflectance", "shading", "depth")

class Backwards(Lmse):
    direction = "higher"

class Blind(Lmse):
    def score(self, bench, case):
        for m in self.metrics:
            yield Score(m, 0.0)

class Drifting(Lmse):
    made = 0
    def case(self, world, seed, index):
        Drifting.made += 1
        return Case(f"{index}-{Drifting.made}", {"scene": super().case(world, seed, index).payload["scene"]})
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("broken") / "broken.py"
    path.write_text(BROKEN)
    return path


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Nan", "answer is valid: reflectance has"),
        ("Moody", "two different answers"),
        ("Scribbler", "assignment destination is read-only"),
        ("Crooked", "sweep and decompose differ at {'k': 2.0}"),
        ("Raises", "KeyError: 'weights'"),
        ("Forgetful", "uses another random source"),
        ("Impure", "renders differently alone and with others"),
        ("Leaky", "image and R·S + C differ by"),
        ("Sloppy", "changed ['colours', 'light']"),
        ("Boastful", "declares 'depth', but the frame does not have it"),
        ("Backwards", "the oracle scores 0, the best is 1"),
        ("Blind", "does not move with the dose"),
        ("Drifting", "a case changes with the order"),
    ],
)
def test_broken_components_fail_and_say_why(broken, name, says):
    lines: list[str] = []
    assert not check_all([f"{broken}:{name}"], lines.append)
    assert any(line.startswith("FAILED") and says in line for line in lines), lines


EXPLAINERS = """
import numpy as np
from diorama import Heatmap

def maps(images):
    return [Heatmap(image.mean(axis=2), signed=True) for image in images]

class Dice:
    def explain(self, model, images, targets):
        return maps(np.random.default_rng().random(images.shape))

class Neighbourly:
    def explain(self, model, images, targets):
        return maps(images - images.mean(axis=0))

class Painter:
    def explain(self, model, images, targets):
        found = maps(images.copy())
        images[0] = 0
        return found

class Short:
    def explain(self, model, images, targets):
        return maps(images)[:3]

class Hooked:
    def explain(self, model, images, targets):
        handle = model.module.register_forward_hook(lambda *call: None)
        Hooked.handles.append(handle)
        return maps(images)
    handles = []

class Vandal:
    def explain(self, model, images, targets):
        weight = next(model.module.parameters())
        weight.data *= 2
        Vandal.turns += 1
        return maps(images)
    turns = 0
"""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Dice", "two different answers"),
        ("Neighbourly", "two different answers"),
        ("Painter", "the method wrote to its images"),
        ("Short", "3 answers for 4 images"),
        ("Hooked", "the method left hooks on the model"),
        ("Vandal", "the method changed the model's weights"),
    ],
)
def test_broken_explainers_fail_and_say_why(tmp_path, name, says):
    pytest.importorskip("torch")
    from diorama.testing import explainers

    (tmp_path / "broken.py").write_text(EXPLAINERS)
    lines: list[str] = []
    try:
        assert not check_all([f"{tmp_path}/broken.py:{name}"], lines.append)
    finally:
        explainers.built.cache_clear()  # some of them spoil it
    assert any(line.startswith("FAILED") and says in line for line in lines), lines
