"""Components and data that misbehave: a failure is a row or one line, and a name never leads out of its folder."""

import os
from pathlib import Path

import numpy as np
import pytest

from diorama.api import run
from diorama.core.catalogue import build
from diorama.core.contracts import Score
from diorama.core.errors import AnswerError, InputError
from diorama.core.run import open_run
from diorama.io.images import write_png
from diorama.io.names import case_path, distinct, inside

WORLD = "mondrian(size=32, patches=4)"
GOOD = "np.ones((*frames[0].image.shape[:2], 1))"


def method(folder: Path, body: str, head: str = "") -> str:
    """A method whose `decompose` runs `body` and answers with ones unless that returns or raises."""
    lines = [f"        {line}" for line in body.splitlines()]
    source = ["import os, sys, warnings", "import numpy as np", "from diorama import Layers", head, "class Bad:"]
    source += ["    def decompose(self, frames):", *lines, f"        return Layers({GOOD}, {GOOD})", ""]
    (folder / "bad.py").write_text("\n".join(source))
    return f"{folder}/bad.py:Bad"


def errors_of(folder: Path) -> list[str]:
    """The reasons of all error rows of a run."""
    made = open_run(folder)
    return [row.reason for cell in made.cells for row in made.rows(cell) if row.status == "error"]


SILENT = "class Silent(Exception):\n    def __str__(self):\n        raise RuntimeError('no')"
ROOT = "class Root(BaseException):\n    pass"


@pytest.mark.parametrize(
    ("body", "head", "said"),
    [
        ("raise ValueError('half a \\ud800 character')", "", "ValueError: half a \\ud800 character"),
        ("raise Silent()", SILENT, "Silent: (Silent cannot be shown)"),
        ("raise Root('of all')", ROOT, "Root: of all"),
        ("sys.exit(0)", "", "SystemExit: 0"),
        ("raise ValueError('x' * 10**6)", "", "ValueError: xxx"),
    ],
)
def test_whatever_a_method_raises_becomes_a_row(tmp_path, body, head, said):
    document = run([WORLD], [method(tmp_path, body, head), "baseline"], ["lmse"], cases=2, out=tmp_path / "out")
    bad, good = (cell["summary"]["lmse"] for cell in document["cells"])
    assert (bad["n_error"], good["n_ok"]) == (2, 2)
    reasons = errors_of(tmp_path / "out")
    assert reasons and all(reason.startswith(said) and len(reason) <= 400 for reason in reasons)
    assert len(list((tmp_path / "out").glob("cells/*/*/errors/*.txt"))) == 2


PROTOCOL = """
import numpy as np
from diorama import Score
from diorama.core.contracts import Case
from diorama.protocols.layers.lmse import Lmse


class Odd(Lmse):
    metrics, how = ("x",), "{how}"

    def case(self, world, seed, index):
        made = super().case(world, seed, index)
        if self.how == "raises" and index == 1:
            raise ZeroDivisionError("no second case")
        if self.how == "none" and index == 1:
            return None
        names = {{"long": "n" * 5000, "out": "../../../out", "nul": "a\\0b", "half": "caf\\udce9", "root": "/etc/x"}}
        return Case(f"{{names.get(self.how, 'case')}}{{index}}" if self.how != "same" else "same", made.payload)

    def arrays(self, bench, case):
        return {{"x": np.zeros(2)}}

    def score(self, bench, case):
        if self.how == "fails":
            raise RuntimeError("scored")
        values = {{"float32": np.float32(0.5), "text": "0.5", "nested": [[1.0]], "none": 1}}
        yield Score("x", values.get(self.how, 0.5))
"""


def odd(tmp_path: Path, how: str) -> dict:
    """The results of a protocol that does one odd thing, over three cases."""
    (tmp_path / "odd.py").write_text(PROTOCOL.format(how=how))
    document = run([WORLD], ["constant"], [f"{tmp_path}/odd.py:Odd"], cases=3, out=tmp_path / "deep" / "run")
    return document["cells"][0]["summary"]["x"]


