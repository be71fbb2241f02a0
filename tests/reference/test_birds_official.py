"""Fidelity of the staged birds to the official ones, and what happens when official files are broken."""

import json
import os
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from diorama.core.errors import InputError
from diorama.core.scene import Scene
from diorama.worlds.birds.birds import Birds
from diorama.worlds.birds.layout import image_bytes, read_image
from diorama.worlds.birds.metadata import part_records, published_params
from diorama.worlds.birds.parts import primitive, read_glb

FOLDER = Path(os.environ.get("DIORAMA_DATA", Path(__file__).parents[3] / "shared" / "data")) / "funnybirds"
needs_official = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no official FunnyBirds parts in {FOLDER}")


@needs_official
def test_the_one_genuine_image_is_reproduced() -> None:
    """Train sample 25732 of seed 0 against its published image (measured: mean 0.67, 98.8 % of pixels within 24)."""
    genuine = read_image(FOLDER / "genuine_train_025732.png").astype(int)
    scene = Scene("birds", next(islice(published_params("train"), 25732, None)))
    image = image_bytes(Birds(size=256, parts=str(FOLDER)).render([scene])[0])
    error = np.abs(image - genuine)
    assert error.mean() <= 1.0
    assert (error.max(2) <= 24).mean() >= 0.98


@needs_official
def test_keys_follow_the_files_and_not_their_place(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "parts", copy_function=shutil.copy)
    official = Birds(parts=str(FOLDER)).fingerprint()
    assert official == Birds(parts=str(tmp_path / "parts")).fingerprint() != Birds().fingerprint()


@needs_official
def test_the_catalogue_is_the_official_one() -> None:
    assert part_records() == json.loads((FOLDER / "parts.json").read_text())


@needs_official
def test_interventions_on_official_birds_equal_rendering_them_alone() -> None:
    birds = Birds(size=48, parts=str(FOLDER), objects=8)
    scene = birds.sample(np.random.default_rng(5))
    scenes = list(birds.subsets(scene).values())
    for one, many in zip((birds.render([s])[0] for s in scenes), birds.render(scenes), strict=True):
        assert np.array_equal(one.image, many.image) and np.array_equal(one.truth["parts"], many.truth["parts"])


@needs_official
@pytest.mark.parametrize(("broken", "says"), [(b"glTF not at all", "cannot be read"), (None, "missing part file")])
def test_a_broken_or_missing_part_is_named(tmp_path: Path, broken: bytes | None, says: str) -> None:
    shutil.copytree(FOLDER, tmp_path / "parts", copy_function=shutil.copy)
    part = tmp_path / "parts" / "wing" / "wing02.glb"
    part.parent.chmod(0o755)
    part.unlink()
    if broken is not None:
        part.write_bytes(broken)
    birds = Birds(size=16, parts=str(tmp_path / "parts"))
    with pytest.raises(InputError, match=says) as error:
        birds.render([birds.sample(np.random.default_rng(0))])
    assert "wing02.glb" in str(error.value) and "\n" not in str(error.value)


@needs_official
def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    whole = (FOLDER / "beak" / "beak03.glb").read_bytes()
    for length in (0, 10, 30, len(whole) // 2):
        (tmp_path / "cut.glb").write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"cut\.glb"):
            read_glb(tmp_path / "cut.glb")


def test_a_mesh_without_faces_is_named(tmp_path: Path) -> None:
    import trimesh

    (tmp_path / "dots.glb").write_bytes(trimesh.Scene([trimesh.PointCloud(np.eye(3))]).export(file_type="glb"))
    with pytest.raises(InputError, match=r"dots\.glb.*(faces|triangles)"):
        read_glb(tmp_path / "dots.glb")


@pytest.mark.parametrize(
    ("shape", "scale", "extent"),
    [
        ("box", (6, 8, 10), (3, 4, 5)),
        ("cone", (6, 8, 16), (6, 4, 6)),
        ("sphere", (7, 16, 16), (7, 7, 7)),
        ("cylinder", (5, 9, 14), (9, 7, 9)),
        ("capsule", (5, 9, 14), (5, 9.5, 5)),
    ],
)
def test_background_objects_misuse_their_arguments_as_published(
    shape: str, scale: tuple[float, float, float], extent: tuple[float, float, float]
) -> None:
    mesh, size = primitive(shape, scale)
    assert np.allclose(np.abs(mesh.vertices * size).max(0), extent, atol=1e-4)


def test_segments_follow_the_scales() -> None:
    assert len(np.unique(primitive("cone", (6, 8, 5))[0].vertices[:, [0, 2]].round(4), axis=0)) == 5 + 1
    assert len(np.unique(primitive("sphere", (7, 6, 4))[0].vertices[:, 1].round(4))) == 4 + 1
    top = primitive("cylinder", (5, 9, 14))[0].vertices
    assert np.isclose(np.hypot(top[:, 0], top[:, 2])[top[:, 1] > 0.99].max(), 5 / 9)
