"""What a user meets around a run: the folder it goes to, progress in a log, results alone on stdout, odd arguments."""

import json
import shlex
import subprocess
import sys
import time

import numpy as np
import pytest

from diorama.core.errors import InputError, shortened
from diorama.core.plan import MOST_CASES, Plan, expand
from diorama.core.spec import parse
from diorama.gates import parse_gate
from diorama.progress import Estimate
from tests.conftest import REPOSITORY
from tests.contract.test_cli import SMALL, WORLD
from tests.contract.test_cli import one_line as says


@pytest.mark.slow
def test_another_command_does_not_replace_the_first_unless_a_folder_is_named(diorama, tmp_path):
    assert diorama("run", *SMALL, "-m", "weiss").returncode == 0
    plan = tmp_path / "diorama-run" / "plan.toml"
    report, first = (plan.with_name("report.html"), plan.read_text())
    page = report.read_bytes()
    says(diorama("run", *SMALL, "-m", "baseline"), 2, "diorama-run holds the results of another command", "-o NAME")
    assert plan.read_text() == first and report.read_bytes() == page
    again = diorama("run", *SMALL, "-m", "weiss")  # run the same command again
    assert again.returncode == 0 and "3 known, 0 to compute" in again.stderr
    more = diorama("run", *SMALL, "-m", "weiss", "-m", "baseline")  # one that asks for more loses nothing
    assert more.returncode == 0 and "3 known, 3 to compute" in more.stderr


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"cases": 5}, True),
        ({"cases": 2}, False),
        ({"cases": None}, True),
        ({"seed": 1}, False),
        ({"methods": ["b", "a"]}, True),
        ({"methods": ["b"]}, False),
        ({"worlds": ["v"]}, False),
        ({"controls": True}, True),
    ],
)
def test_which_plans_keep_all_of_another(change, kept):
    given = {"worlds": ["w"], "methods": ["a"], "protocols": ["p"], "cases": 3}
    assert Plan(**{**given, **change}).covers(Plan(**given)) == kept


LOUD = """
import ctypes, os, sys
from diorama import Layers

print("imported")


class Loud:
    def decompose(self, frames):
        print("1/2")
        sys.__stdout__.write("by another name")
        os.write(1, b"by number")
        ctypes.CDLL(None).printf(b"from C")
        gray = frames[0].linear().mean(axis=2, keepdims=True)
        return Layers(gray, gray)
"""


@pytest.mark.parametrize("on", ["local", "local:2"])
def test_what_a_method_prints_is_not_among_the_results(diorama, tmp_path, on):
    (tmp_path / "loud.py").write_text(LOUD)
    result = diorama("run", *SMALL, "-m", "./loud.py:Loud", "--json", "--on", on)
    assert json.loads(result.stdout)["cells"][0]["summary"]["lmse"]["n_ok"] == 3
    for words in ("imported", "1/2", "by another name", "by number", "from C"):
        assert words in result.stderr, words


@pytest.mark.slow
def test_what_components_print_while_they_are_shown_checked_and_worked_on(diorama, tmp_path):
    (tmp_path / "loud.py").write_text(LOUD)
    assert diorama("show", "./loud.py:Loud").stdout.splitlines()[0] == "method ./loud.py:Loud"
    assert diorama("check", "./loud.py:Loud").stdout.startswith("ok ")
    diorama("run", *SMALL[:-1], "1", "-m", "./loud.py:Loud", "-o", "out")
    plan = tmp_path / "out" / "plan.toml"
    plan.write_text(plan.read_text().replace("cases = 1", "cases = 2"))
    assert diorama("work", "out").stdout == "shard 0/1: 1 cases computed, 0 failed; 0 of 2 cases are left\n"


SLOW = """
import time
from diorama import Layers

class Slow:
    def decompose(self, frames):
        time.sleep(0.2)
        gray = frames[0].linear().mean(axis=2, keepdims=True)
        return Layers(gray, gray)
"""


