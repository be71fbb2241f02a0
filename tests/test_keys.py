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
    assert {"retinex_gray", "_gradients", "poisson", "frame", "scene"} <= names
    assert not {"weiss", "retinex_color", "lmse", "cli", "html", "run"} & names
