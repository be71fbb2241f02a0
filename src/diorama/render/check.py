"""Checks that every renderer makes before it starts; every error is one line that says what to change."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from diorama.render.mesh import Mesh, cross
from diorama.render.stage import Instance, Stage


def check(stage: Stage, width: int, height: int, samples: int) -> None:
    """Raise ValueError for an empty stage, a size or sample count below 1, unknown names, a camera inside a solid."""
    if width < 1 or height < 1:
        raise ValueError(f"render: an image of {width}×{height} pixels has no pixels; give a width and height ≥ 1")
    if samples < 1:
        raise ValueError(f"render: {samples} samples; give 1 or more")
    if not stage.instances:
        raise ValueError("render: the stage is empty; give at least one instance")
    for instance in stage.instances:
        _check_names(stage, instance)
    stage.camera.basis()
    _check_outside(stage)


def transforms(stage: Stage) -> NDArray[np.float64]:
    """The (n, 4, 4) transforms of the instances; ValueError if one is not finite or flattens its mesh."""
    matrices = np.array([instance.transform for instance in stage.instances], float)
    if matrices.shape[1:] != (4, 4) or not np.isfinite(matrices).all():
        raise ValueError("render: every transform must be a finite 4×4 matrix")
    return matrices


def cofactors(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """det(A)·A⁻ᵀ of (n, 3, 3) matrices, which transforms normals even if A cannot be inverted."""
    a, b, c = matrices[:, 0], matrices[:, 1], matrices[:, 2]
    return np.stack([cross(b, c), cross(c, a), cross(a, b)], 1)


def determinants(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """det of (n, 3, 3) matrices."""
    return np.einsum("ni,ni->n", matrices[:, 0], cross(matrices[:, 1], matrices[:, 2]))


def _check_names(stage: Stage, instance: Instance) -> None:
    if instance.mesh not in stage.library:
        raise ValueError(f"render: no mesh {instance.mesh!r} in the library")
    if instance.texture is not None and instance.texture not in stage.textures:
        raise ValueError(f"render: no texture {instance.texture!r} on the stage")


def _check_outside(stage: Stage) -> None:
    matrices = transforms(stage)
    linear = matrices[:, :3, :3]
    det = determinants(linear)
    offset = np.asarray(stage.camera.eye, float) - matrices[:, :3, 3]
    solid = np.abs(det) > 1e-30
    # A⁻¹ = cofactorᵀ / det
    local = np.einsum("nij,ni->nj", cofactors(linear), offset) / np.where(solid, det, 1)[:, None]
    bounds = np.array([stage.library[instance.mesh].bounds for instance in stage.instances])
    inside = solid & (local >= bounds[:, 0]).all(1) & (local <= bounds[:, 1]).all(1)
    for k in np.flatnonzero(inside).tolist():
        instance = stage.instances[k]
        if winding(stage.library[instance.mesh], local[k]) > 0.75:
            raise ValueError(
                f"camera: the eye is inside object {instance.object} (mesh {instance.mesh!r}); move one of them, "
                "or turn the faces inwards to make a room"
            )


def winding(mesh: Mesh, point: ArrayLike) -> float:
    """The winding number of a closed mesh around a point: Σ solid angles / 4π (Van Oosterom & Strackee 1983).

    >>> from diorama.render.mesh import sphere
    >>> round(winding(sphere(), (0.1, 0.2, 0.3)), 3), round(winding(sphere(), (2, 0, 0)), 3)
    (1.0, 0.0)
    """
    a, b, c = np.moveaxis(mesh.vertices[mesh.faces] - np.asarray(point, float), 1, 0)
    la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    above = np.einsum("ni,ni->n", a, cross(b, c))
    below = la * lb * lc + (a * b).sum(1) * lc + (b * c).sum(1) * la + (c * a).sum(1) * lb
    return float(np.arctan2(above, below).sum() / (2 * np.pi))
