"""Keys contain what they stand for: parameters, source, data; not formatting, comments, documentation or places."""

import shutil
from pathlib import Path

import pytest

from diorama.core import keys
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.keys import Root, source_key
from diorama.core.spec import Spec

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

    retinex, _ = keys.closure(build("method", "retinex_gray").path, (keys.OURS,))
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
    "how many images a model is asked about at once": ("core/device.py", "return 8 if", "return 4 if", EVERY),
    "how a draw is encoded": (
        "protocols/codes/draws.py",
        "np.concatenate(of_method)",
        "np.vstack(of_method)",
        frozenset({"mig", "cg"}),
    ),
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


@pytest.mark.slow
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


# Components in components


@pytest.mark.parametrize(("outer", "inner"), [
    ("mosaic(source='{}', per_class=1)", ("birds(size=48)", "birds(size=48, objects=3)")),
    ("csm(test='{}')", ("test_scenes(scenes=2)", "test_scenes(scenes=3)")),
    ("csm(variant=published, negatives='{}')", ("random_scenes(count=8)", "random_scenes(count=9)")),
    ("tcav(concept='{}')", ("birds", "birds(size=64)")),
    ("tcav(concept=birds, negatives='{}')", ("birds", "birds(size=64)")),
])  # fmt: skip
def test_a_component_s_key_contains_those_of_the_components_it_is_given(outer, inner):
    kind = "world" if outer.startswith("mosaic") else "protocol"
    one, other = (build(kind, outer.format(text)) for text in inner)
    assert one.digest != other.digest
    assert build(kind, outer.format(inner[0])).digest == one.digest
    held = build("world", inner[0])
    assert any(part == held.key for part in one.key["params"].values())


INNER = '''"""A world made of another, and a protocol that looks at one."""
from dataclasses import dataclass

from diorama.core.catalogue import Component
from diorama.core.contracts import World


@dataclass(frozen=True)
class Twice(World):
    source: Component[World]
    factors = {}
    truth = ()

    def sample(self, rng):
        return self.source.object.sample(rng)

    def do(self, scene, **changes):
        return scene

    def render(self, scenes):
        return self.source.object.render(scenes)
'''
PLAIN = '''"""A world."""
import numpy as np

from diorama import Frame, Scene


class Plain:
    factors, truth = {}, ()

    def sample(self, rng):
        return Scene("plain", {})

    def do(self, scene, **changes):
        return scene

    def render(self, scenes):
        return [Frame(s, np.zeros((4, 4, 3), np.float32), "srgb") for s in scenes]
'''


def test_an_outsider_s_component_is_given_others_too_and_its_key_follows_their_source(tmp_path):
    (tmp_path / "outer.py").write_text(INNER)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "plain.py").write_text(PLAIN)
    text = f"{tmp_path}/outer.py:Twice(source={tmp_path}/inner/plain.py:Plain)"
    world = build("world", text)
    before = world.digest
    assert build("world", text).digest == before
    assert world.object.render([world.object.scene_at(0, 0)[1]])[0].image.shape == (4, 4, 3)
    (tmp_path / "inner" / "plain.py").write_text(PLAIN.replace("zeros", "ones"))
    assert build("world", text).digest != before


def test_a_component_is_given_as_itself_too():
    inner = build("world", "birds(size=48)")
    given = build("world", Spec("mosaic", {"source": inner, "per_class": 1}))
    assert given.object.images is inner.object
    assert given.digest == build("world", "mosaic(source=birds(size=48), per_class=1)").digest


@pytest.mark.parametrize(("kind", "text", "said"), [
    ("world", "mosaic(source=brids)", "unknown world 'brids'; did you mean 'birds'"),
    ("world", "mosaic(source=nowhere/photos)", "there is no 'nowhere/photos'"),
    ("world", "mosaic(source=3)", r"mosaic: source=3 should name a world \(diorama ls worlds\)"),
    ("protocol", "tcav(concept=nowhere/photos)", "tcav: concept: there is no folder 'nowhere/photos'"),
    ("protocol", "csm(test=birds_cnn)", "unknown world 'birds_cnn'"),
    ("protocol", "csm(test=birds(sise=3))", "birds has no parameter 'sise'; did you mean 'size'"),
])  # fmt: skip
def test_a_mistake_in_a_component_within_another_is_named(kind, text, said):
    with pytest.raises(InputError, match=said):
        build(kind, text)


def test_no_component_asks_the_catalogue_for_another():
    """What a component needs of another kind is among its parameters; it may name the type, and build nothing.

    Two build what only a file names: `checkpoint` the network of a tuned folder's card, `scenes` the world of its scenes.
    """
    import ast

    from diorama.core import keys

    asking = []
    for room in ("worlds", "models", "methods", "protocols"):
        for path in (keys.OURS.folder / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "diorama.core.catalogue":
                    asking += [f"{path.stem}: {a.name}" for a in node.names if a.name != "Component"]
    assert sorted(asking) == ["checkpoint: build", "scenes: build"]


def test_distributions_that_are_called_otherwise_are_those_that_the_list_of_all_names():
    for module, names in keys.CALLED.items():
        listed = keys.distributions().get(module, [])
        found = [name for name in names if name in [one.lower() for one in listed]]
        assert len(found) == len(listed), f"{module} is in {listed}"
