"""The capture pipeline: separation, R from lights, Fourier alignment, and the rehearsal against exact truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.capture.align import estimate_shift, shift
from diorama.capture.pipeline import inner, masked, polarised, reflectance, separate
from diorama.core.errors import InputError
from diorama.core.scene import rng

Offsets = st.floats(-1.5, 1.5)


def picture(size: int = 64, seed: int = 0) -> np.ndarray:
    """A smooth positive picture without period: Gaussian blobs."""
    generator = rng(seed, "picture")
    y, x = np.mgrid[:size, :size]
    image = np.full((size, size), 0.05)
    for cx, cy, width, height in generator.uniform([0, 0, 2, 0.2], [size, size, 6, 1], (60, 4)):
        image += height * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2))
    return image / image.max()


def sampled(dx: float, dy: float, size: int = 64) -> np.ndarray:
    """A picture given by a formula, moved by (dx, dy) without any Fourier transform."""
    y, x = np.mgrid[:size, :size]
    x, y = x - dx, y - dy
    blobs = [(20, 22, 3.0), (40, 25, 4.0), (30, 45, 2.5), (48, 46, 3.5), (15, 44, 2.2)]
    return 0.1 + sum(np.exp(-((x - a) ** 2 + (y - b) ** 2) / (2 * s**2)) for a, b, s in blobs)


def test_separation_undoes_polarisation():
    d, c = picture(seed=1), picture(seed=2) ** 4
    original, diffuse, specular = separate(*polarised(d, c))
    np.testing.assert_allclose(specular, c, atol=1e-15)
    np.testing.assert_array_equal(diffuse, d)
    np.testing.assert_allclose(original, d + c)  # the published original contains C once


def test_two_lights_know_what_one_does_not():
    r, s = picture(seed=3), picture(seed=4)
    dark, other = s.copy(), picture(seed=5)
    dark[:20] = 0
    one = reflectance([r * dark], [0.75 * dark])
    two = reflectance([r * dark, r * other], [0.75 * dark, 0.75 * other])
    np.testing.assert_allclose(two, r / 0.75)
    assert not one[:20].any()
    np.testing.assert_allclose(one[20:], r[20:] / 0.75)


def test_noise_over_a_shadow_stays_in_range():
    assert reflectance([np.array([0.5, -0.5])], [np.array([1e-5, 1e-5])]).tolist() == [2.0, 0.0]


def test_masks_and_sizes():
    mask = np.zeros((9, 8), bool)
    mask[2:7, 3:8] = True
    assert masked(np.ones((9, 8, 3), np.float32), mask).sum() == 3 * mask.sum()
    assert inner(mask, 0) is mask
    assert inner(mask, 1).sum() == 9
    with pytest.raises(InputError, match="do not belong together"):
        separate(np.zeros((3, 3)), np.zeros((3, 4)))
    with pytest.raises(InputError, match="1 photographs and 2"):
        reflectance([mask], [mask, mask])
    with pytest.raises(InputError, match="crop them alike"):
        estimate_shift(np.zeros((3, 3)), np.zeros((3, 4)))


@settings(max_examples=15, deadline=None)
@given(Offsets, Offsets)
def test_fourier_shift_moves_a_smooth_picture_exactly(dx, dy):
    inside = np.s_[6:-6, 6:-6]
    np.testing.assert_allclose(shift(sampled(0, 0), (dx, dy))[inside], sampled(dx, dy)[inside], atol=2e-3)


@settings(max_examples=15, deadline=None)
@given(Offsets, Offsets)
def test_planted_shifts_are_found(dx, dy):
    """To 0.05 pixels, whether planted by the shift theorem or by the picture's formula."""
    found = estimate_shift(sampled(0, 0), sampled(dx, dy))
    np.testing.assert_allclose(found, (dx, dy), atol=0.05)
    image = picture(seed=6)
    np.testing.assert_allclose(estimate_shift(image, shift(image, (dx, dy))), (dx, dy), atol=0.05)


def test_planted_shifts_are_found_under_noise_and_beyond_a_pixel():
    image = picture(96, seed=7)
    noise = rng(0, "n").normal(0, 0.002, (2, 96, 96))
    found = estimate_shift(image + noise[0], shift(image, (3.3, -2.6)) + noise[1])
    np.testing.assert_allclose(found, (3.3, -2.6), atol=0.05)


def painted(dx: float, dy: float) -> np.ndarray:
    """Flat patches of paint of random reflectance, moved without a Fourier transform (32 samples a pixel and axis)."""
    colours = rng(0, "paint").uniform(0.2, 0.9, (5, 5))
    at = (np.arange(64 * 32) + 0.5) / 32 - 0.5
    column, row = (np.clip((at - d) // 13, 0, 4).astype(int) for d in (dx, dy))
    return colours[row][:, column].reshape(64, 32, 64, 32).mean((1, 3))


@pytest.mark.parametrize("moved", [(0.0, 0.0), (0.35, -0.2), (-0.6, 0.45), (0.8, 0.9)])
def test_a_shift_between_differently_painted_twins_is_found(moved):
    """The light is the same and moves, the paint is in one picture only: found to 0.05 pixels all the same."""
    found = estimate_shift(sampled(0, 0) * painted(0, 0), 0.75 * sampled(*moved))
    np.testing.assert_allclose(found, moved, atol=0.05)


def test_a_found_shift_brings_back():
    image = np.repeat(picture(seed=8)[:, :, None], 3, 2)
    moved = shift(image, (0.4, -0.7))
    found = estimate_shift(image, moved)
    back = shift(moved, (-found[0], -found[1]))
    np.testing.assert_allclose(back[4:-4, 4:-4], image[4:-4, 4:-4], atol=5e-3)
    np.testing.assert_allclose(found, (0.4, -0.7), atol=0.05)


def test_nothing_to_align():
    assert estimate_shift(np.ones((16, 16)), np.ones((16, 16))) == (0.0, 0.0)
