"""Copies between host and accelerator, counted with the CPU posing as one: one each way for an image or a chunk."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from diorama.core import device  # noqa: E402
from tests.stand_in_device import PLACE, Elsewhere, asked, copies, here, there  # noqa: E402

#: Copies there and back for an image and three targets (sampling methods), or a chunk of images (the others).
EXPECTED = {
    "rise(masks=150)": (1, 1),
    "rise(masks=150, fill=blur, contrast=True, output=centred)": (1, 1),
    "rise(masks=400, stop=0.0001)": (1, 2),  # the standard error is looked at after 256 masks, too
    "lime(samples=150)": (1, 1),
    "lime(samples=150, fill=mean, output=logit, answer=signed)": (1, 1),
    "occlusion": (1, 1),
    "input_x_gradient": (1, 1),
    "saliency": (1, 1),
    "integrated_gradients(steps=5)": (1, 1),
    "grad_cam": (1, 1),
    "smoothgrad(samples=4)": (4, 1),  # its noise is drawn by the host, sample by sample
}


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).random((3, 64, 64, 3), np.float32)


@pytest.mark.parametrize("spec", EXPECTED)
def test_copies_are_counted_and_maps_are_those_of_the_host(spec, images):
    if spec.startswith("lime"):
        pytest.importorskip("skimage")
    expected = asked(spec, here(), images)
    out, back, found = copies(lambda: asked(spec, there(), images))
    assert (out, back) == EXPECTED[spec]
    for ours, theirs in zip(found, expected, strict=True):
        scale = np.abs(theirs.values).max() if theirs.values.dtype != bool else 1
        assert np.abs(ours.values.astype(float) - theirs.values).max() <= 1e-4 * scale


def test_logits_go_there_and_back_once_a_chunk(images):
    many = np.concatenate([images] * 30)  # ninety: a chunk of 64 and one of 26
    out, back, found = copies(lambda: there().logits(many))
    assert (out, back) == (2, 2) and device.chunk(PLACE.type) == 64
    np.testing.assert_allclose(found, here().logits(many), rtol=1e-5, atol=1e-5)


def test_the_stand_in_refuses_what_an_accelerator_refuses():
    far = torch.ones(3).as_subclass(Elsewhere)
    with pytest.raises(TypeError, match="numpy"):
        far.numpy()
    with pytest.raises(RuntimeError, match="tensor of the host"):
        far + torch.ones(3)
    assert (far * 2).device == PLACE and copies(lambda: (far * 2).cpu().numpy())[1] == 1
