"""The recipe of the β-VAE: a training that is interrupted ends with the same weights, and its file is an encoder."""

import json
from dataclasses import replace

import numpy as np
import pytest

from diorama.training.autoencoders import VAE_RECIPES, Drawn, train_vae
from diorama.training.schedule import Schedule
from diorama.worlds.sprites import Sprites

torch = pytest.importorskip("torch")
TINY = replace(
    VAE_RECIPES["beta_vae"],
    schedule=Schedule(sizes=(64,) * 2, batch=16, rate=1e-3, decay=0.0, average=0.5, shift=0, flip=False),
    images=48,
    test=20,
)


class StopError(Exception):
    """What a test raises to interrupt a training."""


def test_interrupted_training_is_the_same_and_its_file_encodes(tmp_path):
    from diorama.methods.represent.burgess_vae import BurgessVae

    torch.set_num_threads(1)
    whole = train_vae(TINY, tmp_path / "whole", lambda done, total, what: None)

    def stop(done, total, what):
        if done == 5:  # in the second of two epochs of three steps
            raise StopError

    with pytest.raises(StopError):
        train_vae(TINY, tmp_path / "parts", stop)
    parts = train_vae(TINY, tmp_path / "parts", lambda done, total, what: None)
    assert whole.read_bytes() == parts.read_bytes()
    card = json.loads(whole.with_suffix(".json").read_text())
    first, second = (epoch["loss"] for epoch in card["history"])
    assert second < first and np.isfinite(card["reconstruction"])
    world = Sprites()
    vae = BurgessVae(str(whole))
    codes = vae.encode(world.render([world.scene(i)[1] for i in range(3)]))
    assert codes.shape == (3, 10) and vae.decode(codes).shape == (3, 64, 64, 3)


def test_images_are_drawn_when_looked_at():
    world = Sprites()
    found = Drawn(5, 10)[np.array([0, 2])]
    frames = world.render([world.scene(i)[1] for i in (5, 7)])
    assert found.dtype == np.uint8 and np.array_equal(found / 255, [frame.image for frame in frames])
