"""Triangle meshes: read from files, made from formulas, moved and merged.

Solids are made about the z axis, counter-clockwise seen from outside, with smooth normals and a uv chart.
Neither numba nor Embree is imported here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import trimesh

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Mesh:
    """Triangles with one normal and one uv per vertex; compared by identity, so make each mesh once and reuse it."""

    vertices: Floats  # (n, 3)
    normals: Floats  # (n, 3), unit length
    uv: Floats  # (n, 2), (0, 0) is the first texel of the first row
    faces: NDArray[np.int32]  # (m, 3), counter-clockwise seen from the front
    bounds: Floats = field(init=False)  # (2, 3), the lowest and the highest coordinates

    def __post_init__(self) -> None:
        for name, kind in (("vertices", np.float32), ("normals", np.float32), ("uv", np.float32), ("faces", np.int32)):
            array = np.array(getattr(self, name), kind, order="C")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        _check(self)
        object.__setattr__(self, "bounds", np.stack([self.vertices.min(0), self.vertices.max(0)]))


def _check(mesh: Mesh) -> None:
    n = len(mesh.vertices)
    if mesh.vertices.shape != (n, 3) or mesh.normals.shape != (n, 3) or mesh.uv.shape != (n, 2):
        raise ValueError("mesh: give (n, 3) vertices, (n, 3) normals and (n, 2) uv of one length n")
    if mesh.faces.ndim != 2 or mesh.faces.shape[1] != 3 or not len(mesh.faces):
        raise ValueError("mesh: no faces; give an (m, 3) array of vertex indices")
    if mesh.faces.min() < 0 or mesh.faces.max() >= n:
        raise ValueError(f"mesh: a face names a vertex outside 0..{n - 1}")
    if not (np.isfinite(mesh.vertices).all() and np.isfinite(mesh.normals).all() and np.isfinite(mesh.uv).all()):
        raise ValueError("mesh: vertices, normals or uv are not finite; remove NaN and infinite values")


# Files


def read_mesh(path: str | Path) -> dict[str, Mesh]:
    """The named meshes of an OBJ, PLY or GLB file in the file's world space; a file without names gives its stem."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such mesh file; check the path")
    scene = _load(path)
    meshes: dict[str, Mesh] = {}
    for node in sorted(scene.graph.nodes_geometry):
        matrix, geometry = scene.graph[node]
        mesh = _from_trimesh(scene.geometry[geometry], path)
        meshes[_name(node, path)] = transform(mesh, matrix) if not np.array_equal(matrix, np.eye(4)) else mesh
    if not meshes:
        raise ValueError(f"{path}: holds no triangles; export a triangle mesh")
    return meshes


#: What trimesh's parsers let through on a damaged file.
_PARSER_ERRORS = (
    ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RuntimeError, OSError, EOFError,
    MemoryError, ImportError, struct.error,
)  # fmt: skip


def _load(path: Path) -> trimesh.Scene:
    try:
        import trimesh
    except ImportError as error:
        raise ValueError("reading meshes needs trimesh: pip install 'diorama[render]'") from error
    try:
        # from its bytes: files that a mesh names (materials, textures) are not opened
        data, kind = BytesIO(path.read_bytes()), path.suffix[1:].lower()
        # the option that keeps the objects of an OBJ apart has had two names
        return trimesh.load_scene(
            data, file_type=kind, process=False, group_material=False, split_object=True, split_objects=True
        )
    except _PARSER_ERRORS as error:
        raise ValueError(f"{path}: cannot be read as a mesh ({type(error).__name__}); export it again") from error


def _name(node: str, path: Path) -> str:
    return path.stem if node in (path.name, "geometry") or node.startswith("geometry_") else node


def _from_trimesh(geometry: trimesh.Trimesh, path: Path) -> Mesh:
    faces = getattr(geometry, "faces", None)
    if faces is None or not len(faces):
        raise ValueError(f"{path}: has no faces; export triangles, not points or lines")
    vertices = np.asarray(geometry.vertices, float)
    if not np.isfinite(vertices).all():
        raise ValueError(f"{path}: has vertices that are not finite; repair and export it again")
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise ValueError(f"{path}: a face names a vertex that is not there; export it again")
    uv = getattr(geometry.visual, "uv", None)
    chart = np.zeros((len(vertices), 2), np.float32)
    if uv is not None and len(uv) == len(vertices):
        chart[:] = uv
    normals = np.asarray(geometry.vertex_normals, float)
    if normals.shape != vertices.shape or not np.isfinite(normals).all():
        normals = smooth_normals(vertices, faces)
    return Mesh(vertices, _unit(normals), chart, faces)


# Transforms


def translation(offset: ArrayLike) -> NDArray[np.float64]:
    """The 4×4 matrix that moves by `offset`."""
    matrix = np.eye(4)
    matrix[:3, 3] = offset
    return matrix


