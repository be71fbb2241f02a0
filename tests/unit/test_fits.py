"""Fits: made once from the other fold, read again, made anew when the file is damaged."""

import numpy as np
import pytest

from diorama.core.fits import fitted
from diorama.core.memory import Memory
from diorama.core.plan import Plan, expand

LEARNER = """
import numpy as np
from diorama import Layers

class Learner:
    '''R is the mean reflectance of what it was fitted on.'''

    def __init__(self, mean: float = -1.0):
        self.mean = mean

    def fit(self, examples, objective):
        with open('fits.txt', 'a') as log:
            log.write('x')
        return {'mean': np.array([np.mean([frames[0].truth['reflectance'].mean() for frames in examples])])}

    def fitted(self, fit):
        return Learner(float(fit['mean'][0]))

    def decompose(self, frames):
        return Layers(np.full_like(frames[0].image, self.mean), frames[0].image)
"""


@pytest.fixture
def cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "learner.py").write_text(LEARNER)
    table = {"worlds": ["mondrian(size=24, patches=3)"], "methods": ["./learner.py:Learner"], "protocols": ["si_mse"]}
    return expand(Plan.from_table({**table, "cases": 4}, "a test")).cells[0]


def fits(tmp_path):
    return len((tmp_path / "fits.txt").read_text())


def test_a_fit_sees_the_other_fold_only_and_is_made_once(cell, tmp_path):
    world = cell.world.object
    learned = fitted(cell, 0, tmp_path / "fits", Memory())
    others = [world.render([cell.cases[i].scene])[0].truth["reflectance"].mean() for i in (1, 3)]
    frame = world.render([cell.cases[0].scene])[0]
    assert learned.object.decompose([frame]).reflectance.mean() == pytest.approx(np.mean(others), rel=1e-5)
    again = fitted(cell, 2, tmp_path / "fits", Memory())  # the same fold
    assert again.digest == learned.digest and fits(tmp_path) == 1
    assert fitted(cell, 1, tmp_path / "fits", Memory()).digest != learned.digest and fits(tmp_path) == 2


def test_a_damaged_fit_is_set_aside_and_made_anew(cell, tmp_path, capsys):
    fitted(cell, 0, tmp_path / "fits", Memory())
    (path,) = (tmp_path / "fits").rglob("fit.safetensors")
    whole = path.read_bytes()
    path.write_bytes(whole[:-4] + bytes(4))
    fitted(cell, 0, tmp_path / "fits", Memory())
    assert fits(tmp_path) == 2 and path.read_bytes() == whole
    assert "fit.safetensors" in capsys.readouterr().err


def test_without_another_case_there_is_nothing_to_fit_on(cell, tmp_path):
    from dataclasses import replace

    with pytest.raises(ValueError, match="no other case"):
        fitted(replace(cell, count=1), 0, tmp_path / "fits", Memory())