def test_numbers_of_numpy_are_numbers(tmp_path):
    summary = odd(tmp_path, "float32")
    assert (summary["n_ok"], summary["mean"]) == (3, 0.5)
    assert Score("x", np.float32([1, 2])).value == [1.0, 2.0]


@pytest.mark.parametrize("how", ["text", "nested"])
def test_what_is_no_number_is_an_error_row(tmp_path, how):
    assert odd(tmp_path, how)["n_error"] == 3


@pytest.mark.parametrize("how", ["raises", "none"])
def test_a_case_that_cannot_be_made_is_an_error_row_and_the_others_stand(tmp_path, how):
    summary = odd(tmp_path, how)
    assert (summary["n_ok"], summary["n_error"]) == (2, 1)
    (reason,) = errors_of(tmp_path / "deep" / "run")
    assert ("no second case" if how == "raises" else "NoneType, not a Case") in reason


@pytest.mark.parametrize("how", ["long", "out", "nul", "half", "root"])
def test_no_case_name_ends_the_run_or_leaves_its_folder(tmp_path, how):
    assert odd(tmp_path, how)["n_ok"] == 3
    written = {path for path in tmp_path.rglob("*") if path.is_file() and path.parent != tmp_path}
    assert all((tmp_path / "deep" / "run") in path.parents for path in written if "__pycache__" not in path.parts)
    assert len([path for path in written if path.suffix == ".npz"]) == 3


def test_two_cases_of_one_name_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"two cases called 'same'"):
        odd(tmp_path, "same")


def test_a_score_has_a_value_only_where_it_is_ok():
    for given in ({"value": None}, {"value": 1.0, "status": "undefined"}, {"value": 1.0, "status": "fine"}):
        with pytest.raises(AnswerError):
            Score("x", **given)


@pytest.mark.parametrize(
    ("kind", "base", "line", "said"),
    [
        ("method", "object", "grid = 5", "grid is 5, and has to be a list of parameter sets"),
        ("method", "object", "grid = ({'a': 1}, {'b': 1})", "name the same parameters"),
        ("method", "object", "views = 'light'", "views is 'light', and has to be a list of changes"),
        ("method", "object", "views = property(lambda self: 1 / 0)", "views is ZeroDivisionError: division by zero"),
        ("method", "object", "note = 7", "note is 7, and has to be a text"),
        ("model", "object", "classes = 'ten'", "classes is 'ten', and has to be a whole number"),
        ("world", "Mondrian", "truth = ('beauty',)", "truth is ('beauty',), and has to be a list of label"),
        ("world", "Mondrian", "__len__ = lambda self: -1", "cannot count its scenes: ValueError"),
        ("protocol", "Lmse", "metrics = ()", "metrics is (), and has to be a list of names"),
    ],
)
def test_odd_declarations_are_one_line(tmp_path, kind, base, line, said):
    head = "from diorama.worlds.mondrian import Mondrian\nfrom diorama.protocols.layers.lmse import Lmse\n"
    verbs = "    def logits(self, images): ...\n    def decompose(self, frames): ...\n"
    (tmp_path / "odd.py").write_text(f"{head}class Odd({base}):\n{verbs}    {line}\n")
    with pytest.raises(InputError) as caught:
        build(kind, f"{tmp_path}/odd.py:Odd")
    assert said in str(caught.value) and len(str(caught.value)) <= 500


def test_a_case_has_one_file_below_its_folder_whatever_it_is_called():
    base = Path("keep")
    names = ["a", "A/b", "../a", "..", ".", "", "/", "//", "/a", "a\0b", "a%00b", "%", "~", "x" * 300, "x" * 299 + "y"]
    names += ["é" * 200, "caf\udce9", "a/" * 500, "a\nb", "con/../../x", "x" * 160 + "~" + "0" * 16]
    paths = [case_path(base, name, ".npz") for name in names]
    assert len(set(paths)) == len(names)
    for path in paths:
        assert base in path.parents and os.path.normpath(path) == str(path)
        assert all(len(part.encode()) < 255 and "\0" not in part for part in path.parts)


