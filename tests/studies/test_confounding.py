"""The page on confounding: doses by a closed form, and trends that were planted."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from studies.disentangle import confounding
from studies.disentangle.confounding import HEADS, SEEDS, answer, trend_table, trends
from studies.disentangle.scored import Group
from studies.disentangle.trainings import CURVED, DOSES, short


class Planted(Group):
    """Learners of which one score falls with the dose by a known amount while the others are noise around a half."""

    def __init__(self, falls: str, seeds: tuple[int, ...] = SEEDS):
        names = [f"curves/{short(d)}-{learner}-{s}" for d in DOSES for learner in CURVED for s in seeds]
        super().__init__(names, {}, {}, {})
        object.__setattr__(self, "falls", falls)

    def mean(self, name: str, head: str) -> float:
        dose, seed = next(d for d in DOSES if name.startswith(f"curves/{short(d)}-")), int(name[-1])
        if head == self.falls:  # type: ignore[attr-defined]
            return 0.9 - 0.5 * confounding.strengths()[dose] + 0.01 * seed
        return 0.5 + 0.05 * np.sin(37 * sum(map(ord, name + head)))


@pytest.fixture(autouse=True)
def known_doses(monkeypatch):
    found = confounding.strengths()
    monkeypatch.setattr(confounding, "strengths", lambda: found)


def test_doses_are_the_information_that_factors_share():
    found = confounding.strengths()
    assert found["none"] == pytest.approx(0, abs=1e-9)
    # pairs: an object with two of five colours, each colour equally often: ln 5 − ln 2
    assert found["pairs"] == pytest.approx(np.log(5 / 2))
    # hidden: the light follows from the scene, which has three values
    assert found["hidden"] == pytest.approx(np.log(3))
    assert 0 < found["gaussian .4"] < found["gaussian .15"] < np.log(5)


def test_a_planted_fall_is_found_and_noise_is_not():
    found = {(one.learner, one.head): one for one in trends(Planted("UC1 corrected"), confounding.strengths())}
    assert len(found) == len(CURVED) * len(HEADS)
    fallen = found["beta_vae", "UC1 corrected"]
    assert fallen.change == pytest.approx(-0.5 * np.log(5 / 2)) and fallen.half == pytest.approx(0, abs=1e-6)
    assert fallen.rho < -0.95 and fallen.chance < 0.001
    assert np.mean([one.chance > 0.05 for (_, head), one in found.items() if head != "UC1 corrected"]) > 0.8
    said = answer(list(found.values()))
    assert "2 fall with the dose" in said and "**Holds in part.**" in said  # UC alone, not CG
    assert "UC1 corrected of SS-β-TCVAE" in said and len(trend_table(list(found.values())).splitlines()) == 16


def test_nothing_is_told_of_one_seed():
    found = list(trends(Planted("IRS", seeds=(0,)), confounding.strengths()))
    assert answer(found).startswith("Not to be told")


def test_rank_correlation_is_scipys():
    doses, values = np.repeat([0.0, 0.2, 0.9, 1.0, 1.1], 3), np.random.default_rng(0).normal(size=15).round(1)
    rho, chance = confounding.ranked(doses, values, np.random.default_rng(1))
    known = spearmanr(doses, values)
    assert rho == pytest.approx(known[0], abs=1e-12) and chance == pytest.approx(known[1], abs=0.05)


def test_the_picture_has_every_seed(tmp_path):
    confounding.figure(Planted("IRS"), confounding.strengths(), tmp_path / "doses.svg")
    text = (tmp_path / "doses.svg").read_text(encoding="utf-8")
    assert text.count("<circle") == len(CURVED) * len(DOSES) * len(SEEDS) * len(HEADS)