def test_a_log_gets_a_line_now_and_then(tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    words = ["diorama", "run", *SMALL[:-1], "6", "-m", "./slow.py:Slow", "-o", "out"]
    code = f"import sys; from diorama import cli, progress; progress.EVERY = 0.1; sys.argv = {words!r}; cli.main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("scoring: ")]
    assert len(lines) > 2 and any(" of 6 cases after " in line and " left" in line for line in lines)
    assert "scoring" not in done.stdout


def test_the_time_left_is_by_the_pace_of_this_piece_of_work():
    clock = [0.0]
    state = Estimate("training", "steps", lambda: clock[0])
    clock[0] = 100
    state(900, 1000)  # taken up again at 900
    clock[0] = 110
    state(910, 1000, "epoch 3")
    assert state.line() == "training: 910 of 1000 steps after 1 min 50 s, about 1 min 30 s left (epoch 3)"
    state(1, 50)  # the next piece of work
    clock[0] = 121
    assert state.line() == "training: 1 of 50 steps after 2 min 01 s"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", *SMALL, "-m", "weiss", "--on", "local:²"], "cannot run on 'local:²'"),
        (["work", "out", "--shard", "²/3"], "--shard ²/3"),
        (["run", *SMALL, "-m", "builtins:print"], "builtins is part of Python itself"),
        (["run", "-w", "numpy:array", "-m", "weiss", "-p", "lmse"], "is no world: it has no factors"),
        (["run", "-w", WORLD, "-m", "weiss", "-p", "numpy:mean"], "is no protocol: it has no track"),
        (["run", *SMALL, "-m", "collections:OrderedDict"], "has no signature"),
        (["run", *SMALL, "-m", "weiss", "-o", b"\xff\xfe"], "is not UTF-8"),
        (["run", *SMALL, "-m", "x" * 100_000], "unknown method"),
        (["x" * 100_000], "unknown command"),
        (["run", *SMALL[:-1], "100000000", "-m", "weiss"], "100000000 cases are too many"),
        (["run", *SMALL, "-m", "weiss", "--require", " " * 20_000], "write METRIC<=NUMBER"),
    ],
)
def test_odd_arguments_get_one_short_line_at_once(tmp_path, words, said):
    start = time.monotonic()
    command = [sys.executable, "-m", "diorama", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and time.monotonic() - start < 30
    line = done.stderr.splitlines()[-1]  # a line before it may say which module is imported
    assert said in line and len(line) <= len("diorama: ") + 500


def test_a_long_message_keeps_its_beginning_and_its_end():
    text = shortened("cannot read " + 100_000 * "x" + "\nchoose another")
    assert len(text) == 500 and text.startswith("cannot read xxx") and text.endswith("x choose another")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (" a : b <= 1 ", ("a", "b", "<=", 1.0)),
        ("tcav(concept='x:y'):score>0.5", ("tcav(concept='x:y')", "score", ">", 0.5)),
        ("m(k=1):lmse<-1e-3", ("m(k=1)", "lmse", "<", -0.001)),
        ("sd>=.5", (None, "sd", ">=", 0.5)),
    ],
)
def test_gates_are_read(text, parts):
    gate = parse_gate(text)
    assert (gate.method, gate.metric, gate.relation, gate.bound) == parts


@pytest.mark.parametrize(
    "text", ["lmse", "lmse<=", "<=1", "a b<=1", "lmse<=inf", "lmse<=1<=2", "lmse=<1", "<" * 20_000]
)
def test_what_is_no_gate_is_refused(text):
    with pytest.raises(InputError, match="write METRIC<=NUMBER"):
        parse_gate(text)


def test_the_most_cases_are_allowed():
    (cell,) = expand(Plan([WORLD], ["weiss"], ["lmse"], cases=MOST_CASES)).cells
    assert cell.count == MOST_CASES
    with pytest.raises(InputError, match="too many"):
        expand(Plan([WORLD], ["weiss"], ["lmse"], cases=MOST_CASES + 1))


KINDS = '''
"""Mine."""
from diorama.methods.concept.ridge import Ridge
from diorama.protocols.layers.lmse import Lmse
from diorama.worlds.mondrian import Mondrian

class P(Lmse): ...
class W(Mondrian): ...
class T(Ridge): ...
def saliency(module): ...
def net(images): ...
'''


def test_show_says_of_things_in_a_file_what_they_are(diorama, tmp_path):
    (tmp_path / "mine.py").write_text(KINDS)
    for name, kind in {"P": "protocol", "W": "world", "T": "method", "saliency": "method", "net": "model"}.items():
        assert diorama("show", f"./mine.py:{name}").stdout.startswith(f"{kind} ./mine.py:{name}\n")