def test_names_in_tables_stay_below_their_folder():
    assert inside(Path("photos"), "a/b.png") == Path("photos/a/b.png")
    for name in ("../b.png", "/etc/passwd", "a/../../b.png", "a\0.png", ""):
        with pytest.raises(InputError, match="lead out"):
            inside(Path("photos"), name)


def test_files_of_one_name_are_told_apart():
    names = ["a/m1.png", "b/m1.png", "cat.png", "cat.jpg", "a__m1.png", "m2.png", "a/m1.jpg"]
    assert len(set(distinct(names).values())) == len(set(distinct(names, folders=True).values())) == len(names)


def test_photos_of_one_name_are_two_cases_and_masks_of_one_name_are_refused(tmp_path):
    for file in ("a/m1.png", "b/m1.png", "cat.png", "cat.PNG"):
        (tmp_path / "photos" / file).parent.mkdir(parents=True, exist_ok=True)
        write_png(tmp_path / "photos" / file, np.zeros((16, 16, 3), np.uint8))
    world = build("world", f"photo_folder(root={tmp_path}/photos, size=16)").object
    assert len({world.scene(i)[0] for i in range(len(world))}) == 4
    write_png(tmp_path / "masks" / "cat" / "ear.png", np.zeros((16, 16), np.uint8))
    with pytest.raises(InputError, match="two cases called 'cat'"):
        build("world", f"folder(images={tmp_path}/photos, masks={tmp_path}/masks)")


def test_a_table_of_photos_or_mosaics_reads_nothing_outside(tmp_path):
    write_png(tmp_path / "secret.png", np.zeros((16, 16, 3), np.uint8))
    for folder in ("a", "b"):
        write_png(tmp_path / "set" / folder / "m1.png", np.zeros((16, 16, 3), np.uint8))
    (tmp_path / "set" / "list.csv").write_text("filename,label\n../secret.png,cat\n")
    with pytest.raises(InputError, match="lead out"):
        build("world", f"photos(source={tmp_path}/set/list.csv)")
    head = "filename,filename_0,filename_1,filename_2,filename_3,label_0,label_1,label_2,label_3,target_class\n"
    (tmp_path / "set" / "mosaics.csv").write_text(head + "../secret.png,a,b,c,d,0,1,0,1,0\n")
    with pytest.raises(InputError, match="lead out"):
        build("world", f"mosaic(source={tmp_path}/set/mosaics.csv)")
    (tmp_path / "set" / "mosaics.csv").write_text(head + "a/m1.png,a,b,c,d,0,1,0,1,0\nb/m1.png,a,b,c,d,0,1,0,1,0\n")
    world = build("world", f"mosaic(source={tmp_path}/set/mosaics.csv)").object
    assert [world.scene(i)[0] for i in range(2)] == ["a__m1", "b__m1"]


def test_saved_answers_are_read_below_their_folder_only(tmp_path):
    (tmp_path / "saved").mkdir()
    np.savez(tmp_path / "secret.npz", reflectance=np.ones((32, 32, 1)), shading=np.ones((32, 32, 1)))
    frame = build("world", WORLD).object
    shown = frame.render([frame.sample(np.random.default_rng(0))])[0]
    for name in ("decompose/predictions", "explain/predictions"):
        with pytest.raises(InputError, match="secret"):
            build("method", f"{name}(folder={tmp_path}/saved)").object.load("../secret", shown, 0)


@pytest.mark.parametrize("where", ["import os\nos._exit(0)\n", "import os\nimport sys\nsys.exit(0)\n"])
@pytest.mark.parametrize("made", [False, True])
def test_a_component_that_ends_the_process_while_it_is_made_is_one_line(diorama, tmp_path, where, made):
    body = (
        f"class Mine:\n    def __init__(self):\n        import os, sys\n        {where.splitlines()[-1]}\n"
        if made
        else where
    )
    (tmp_path / "mine.py").write_text(body + "\n    def decompose(self, frames):\n        return None\n" * made)
    result = diorama("run", "-w", "mondrian(size=24)", "-m", "./mine.py:Mine", "-p", "lmse", "-n", "2")
    assert result.returncode == 2 and "exit" in result.stderr.lower() and "Traceback" not in result.stderr, (
        result.stderr
    )
