"""Quickshift gives scikit-image's segments exactly, on noise and on flat pictures, where every distance is tied."""

import numpy as np
import pytest

segmentation = pytest.importorskip("skimage.segmentation")

from diorama.methods.explain.passes import OnHost  # noqa: E402
from diorama.methods.explain.superpixels import quickshift  # noqa: E402


def pictures():
    random = np.random.default_rng(0)
    rows, columns = np.mgrid[:40, :30]
    disc = ((rows - 20) ** 2 + (columns - 14) ** 2 < 90) * 0.6
    return {
        "noise": random.random((20, 33, 3)),
        "flat": np.kron(random.random((5, 4, 3)), np.ones((7, 9, 1))),
        "one colour": np.full((15, 9, 3), 0.4),
        "smooth": np.stack([disc + 0.1, rows / 60 + 0.001 * columns, columns / 50], axis=2),
    }


@pytest.mark.parametrize("name", pictures())
@pytest.mark.parametrize(("kernel_size", "max_dist"), [(1.0, 5.0), (2.5, 200.0), (4.0, 200.0), (4.0, 6.0)])
def test_segments_are_those_of_scikit_image(name, kernel_size, max_dist):
    image = pictures()[name]
    theirs = segmentation.quickshift(image, ratio=0.2, kernel_size=kernel_size, max_dist=max_dist, rng=3)
    expected = np.unique(theirs, return_inverse=True)[1].reshape(theirs.shape)
    assert np.array_equal(quickshift(image, 0.2, kernel_size, max_dist, 3), expected)


def test_shaded_copies_are_the_products_whatever_their_layout():
    random = np.random.default_rng(1)
    image, masks, instead = random.random((6, 5, 3)), random.random((4, 6, 5)), random.random((6, 5, 3))
    assert np.array_equal(OnHost(None).masked(image, masks), image * masks[:, :, :, None])
    assert np.array_equal(OnHost(None).masked(image, masks, instead), image * masks[:, :, :, None] + instead)
    each = random.random((4, 6, 5, 3))
    assert np.array_equal(OnHost(None).masked(image, masks, each), image * masks[:, :, :, None] + each)
