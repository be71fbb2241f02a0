"""Meshes: solids are closed and face outwards, files are read or refused in one line."""

import subprocess
import sys

import numpy as np
import pytest

from diorama.render import mesh
from diorama.render.check import winding
from diorama.render.mesh import Mesh, read_mesh, rotation, scaling, transform, translation

SOLIDS = {
    "box": (mesh.box(), 8.0),
    "sphere": (mesh.sphere(96, 48), 4 / 3 * np.pi),
    "cylinder": (mesh.cylinder(96), 2 * np.pi),
    "cone": (mesh.cone(96), 2 / 3 * np.pi),
    "capsule": (mesh.capsule(2.0, 96, 24), (4 / 3 + 2) * np.pi),
    "sweep": (mesh.sweep([(0, 0, -1), (0, 0, -1), (0, 0, 1), (0, 0, 1)], [0, 1, 1, 0], 96), 2 * np.pi),
}


def corners(m: Mesh) -> np.ndarray:
    return m.vertices[m.faces].astype(float)


def volume(m: Mesh) -> float:
    a, b, c = np.moveaxis(corners(m), 1, 0)
    return float((a * np.cross(b, c)).sum() / 6)


def face_normals(m: Mesh) -> np.ndarray:
    a, b, c = np.moveaxis(corners(m), 1, 0)
    n = np.cross(b - a, c - a)
    return n / np.linalg.norm(n, axis=1, keepdims=True)


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_closed_and_face_outwards(name):
    solid, expected = SOLIDS[name]
    assert volume(solid) == pytest.approx(expected, rel=5e-3)
    assert winding(solid, (0.1, 0.05, 0.2)) == pytest.approx(1, abs=1e-6)
    assert winding(solid, (3, 1, 2)) == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(np.linalg.norm(solid.normals, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("name", ["box", "sphere", "cylinder", "cone", "capsule"])
def test_normals_lie_close_to_the_faces(name):
    solid = SOLIDS[name][0]
    cosine = (face_normals(solid)[:, None] * solid.normals[solid.faces]).sum(-1)
    assert cosine.min() > 0.99


def test_torus_has_the_volume_of_its_formula():
    assert volume(mesh.torus(0.35, 96, 48)) == pytest.approx(2 * np.pi**2 * 0.35**2, rel=1e-2)


def test_uv_runs_from_0_to_1():
    for solid, _ in SOLIDS.values():
        assert solid.uv.min() >= 0 and solid.uv.max() <= 1


def test_a_mirrored_mesh_still_faces_outwards():
    mirrored = transform(mesh.sphere(), translation((1, 2, 3)) @ scaling((-1, 2, 3)))
    assert volume(mirrored) == pytest.approx(6 * volume(mesh.sphere()), rel=1e-5)
    assert winding(mirrored, (1, 2, 3)) == pytest.approx(1, abs=1e-6)
    assert (face_normals(mirrored)[:, None] * mirrored.normals[mirrored.faces]).sum(-1).min() > 0.9


def test_rotation_keeps_lengths_and_turns_right_handed():
    matrix = rotation((1, 2, 3), 0.7)[:3, :3]
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(rotation((1, 0, 0), np.pi / 2)[:3, :3] @ (0, 1, 0), (0, 0, 1), atol=1e-12)


def test_flat_gives_every_face_its_normal():
    facets = mesh.flat(mesh.sphere(8, 4))
    np.testing.assert_allclose(facets.normals[facets.faces[:, 0]], face_normals(facets), atol=1e-6)


@pytest.mark.parametrize(
    ("faces", "message"),
    [(np.zeros((0, 3)), "no faces"), ([[0, 1, 7]], "outside"), ([[0, 1]], "no faces")],
)
def test_bad_meshes_are_refused(faces, message):
    with pytest.raises(ValueError, match=message):
        Mesh(np.eye(3), np.eye(3), np.zeros((3, 2)), faces)


def test_non_finite_meshes_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        Mesh(np.full((3, 3), np.nan), np.eye(3), np.zeros((3, 2)), [[0, 1, 2]])


@pytest.mark.parametrize("suffix", ["obj", "ply", "glb"])
def test_a_written_mesh_reads_back(tmp_path, suffix):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / f"box.{suffix}"
    trimesh.creation.box().export(path)
    (read,) = read_mesh(path).values()
    assert volume(read) == pytest.approx(1, rel=1e-5)


def test_objects_of_a_file_keep_their_names(tmp_path):
    pytest.importorskip("trimesh")
    path = tmp_path / "two.obj"
    triangle = "v 0 0 {0}\nv 1 0 {0}\nv 0 1 {0}\n"
    path.write_text(f"o left\n{triangle.format(0)}f 1 2 3\no right\n{triangle.format(1)}f 4 5 6\n")
    meshes = read_mesh(path)
    assert set(meshes) == {"left", "right"}
    assert meshes["right"].vertices[:, 2].tolist() == [1, 1, 1]


def test_node_transforms_are_applied(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    scene = trimesh.Scene()
    scene.add_geometry(trimesh.creation.box(), node_name="here", geom_name="here", transform=translation((5, 0, 0)))
    scene.export(tmp_path / "moved.glb")
    assert read_mesh(tmp_path / "moved.glb")["here"].vertices[:, 0].min() == pytest.approx(4.5)


def broken_files(folder):
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box().export(folder / "whole.glb")
    trimesh.creation.box().export(folder / "whole.ply")
    (folder / "cut.glb").write_bytes((folder / "whole.glb").read_bytes()[:200])
    (folder / "cut.ply").write_bytes((folder / "whole.ply").read_bytes()[:300])
    (folder / "empty.ply").write_text("")
    (folder / "noise.obj").write_text("hello\nv 1 2")
    (folder / "points.obj").write_text("v 1 2 3\nv 1 2 4\n")
    (folder / "nan.obj").write_text("v 1 2 nan\nv 1 2 4\nv 2 2 2\nf 1 2 3\n")
    (folder / "index.obj").write_text("v 1 2 0\nv 1 2 4\nv 2 2 2\nf 1 2 9\n")
    (folder / "what.xyz").write_text("what")
    return [
        "cut.glb",
        "cut.ply",
        "empty.ply",
        "noise.obj",
        "points.obj",
        "nan.obj",
        "index.obj",
        "what.xyz",
        "none.obj",
    ]


def test_broken_files_are_refused_in_one_line_that_names_them(tmp_path):
    for name in broken_files(tmp_path):
        with pytest.raises(ValueError, match=name) as caught:
            read_mesh(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_importing_meshes_imports_neither_numba_nor_embree():
    code = (
        "import sys, diorama; from diorama.render import mesh, stage, toon, path;"
        "print([m for m in sys.modules if m.split('.')[0] in ('numba', 'embreex', 'trimesh')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
