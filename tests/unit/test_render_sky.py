"""Directions drawn from a sky: right on average for every normal, with the density they claim, and little waste."""

import numpy as np
import pytest

pytest.importorskip("numba")

import numba

from diorama.render.sky import sky_density, sky_direction, sky_of
from diorama.render.stage import Environment

NORMALS = np.array([[0, 0, 1], [0, 1, 0], [0, 1, -1e-9], [-1, 0, 0], [0.6, 0, 0.8], [0.57, -0.57, -0.59], [0, 0, -1]])
NORMALS = NORMALS / np.linalg.norm(NORMALS, axis=1, keepdims=True)


@numba.njit
def drawn(u, v, normal, sky):
    """Directions (n, 3), radiance of the first channel, density, and the density asked for afterwards."""
    found = np.zeros((len(u), 6))
    for i in range(len(u)):
        x, y, z, row, column, density = sky_direction(u[i], v[i], normal[0], normal[1], normal[2], sky)
        other = sky_density(row, column, x, y, z, normal[0], normal[1], normal[2], sky)
        found[i] = np.array([x, y, z, sky.image[row, column, 0], density, other])
    return found


def directions(height, width):
    theta = (np.arange(height) + 0.5) / height * np.pi
    phi = (np.arange(width) + 0.5) / width * 2 * np.pi - np.pi
    x, y = np.sin(theta)[:, None] * np.cos(phi), np.sin(theta)[:, None] * np.sin(phi)
    solid = np.sin(theta)[:, None] * np.pi / height * 2 * np.pi / width
    return np.stack([x, y, np.broadcast_to(np.cos(theta)[:, None], x.shape)], -1), solid


@pytest.fixture(scope="module")
def places():
    return np.random.default_rng(0).random((2, 20000))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(4, 8), (50, 97), (128, 256)])
def test_every_normal_gets_the_irradiance_of_the_map(places, shape):
    """Against quadrature; the map has a sun, black parts and sizes that no tile fits."""
    image = np.random.default_rng(1).random((*shape, 3)).astype(np.float32) ** 4
    image[shape[0] // 4, shape[1] // 3] = 50
    image[:, : shape[1] // 5] = 0
    sky = sky_of(Environment(image))
    d, solid = directions(*sky.image.shape[:2])
    for normal in NORMALS:
        found = drawn(*places, normal, sky)
        value = np.maximum(found[:, :3] @ normal, 0) * found[:, 3] / found[:, 4]
        truth = (np.maximum(d @ normal, 0) * sky.image[..., 0] * solid).sum()
        error = value.std() / np.sqrt(len(value))
        assert abs(value.mean() - truth) < 4.5 * error + 2e-3 * truth
        np.testing.assert_allclose(found[:, 4], found[:, 5], rtol=1e-5)


def test_under_a_nearly_even_sky_hardly_a_ray_is_wasted(places):
    """All rays bring nearly the same light: a spread of a quarter, where brightness alone would leave 1.3."""
    image = np.ones((4, 8, 3), np.float32)
    image[0, 0] = 1.001
    sky = sky_of(Environment(image))
    for normal in NORMALS:
        found = drawn(*places, normal, sky)
        cosine = np.maximum(found[:, :3] @ normal, 0)
        assert (cosine / found[:, 4] / np.pi).std() < 0.4
        assert (cosine == 0).mean() < 0.05


def test_under_an_even_sky_every_ray_brings_the_same(places):
    """Directions by the cosine alone, with the density that is told of them."""
    sky = sky_of(Environment(np.full((4, 8, 3), 0.7, np.float32)))
    for normal in NORMALS:
        found = drawn(*places, normal, sky)
        np.testing.assert_allclose(found[:, :3] @ normal / found[:, 4], np.pi, rtol=1e-6)
        np.testing.assert_allclose(found[:, 4], found[:, 5], rtol=1e-6)
        np.testing.assert_allclose(found[:, 3], 0.7, rtol=1e-6)
