"""Keys contain what they stand for: parameters, source, data; not formatting, comments, documentation or places."""

import shutil
from pathlib import Path

import pytest

from diorama.core.catalogue import build
from diorama.core.keys import Root, source_key

SOURCE = '''"""A method."""
from diorama import Layers
from helper import half


class Mine:
    def __init__(self, share: float = 0.5):
        self.share = share

    def decompose(self, frames):
        image = frames[0].linear()
        return Layers(image * half(), image * 0 + self.share)
'''


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "helper.py").write_text("def half():\n    return 0.5\n")
    (tmp_path / "mine.py").write_text(SOURCE)
    return tmp_path / "mine.py"


def key(path: Path):
    return source_key(path, Root("", path.parent))


def test_formatting_comments_and_documentation_change_nothing(mine):
    before = key(mine)
    mine.write_text(
        SOURCE.replace('"""A method."""', '"""Other words."""\n# a comment').replace(
            "(self, share: float = 0.5)", "(\n        self, share: float = 0.5\n    )"
        )
    )
    assert key(mine) == before


def test_code_changes_the_key_also_in_a_neighbour_it_imports(mine):
    before = key(mine)
    mine.write_text(SOURCE.replace("image * 0", "image * 1"))
    changed = key(mine)
    assert changed != before
    (mine.parent / "helper.py").write_text("def half():\n    return 0.25\n")
    assert key(mine) not in (before, changed)


def test_defaults_are_filled_in_and_parameters_count(mine):
    spec = f"{mine}:Mine"
    assert build("method", spec).digest == build("method", f"{spec}(share=0.5)").digest
    assert build("method", spec).digest != build("method", f"{spec}(share=0.4)").digest


def test_recorded_data_counts_by_content_not_by_place(mini_mit, tmp_path):
    def digest(root):
        return build("world", f"mit_intrinsic(root={root}, objects=('box', 'deer'))").digest

    copy = tmp_path / "elsewhere"
    shutil.copytree(mini_mit, copy)
    assert digest(mini_mit) == digest(copy)
    shutil.copy(copy / "deer" / "light01.png", copy / "box" / "light01.png")
    assert digest(mini_mit) != digest(copy)


def test_bundled_methods_depend_on_what_they_import_and_nothing_else():
    from diorama.core import keys

    retinex, _ = keys._closure(build("method", "retinex_gray").path, (keys.OURS,))
    names = {path.stem for path in retinex}
    assert {"retinex_gray", "gradients", "poisson", "frame", "scene"} <= names
    assert not {"weiss", "retinex_color", "lmse", "cli", "html", "run"} & names


#: Cells by their components: world, model, method, protocol.
CELLS = {
    "lmse": ("world mondrian", "method decompose/weiss", "protocol lmse"),
    "fitted": ("world mondrian", "method decompose/tappen05", "protocol lmse"),
    "whdr": ("world tabletop", "method decompose/retinex_gray", "protocol whdr"),
    "psnr": ("world tabletop", "method decompose/iid_supervised", "protocol psnr"),
    "csm": ("world concepts", "method decompose/leak", "protocol csm"),
    "funnybirds": ("world birds", "model birds_cnn", "method explain/saliency", "protocol funnybirds"),
    "deletion": ("world birds", "model birds_vgg", "method explain/grad_cam", "protocol single_deletion"),
    "accuracy": ("world birds", "model birds_cnn", "protocol accuracy"),
    "confusion": ("world mosaic", "model birds_resnet", "method explain/lime_acm", "protocol confusion"),
    "tcav": ("world birds", "model birds_cnn", "method concept/ridge", "protocol tcav"),
    "mig": ("world sprites", "method represent/pca", "protocol mig"),
    "cg": ("world sprites", "model sprites_moments", "method represent/pca", "protocol cg"),
}
EVERY, NONE = frozenset(CELLS), frozenset[str]()
#: One edit of a copy of the package: file, what is replaced, by what; and the cells whose keys it changes.
EDITS = {
    "how cases are dealt to folds": ("core/folds.py", "i % 2 != index % 2", "i % 2 == index % 2", EVERY),
    "how scores of a grid are merged": ("core/run.py", "len(scores) == 1", "len(scores) <= 1", EVERY),
    "how many images a model is asked about at once": ("adapt/classifying.py", "CHUNK = 64", "CHUNK = 32", EVERY),
    "how a draw is encoded": ("protocols/codes/draws.py", "CHUNK = 250", "CHUNK = 200", frozenset({"mig", "cg"})),
    "cases of a unit": ("core/run.py", "BLOCK = 8", "BLOCK = 4", EVERY),
    "a metric": ("metrics/lmse.py", "def lmse(", "_ = 1\n\n\ndef lmse(", frozenset({"lmse", "fitted"})),
    "a docstring": ("protocols/layers/lmse.py", '"""LMSE: local', '"""LMSE, the local', NONE),
    "an annotation": ("metrics/mig.py", ") -> Measured:", ") -> object:", NONE),
    "an unrelated protocol": ("protocols/codes/uc.py", "self.rho < 1", "self.rho < 2", NONE),
    "a helper of a world": (
        *("worlds/tabletop/stage.py", "from ", "_ = 0\nfrom "),
        frozenset({"whdr", "psnr", "csm"}),
    ),
}


def cell_keys(package: Path) -> dict[str, list[object]]:
    from diorama.core.keys import engine_key

    root = Root("diorama", package)
    return {
        name: [engine_key(root), *(source_key(package / file_of(component), root) for component in cell)]
        for name, cell in CELLS.items()
    }


def file_of(component: str) -> Path:
    from diorama.core import keys
    from diorama.core.catalogue import entries

    kind, name = component.split()
    return entries(kind)[name].path.relative_to(keys.OURS.folder)


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    from diorama.core import keys

    copy = tmp_path_factory.mktemp("copy") / "diorama"
    shutil.copytree(keys.OURS.folder, copy, ignore=shutil.ignore_patterns("*.safetensors", "__pycache__"))
    return copy


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_the_keys_of_the_cells_whose_values_it_can_change(edit, package):
    file, old, new, wanted = EDITS[edit]
    before, text = cell_keys(package), (package / file).read_text()
    assert old in text
    try:
        (package / file).write_text(text.replace(old, new, 1))
        after = cell_keys(package)
    finally:
        (package / file).write_text(text)
    assert {name for name in CELLS if after[name] != before[name]} == wanted


def test_libraries_that_are_imported_for_annotations_alone_are_in_no_key():
    assert "torch" not in source_key(build("protocol", "lmse").path)["libraries"]
