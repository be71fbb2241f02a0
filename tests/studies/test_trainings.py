"""The list of trainings of the disentanglement study: each can be asked for, and what is finished is told from files."""

import pytest

from diorama.core.catalogue import build
from diorama.core.spec import parse
from studies.disentangle import pool
from studies.disentangle import trainings as study

pytest.importorskip("torch")


def test_every_training_is_a_recipe_that_diorama_train_takes():
    from diorama.training.autoencoders import vae_recipe
    from diorama.training.factors import factor_recipe

    listed = study.trainings()
    for name, text in listed.items():
        (factor_recipe if name.startswith("judges/") else vae_recipe)(parse(text))
    assert len(set(listed.values())) == len(listed)
    groups = [name.partition("/")[0] for name in listed]
    assert [groups.count(g) for g in ("candle", "sprites", "curves")] == [8, 8, 30]


def test_what_is_finished_is_told_from_cards(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    card = study.made_at("candle/ss_dip_vae").with_suffix(".json")
    assert card == tmp_path / "candle" / "ss_dip_vae" / "ss_dip_vae.json" and not study.trained("candle/ss_dip_vae")
    assert study.checkpoint("sprites/beta_vae").name == "beta_vae_sprites.safetensors"
    assert study.checkpoint("sprites/dip_vae").name == "dip_vae.safetensors"  # not bundled
    assert study.checkpoint("candle/ss_dip_vae").name == "ss_dip_vae_candle.safetensors"  # the bundled one is judged
    assert not study.finished("sprites/ss_dip_vae")
    card.parent.mkdir(parents=True)
    card.write_text("{}")
    assert study.main(["--only", "candle/"]) == 0
    assert "1 of 8 done" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        study.main(["--only", "candles"])
    assert "no training begins so; groups are judges/, candle/" in capsys.readouterr().err


def test_a_dose_shows_only_what_its_confounder_allows_and_as_often(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "FOLDER", tmp_path / "pool")
    (tmp_path / "pool").mkdir()
    for combination in range(pool.COMBINATIONS):
        for kind in ("png", "json"):
            (tmp_path / "pool" / f"{combination}.{kind}").write_text(str(combination))
    weights = {}
    for dose in ("none", "pairs"):
        pool.confounded(dose, study.DOSES[dose])
        shown = [int(p.read_text()) for p in (tmp_path / "doses" / dose).glob("*.json")]
        allowed = build("world", study.DOSES[dose]).object.weights() > 0
        assert len(shown) == pool.IMAGES and allowed[shown].all()
        weights[dose] = len(set(shown)) / allowed.sum()
    # n draws out of m see 1 − (1 − 1/m)ⁿ of them
    assert weights["none"] == pytest.approx(1 - (1 - 1 / 4050) ** 5000, abs=0.02)
    assert weights["pairs"] == pytest.approx(1 - (1 - 1 / 1620) ** 5000, abs=0.02)