def scaling(factor: ArrayLike) -> NDArray[np.float64]:
    """The 4×4 matrix that scales by one factor, or by one per axis."""
    matrix = np.eye(4)
    matrix[[0, 1, 2], [0, 1, 2]] = factor
    return matrix


def rotation(axis: ArrayLike, radians: float) -> NDArray[np.float64]:
    """The 4×4 right-handed rotation about `axis` (Rodrigues: I + sin θ·K + (1 − cos θ)·K²).

    >>> (rotation((0, 0, 1), np.pi / 2) @ (1, 0, 0, 1)).round(6).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    matrix = np.eye(4)
    matrix[:3, :3] += np.sin(radians) * k + (1 - np.cos(radians)) * k @ k
    return matrix


def transform(mesh: Mesh, matrix: ArrayLike) -> Mesh:
    """The mesh transformed by a 4×4 matrix; normals by the inverse transpose, faces reversed if it mirrors."""
    m = np.asarray(matrix, float)
    normals = mesh.normals @ np.linalg.inv(m[:3, :3])
    faces = mesh.faces if np.linalg.det(m[:3, :3]) > 0 else mesh.faces[:, ::-1]
    return Mesh(mesh.vertices @ m[:3, :3].T + m[:3, 3], _unit(normals), mesh.uv, faces)


def merge(meshes: Iterable[Mesh]) -> Mesh:
    """One mesh with the triangles of all."""
    parts = list(meshes)
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    return Mesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.uv for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, starts, strict=False)]),
    )


def flat(mesh: Mesh) -> Mesh:
    """The mesh flat-shaded: every triangle has three vertices of its own with its face normal."""
    corners = mesh.vertices[mesh.faces]
    normals = _unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    uv = mesh.uv[mesh.faces].reshape(-1, 2)
    return Mesh(corners.reshape(-1, 3), np.repeat(normals, 3, 0), uv, np.arange(len(uv), dtype=np.int32).reshape(-1, 3))


def smooth_normals(vertices: ArrayLike, faces: ArrayLike) -> Floats:
    """Vertex normals: the area-weighted mean of the normals of the faces around each vertex."""
    v, f = np.asarray(vertices, float), np.asarray(faces)
    face_normals = np.cross(v[f[:, 1]] - v[f[:, 0]], v[f[:, 2]] - v[f[:, 0]])
    total = np.zeros_like(v)
    for corner in range(3):
        np.add.at(total, f[:, corner], face_normals)
    return _unit(total).astype(np.float32)


def cross(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.floating]:
    """a × b along the last axis; several times faster on few vectors than numpy's, which moves axes."""
    return a[..., _NEXT] * b[..., _AFTER] - a[..., _AFTER] * b[..., _NEXT]


_NEXT, _AFTER = [1, 2, 0], [2, 0, 1]


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    upwards = np.eye(vectors.shape[1])[-1]
    return np.where(length > 0, vectors / np.where(length > 0, length, 1), upwards)


# Solids


def plane(columns: int = 1, rows: int = 1) -> Mesh:
    """The square −1..1 in x and y at z = 0, facing +z."""
    return _grid(columns, rows, lambda u, v: (2 * u - 1, 2 * v - 1, 0 * u))


def box() -> Mesh:
    """The cube −1..1, six flat faces."""
    side = transform(plane(), translation((0, 0, 1)))
    turns = [((1, 0, 0), k * np.pi / 2) for k in range(4)] + [((0, 1, 0), np.pi / 2), ((0, 1, 0), -np.pi / 2)]
    return merge(transform(side, rotation(axis, angle)) for axis, angle in turns)


def sphere(sectors: int = 48, rings: int = 24) -> Mesh:
    """The unit sphere; u follows longitude, v latitude."""
    mesh = revolve([(np.sin(a), -np.cos(a)) for a in np.linspace(0, np.pi, rings + 1)], sectors)
    return Mesh(mesh.vertices, _unit(mesh.vertices), mesh.uv, mesh.faces)


def cylinder(sectors: int = 48, top: float = 1.0) -> Mesh:
    """From radius 1 at z = −1 to radius `top` at z = 1, with both caps."""
    return revolve([(0, -1), (1, -1), (1, -1), (top, 1), (top, 1), (0, 1)], sectors)


def cone(sectors: int = 48) -> Mesh:
    """Base of radius 1 at z = −1, apex at z = 1."""
    return revolve([(0, -1), (1, -1), (1, -1), *((1 - t, 2 * t - 1) for t in np.linspace(0, 1, 9))], sectors)


def capsule(length: float = 2.0, sectors: int = 48, rings: int = 12) -> Mesh:
    """A tube of radius 1 and the given length about the origin, with a half sphere on each end."""
    angles = np.linspace(0, np.pi / 2, rings + 1)
    lower = [(np.sin(a), -np.cos(a) - length / 2) for a in angles]
    return revolve([*lower, *((r, -z) for r, z in reversed(lower))], sectors)