def test_show_renders_nothing():
    """`show candle` took sixteen seconds to measure a residual that is zero by construction."""
    code = (
        "from diorama.worlds.candle.candle import Candle; from diorama.describe import describe\n"
        "def fail(self, scenes): raise SystemExit('it renders')\n"
        "Candle.render = fail; print('\\n'.join(describe('candle')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "image = reflectance · shading + specular, exactly" in done.stdout and "width: int" in done.stdout


@pytest.mark.slow
def test_the_first_run_of_the_readme_works_when_pasted(diorama, tmp_path):
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("diorama run")).partition("#")[0]
    words = [*shlex.split(line)[1:], "-n", "2"]  # the last -n counts
    result = diorama(*words)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "diorama-run" / "report.html").is_file()


BIRDS = ["-w", "birds(size=128)", "-M", "birds_cnn", "-p", "single_deletion", "-n", "1"]
TINY = """
import numpy as np
from diorama import Frame, Scene

class Tiny:
    factors, truth = {}, ("label", "parts")
    part_names, part_ids = ("one",), {"one": (1,)}
    def sample(self, rng): return Scene("tiny", {"k": int(rng.integers(9))})
    def do(self, scene, **changes): return scene
    def render(self, scenes):
        truth = {"label": 0, "parts": np.zeros((16, 16), int)}
        return [Frame(s, np.zeros((16, 16, 3), np.float32), "srgb", truth) for s in scenes]
"""


@pytest.fixture
def photos(tmp_path):
    """Two classes of four pictures each."""
    from diorama.io.images import write_png

    for label, name in enumerate(("cat", "dog")):
        for i in range(4):
            write_png(tmp_path / "photos" / name / f"{i}.png", np.full((32, 32, 3), 60 * label + i, np.uint8))


MOSAIC = ["-m", "grad_cam", "-p", "confusion"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-w", "mosaic(source=photos)", "-M", "birds_cnn", *MOSAIC], ["write mosaic(source=…, cell=64)"]),
        (["-w", "mosaic(source=photos, cell=64)", "-M", "birds_cnn", *MOSAIC], ["has 2: fit one", "head(backbone="]),
        (["-w", "photos(source=photos)", "-M", "birds_cnn", *MOSAIC], ["needs the truth cells", "mosaic(source=…)"]),
        ([*BIRDS, "-m", "grad_cam(layer=nowhere)"], ["the model has no layer 'nowhere'"]),
        ([*BIRDS, "-m", "captum(name=Salience)"], ["captum has no method 'Salience'; did you mean 'Saliency'"]),
        ([*BIRDS, "-m", "captum(name=LayerGradCam)"], ["needs a layer", "layer=…"]),
        ([*BIRDS, "-m", "captum(name=LayerGradCam, layer=nowhere)"], ["the model has no layer 'nowhere'"]),
        (["-w", "./tiny.py:Tiny", *BIRDS[2:], "-m", "grad_cam"], ["takes 128×128 images", "are 16×16"]),
        (["-w", "mit_intrinsic(root=photos, objects=apple)", "-m", "weiss", "-p", "lmse"], ["write objects=[apple]"]),
    ],
)
def test_hints_name_what_would_work_before_anything_runs(photos, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.py").write_text(TINY)
    letters = {"-w": "worlds", "-M": "models", "-m": "methods", "-p": "protocols"}
    given = dict(zip(words[::2], words[1::2], strict=True))
    with pytest.raises(InputError) as caught:
        expand(Plan(**{name: [given[k]] if k in given else [] for k, name in letters.items()}, cases=1))
    for part in said:
        assert part in str(caught.value)


def test_lists_of_bare_words():
    assert parse("w(objects=[apple, pear], k=(a, 2), z=[[a], 'b c'])").params == {
        "objects": ["apple", "pear"],
        "k": ("a", 2),
        "z": [["a"], "b c"],
    }
    for text in ("w(a=[x)", "w(a=[x,,y])"):
        with pytest.raises(InputError):
            parse(text)


BASE = """
import sys
from diorama import cli

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "embreex", "torch", "captum"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
cli.main()
"""


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["render", "candle", "-n", "1", "-o", "out"], "render"),
        (["render", "birds", "-n", "1", "-o", "out"], "render"),
        (["run", *BIRDS, "-m", "grad_cam"], "torch"),
        (["train", "birds_cnn"], "torch"),
    ],
)
def test_the_base_install_names_the_extra_it_lacks(tmp_path, words, extra):
    done = subprocess.run(
        [sys.executable, "-c", BASE, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    says(done, 2, f"pip install 'diorama[{extra}]'")
