"""One method cannot touch another's score: frames are read-only, models are watched, the truth is kept from methods."""

from pathlib import Path

import numpy as np
import pytest

from diorama.api import run
from diorama.core.catalogue import build
from diorama.core.contracts import scene_at
from diorama.core.run import open_run

WORLD = "mondrian(size=32, patches=4)"
CHEAT = """
import numpy as np
from diorama import Layers


class Cheat:
    given_truth = {declared}

    def decompose(self, frames):
        truth, image = frames[0].truth, frames[0].linear()
        found = truth.get("reflectance"), truth.get("shading")
        assert (found[0] is not None) == self.given_truth
        assert bool(set(frames[0].scene.params) - {{"light"}}) == self.given_truth
        return Layers(*found) if self.given_truth else Layers(image, np.ones_like(image))
"""


def errors_of(folder: Path) -> list[str]:
    """The reasons of all error rows of a run."""
    made = open_run(folder)
    return [row.reason for cell in made.cells for row in made.rows(cell) if row.status == "error"]


def test_a_method_gets_neither_truth_nor_the_parameters_of_a_scene(tmp_path):
    (tmp_path / "cheat.py").write_text(CHEAT.format(declared=False))
    document = run([WORLD], [f"{tmp_path}/cheat.py:Cheat"], ["lmse"], cases=2, out=tmp_path / "out")
    assert (
        document["cells"][0]["summary"]["lmse"]["n_ok"] == 2 and document["cells"][0]["summary"]["lmse"]["mean"] > 0.01
    )


def test_a_method_that_declares_it_is_shown_the_truth_and_every_row_says_so(tmp_path):
    (tmp_path / "cheat.py").write_text(CHEAT.format(declared=True))
    document = run([WORLD], [f"{tmp_path}/cheat.py:Cheat"], ["lmse"], cases=2, out=tmp_path / "out")
    assert document["cells"][0]["summary"]["lmse"]["mean"] < 1e-9
    made = open_run(tmp_path / "out")
    assert all("shown the truth" in row.reason for row in made.rows(made.cells[0]))


def test_an_encoder_and_a_loader_get_no_truth_and_no_bench(tmp_path):
    (tmp_path / "peek.py").write_text(
        "import numpy as np\nfrom diorama import Layers\n"
        "class Encode:\n"
        "    def encode(self, frames):\n"
        "        assert not any(f.truth or f.scene.params for f in frames)\n"
        "        return np.stack([f.srgb().mean((0, 1)) for f in frames])\n"
        "class Load:\n"
        "    def answers(self, bench, scene, target):\n        raise AssertionError('taken for a control')\n"
        "    def load(self, case, frame, target):\n"
        "        assert set(frame.truth) <= {'mask'} and not set(frame.scene.params) - {'light'}\n"
        "        return Layers(np.ones_like(frame.image), frame.linear())\n"
    )
    sprites = "sprites(counts=(3, 2, 3, 3, 3))"
    codes = run([sprites], [f"{tmp_path}/peek.py:Encode"], ["mig(frames=100)"], cases=1, out=tmp_path / "codes")
    layers = run([WORLD], [f"{tmp_path}/peek.py:Load"], ["lmse"], cases=1, out=tmp_path / "layers")
    assert errors_of(tmp_path / "codes") == errors_of(tmp_path / "layers") == []
    assert codes["cells"][0]["summary"]["mig"]["n_ok"] == layers["cells"][0]["summary"]["lmse"]["n_ok"] == 1


def test_the_key_and_the_mask_of_a_blind_frame_are_those_of_the_frame(mini_mit):
    world = build("world", f"mit_intrinsic(root={mini_mit}, objects=('box',))").object
    frame = world.render([scene_at(world, 0, 0)[1]])[0]
    blind = frame.blind()
    assert blind.scene.key == frame.scene.key and np.array_equal(blind.mask, frame.mask) and not frame.mask.all()
    assert set(blind.truth) == {"mask"} and np.array_equal(blind.image, frame.image)


@pytest.mark.parametrize(
    "spoilt", ["frames[0].image[:] = 0", "frames[0].mask[:] = False", "frames[0].linear()[0] *= 2"]
)
def test_writing_into_a_frame_is_an_error_row_and_changes_no_other_score(tmp_path, spoilt):
    (tmp_path / "vandal.py").write_text(
        "import numpy as np\nfrom diorama import Layers\nclass Vandal:\n    def decompose(self, frames):\n"
        f"        {spoilt}\n        return Layers(np.ones_like(frames[0].image), frames[0].linear())\n"
    )
    world = "tabletop(size=24, samples=1, bounces=0)" if "mask" in spoilt else WORLD
    alone = run([world], ["constant"], ["lmse"], cases=2, out=tmp_path / "alone")
    after = run([world], [f"{tmp_path}/vandal.py:Vandal", "constant"], ["lmse"], cases=2, out=tmp_path / "after")
    assert after["cells"][1]["summary"] == alone["cells"][0]["summary"]
    assert after["cells"][0]["summary"]["lmse"]["n_error"] == 2 and "read-only" in errors_of(tmp_path / "after")[0]


def test_nothing_in_a_frame_can_be_written_to():
    world = build("world", "birds(size=64)").object
    frame = world.render([scene_at(world, 0, 0)[1]])[0]
    for array in [frame.image, *(value for value in frame.truth.values() if isinstance(value, np.ndarray))]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError, match="cannot be written"):
        frame.truth["label"] = 3