def torus(tube: float = 0.35, sectors: int = 48, rings: int = 24) -> Mesh:
    """A ring of radius 1 in the xy plane, its tube of radius `tube`."""

    def point(u: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
        a, b = 2 * np.pi * u, 2 * np.pi * v
        r = 1 + tube * np.cos(b)
        return r * np.cos(a), r * np.sin(a), tube * np.sin(b)

    return _grid(sectors, rings, point)


def revolve(profile: Sequence[tuple[float, float]], sectors: int = 48) -> Mesh:
    """The surface of revolution of (radius, z) points in upward order; a point given twice makes a crease."""
    points = np.asarray(profile, float)
    creases = np.flatnonzero((points[1:] == points[:-1]).all(1)) + 1
    runs = [run for run in np.split(points, creases) if len(run) > 1]
    if not runs:
        raise ValueError("revolve: give at least two different (radius, z) points")
    return merge(_revolve_smooth(run, sectors) for run in runs)


def _revolve_smooth(run: NDArray[np.float64], sectors: int) -> Mesh:
    slope = np.gradient(run, axis=0)
    outward = _unit(np.stack([slope[:, 1], -slope[:, 0]], 1))
    angle = np.linspace(0, 2 * np.pi, sectors + 1)
    around = np.stack([np.cos(angle), np.sin(angle)], 1)

    def turn(curve: NDArray[np.floating]) -> NDArray[np.floating]:
        ring = curve[:, None, 0, None] * around[None]
        return np.concatenate([ring, np.broadcast_to(curve[:, None, 1:], (*ring.shape[:2], 1))], 2).reshape(-1, 3)

    u, v = np.meshgrid(np.linspace(0, 1, sectors + 1), np.linspace(0, 1, len(run)))
    vertices = turn(run)
    faces = _proper(vertices, _grid_faces(sectors, len(run) - 1))
    return Mesh(vertices, _unit(turn(outward)), np.stack([u.ravel(), v.ravel()], 1), faces)


def sweep(path: ArrayLike, radius: ArrayLike, sectors: int = 16) -> Mesh:
    """A round tube along a path of points, of one radius or one per point; open where the end radius is not 0.

    Give radius 0 at an end to close it with a tip. Frames are carried along without twist (parallel transport).
    """
    points = np.asarray(path, float)
    radii = np.broadcast_to(np.asarray(radius, float), (len(points),))
    tangents = _unit(np.gradient(points, axis=0))
    side = np.cross(tangents[0], np.eye(3)[np.abs(tangents[0]).argmin()])
    rings = []
    for point, tangent, r in zip(points, tangents, radii, strict=True):
        side = side - tangent * (side @ tangent)
        side /= np.linalg.norm(side)
        angle = np.linspace(0, 2 * np.pi, sectors + 1)[:, None]
        rings.append(point + r * (np.cos(angle) * side + np.sin(angle) * np.cross(tangent, side)))
    vertices = np.concatenate(rings)
    faces = _proper(vertices, _grid_faces(sectors, len(points) - 1))
    normals = _weld_normals(vertices, faces)
    u, v = np.meshgrid(np.linspace(0, 1, sectors + 1), np.linspace(0, 1, len(points)))
    return Mesh(vertices, normals, np.stack([u.ravel(), v.ravel()], 1), faces)


def _grid(columns: int, rows: int, point) -> Mesh:  # type: ignore[no-untyped-def]
    u, v = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, columns + 1), np.linspace(0, 1, rows + 1)))
    vertices = np.stack(point(u, v), 1)
    faces = _grid_faces(columns, rows)
    return Mesh(vertices, _weld_normals(vertices, faces), np.stack([u, v], 1), faces)


def _grid_faces(columns: int, rows: int) -> NDArray[np.int32]:
    i = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)).ravel()
    a, b, c, d = i, i + 1, i + columns + 2, i + columns + 1
    return np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)


def _proper(vertices: NDArray[np.floating], faces: NDArray[np.int32]) -> NDArray[np.int32]:
    """The faces with an area; at a pole every second triangle of the grid is degenerate."""
    v = vertices[faces]
    area = np.linalg.norm(np.cross(v[:, 1] - v[:, 0], v[:, 2] - v[:, 0]), axis=1)
    return faces[area > 1e-12 * area.max()]


def _weld_normals(vertices: NDArray[np.floating], faces: NDArray[np.int32]) -> Floats:
    """Smooth normals across the seam of the uv chart: vertices at the same place share one normal."""
    scale = np.abs(vertices).max() or 1.0
    places, same = np.unique(np.round(vertices / scale, 7), axis=0, return_inverse=True)
    same = same.ravel()
    return smooth_normals(places * scale, same[faces])[same]
