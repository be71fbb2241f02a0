"""A folder of one's own photos: parts removed by each operator, locality, labels, and clear errors."""

import json

import numpy as np
import pytest

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.io.images import write_png
from diorama.testing.check import check_component
from tests.conftest import REPOSITORY


@pytest.fixture
def photos(tmp_path):
    """Two classes, three photos of 40×30, two parts each."""
    import cv2

    random = np.random.default_rng(0)
    for name in ("cats/a", "cats/b", "dogs/c"):
        image = cv2.GaussianBlur(random.integers(0, 256, (30, 40, 3)).astype(np.uint8), (0, 0), 2)
        write_png(tmp_path / "images" / f"{name}.png", image)
        for part, where in {"ear": np.s_[5:12, 8:20], "tail": np.s_[18:25, 22:35]}.items():
            mask = np.zeros((30, 40), np.uint8)
            mask[where] = 255
            write_png(tmp_path / "masks" / name / f"{part}.png", mask)
    return tmp_path


def world(photos, more=""):
    return build("world", f"folder(images={photos}/images, masks={photos}/masks{more})")


@pytest.mark.parametrize("removal", ["blur", "mean", "inpaint"])
def test_removal_changes_the_part_and_nothing_else(photos, removal):
    made = world(photos, f", removal={removal}").object
    _, scene = made.scene(0)
    before, after = made.render([scene, made.do(scene, ear=None)])
    gone = before.truth["parts"] == made.part_ids["ear"][0]
    assert gone.sum() == 7 * 12
    assert np.array_equal(before.image[~gone], after.image[~gone])
    assert not np.array_equal(before.image[gone], after.image[gone])
    assert made.note == f"parts are removed by {removal}"
    assert not (after.truth["parts"] == made.part_ids["ear"][0]).any()
    if removal == "mean":
        assert np.allclose(after.image[gone], before.image[~gone].mean(axis=0), atol=1e-6)


def test_contract_and_labels(photos):
    component = world(photos)
    assert check_component(component, lambda line: None)
    assert [component.object.render([component.object.scene(i)[1]])[0].truth["label"] for i in range(3)] == [0, 0, 1]
    ordered = world(photos, ", labels='dogs, cats'").object
    assert ordered.render([ordered.scene(0)[1]])[0].truth["label"] == 1


@pytest.mark.slow
def test_single_deletion_on_photos_says_how_parts_were_removed(photos, diorama):
    pytest.importorskip("torch")
    pytest.importorskip("captum")
    spec = f"folder(images={photos}/images, masks={photos}/masks, size=64, removal=mean)"
    model = f"{REPOSITORY}/tests/tiny_models.py:Tiny"
    result = diorama(
        "run", "-w", spec, "-M", model, "-m", "input_x_gradient", "-p", "single_deletion", "-p", "accuracy", "--json"
    )
    assert result.returncode == 0, result.stderr
    sd, accuracy = json.loads(result.stdout)["cells"]
    assert sd["summary"]["sd"]["n_ok"] == 3 and accuracy["summary"]["accuracy"]["n_ok"] == 3
    assert "parts are removed by mean" in diorama("report", "diorama-run", "--format", "text").stdout


def test_errors_name_the_file_and_the_fix(photos, tmp_path):
    made = world(photos).object
    with pytest.raises(InputError, match=r"cannot change 'eer'; did you mean 'ear'"):
        made.do(made.scene(0)[1], eer=None)
    with pytest.raises(InputError, match="can only be removed"):
        made.do(made.scene(0)[1], ear=2)
    write_png(photos / "masks" / "cats" / "a" / "ear.png", np.ones((9, 9), np.uint8))
    with pytest.raises(InputError, match=r"ear\.png is 9×9 pixels, its image 40×30"):
        made.render([made.scene(0)[1]])
    (photos / "images" / "cats" / "a.png").write_bytes(b"\x89PNG\r\n\x1a\nnonsense")
    with pytest.raises(InputError, match=r"a\.png is truncated"):
        made.render([made.scene(0)[1]])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no image"):
        build("world", f"folder(images={tmp_path}/empty, masks={photos}/masks)")
    with pytest.raises(InputError, match="holds no mask"):
        build("world", f"folder(images={photos}/images, masks={tmp_path}/empty)")
    with pytest.raises(InputError, match="no folder 'nowhere'"):
        build("world", "folder(images=nowhere, masks=x)")


def test_half_a_jpeg_is_refused(photos):
    import cv2

    path = photos / "images" / "dogs" / "d.jpg"
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (30, 40, 3)).astype(np.uint8))
    made = world(photos).object
    assert made.render([made.scene(3)[1]])[0].image.shape == (30, 40, 3)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match=r"d\.jpg is damaged or truncated"):
        made.render([made.scene(3)[1]])
