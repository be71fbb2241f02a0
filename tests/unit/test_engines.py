"""Engines for logits: the same numbers as torch, named in plan and key, and one line where there is none."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import diorama as package  # noqa: E402
from diorama import InputError  # noqa: E402
from diorama.adapt import engines  # noqa: E402
from diorama.adapt.classifying import Classifier, Function  # noqa: E402
from diorama.core import device  # noqa: E402
from diorama.core.plan import Plan, expand  # noqa: E402

ENGINES = ("onnxruntime", "openvino")


@pytest.fixture(params=ENGINES)
def engine(request):
    pytest.importorskip(request.param)
    pytest.importorskip("onnxscript")
    return request.param


class Small(torch.nn.Module):
    """Convolution, batch norm, a residual, a head; logits of the size of one."""

    size = 32

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm = torch.nn.Conv2d(3, 16, 5, 2), torch.nn.BatchNorm2d(16)
        self.second, self.head = torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.Linear(16, 7)
        self.norm.running_var.fill_(0.3)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        return self.head((x + torch.relu(self.second(x))).mean(dim=(2, 3)))


class Undecided(Small):
    """Which way it goes depends on the numbers, which no graph can say."""

    def forward(self, x):
        return super().forward(x if float(x.sum()) > 0 else -x)


def small(net=Small):
    return Classifier(net(), "small", 32)


def images(count, seed=3):
    return np.random.default_rng(seed).random((count, 32, 32, 3), np.float32)


@pytest.mark.slow
def test_logits_are_those_of_the_network_in_double_precision(engine):
    """Half precision anywhere would be a thousand times further away."""
    model, x = small(), images(11)
    exact = Small().eval().double()(torch.from_numpy(x).double().permute(0, 3, 1, 2)).detach().numpy()
    found = engines.converted(model, engine).logits(x)
    assert found.dtype == np.float32 and found.shape == (11, 7)
    assert np.abs(found - exact).max() < 2e-6 * np.abs(exact).max()


def test_bfloat16_is_right_to_two_digits_and_has_a_key_of_its_own():
    pytest.importorskip("openvino")
    model, x = small(), images(11)
    found, exact = engines.converted(model, "openvino_bf16").logits(x), model.logits(x)
    assert np.abs(found - exact).max() < engines.TOLERANCE_BF16 * np.abs(exact).max()
    given = {"worlds": ["birds"], "methods": [], "protocols": ["accuracy"], "models": ["birds_cnn"], "cases": 1}
    cells = [expand(Plan(**given, engine=name)).cells[0] for name in ("openvino", "openvino_bf16")]
    assert cells[0].key != cells[1].key and cells[1].description["logits"].startswith("openvino_bf16 20")


def test_images_pass_an_engine_in_full_batches():
    """Batches are filled up to the engine's size: a smaller batch would pass images for nothing."""
    from diorama.methods.explain.passes import batches

    assert {len(piece) % device.chunk("cpu") for piece in batches(1000, (448, 448))} == {0}


def test_logits_do_not_depend_on_what_else_is_asked(engine):
    asked, x = engines.converted(small(), engine), images(11)
    assert np.array_equal(asked.logits(x)[:3], asked.logits(x[:3]))
    assert asked.logits(x[:0]).shape == (0, 7)


@pytest.mark.slow
def test_another_size_of_images_is_another_graph(engine):
    model = Classifier(Small(), "small")
    wide = np.random.default_rng(0).random((2, 40, 56, 3), np.float32)
    assert np.allclose(engines.converted(model, engine).logits(wide), model.logits(wide), atol=1e-5)


@pytest.mark.slow
def test_scores_are_those_of_torch_and_methods_rank_the_same(engine):
    asked = {
        "model": "birds_resnet",
        "on": "birds",
        "by": ["funnybirds", "accuracy"],
        "cases": 4,
        "progress": False,
    }
    methods = ["rise(masks=32)", "lime(samples=32)", "occlusion(window=32, stride=32)", "grad_cam"]
    ours = package.evaluate(methods, **asked)
    theirs = package.evaluate(methods, engine=engine, **asked)
    both = ours.rows.merge(theirs.rows, on=["method", "protocol", "case", "metric"], how="outer")
    assert len(both) == len(ours.rows) == len(theirs.rows)
    assert (both.status_x == both.status_y).all()
    assert np.nanmax(np.abs(both.value_x - both.value_y)) <= 1e-4
    order = [r.table.sort_values("mean", kind="stable").method.tolist() for r in (ours, theirs)]
    assert order[0] == order[1]


def test_the_engine_is_in_plan_and_key_and_not_chosen_by_what_is_installed(engine):
    given = {"worlds": ["birds"], "methods": [], "protocols": ["accuracy"], "models": ["birds_cnn"], "cases": 1}
    usual, other = Plan(**given), Plan(**given, engine=engine)
    assert usual.engine == "torch" and f'engine = "{engine}"' in other.to_toml()
    assert Plan.from_table(other.table(), "it") == other and not usual.covers(other)
    keys = [expand(plan).cells[0] for plan in (usual, other)]
    assert keys[0].key != keys[1].key
    assert keys[1].description["logits"].startswith(f"{engine} ") and "logits" not in keys[0].description


def test_cells_without_a_model_have_the_same_key(engine):
    given = {"worlds": ["mondrian"], "methods": ["weiss"], "protocols": ["lmse"], "cases": 1}
    assert expand(Plan(**given)).cells[0].key == expand(Plan(**given, engine=engine)).cells[0].key


def test_gradients_stay_with_torch(engine):
    model = small()
    asked = engines.converted(model, engine)
    assert asked.module is model.module and asked.folded is model.folded and asked.classes == 7


def test_an_engine_that_gives_other_logits_is_refused(engine, monkeypatch):
    right = engines.ENGINES[engine]
    monkeypatch.setitem(engines.ENGINES, engine, lambda graph: lambda x: right(graph)(x) * 1.001)
    with pytest.raises(InputError, match=f"{engine} gives other logits of small than torch: they differ by"):
        engines.converted(small(), engine)


def test_the_first_real_images_are_compared_too(engine, monkeypatch):
    right = engines.ENGINES[engine]
    wrong_on_white = lambda graph: lambda x: right(graph)(x) + (x.min() == 1)  # noqa: E731
    monkeypatch.setitem(engines.ENGINES, engine, wrong_on_white)
    asked = engines.converted(small(), engine)
    with pytest.raises(InputError, match="gives other logits"):
        asked.logits(np.ones((2, 32, 32, 3), np.float32))


def test_what_cannot_be_computed_is_one_line(engine):
    with pytest.raises(InputError, match=f"small does not convert to {engine}: .*; leave out --engine") as told:
        engines.converted(small(Undecided), engine)
    assert "\n" not in str(told.value)
    function = Function(lambda x: np.zeros((len(x), 2)), "mine", 32)
    with pytest.raises(InputError, match=f"mine is a function, which {engine} cannot compute"):
        engines.converted(function, engine)


@pytest.mark.parametrize("package", ["onnxruntime", "onnxscript"])
def test_a_missing_package_is_one_line(package, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(InputError, match=rf"needs {package}: pip install 'diorama\[fast\]'"):
        expand(Plan(["birds"], [], ["accuracy"], ["birds_cnn"], engine="onnxruntime"))


def test_an_unknown_engine_and_another_device_are_refused(monkeypatch):
    with pytest.raises(InputError, match=r"unknown engine 'tensorrt'; .*torch, onnxruntime, openvino"):
        engines.check("tensorrt")
    monkeypatch.setenv("DIORAMA_WORKERS", "gpu")
    engines.check("torch")
    with pytest.raises(InputError, match="computes on the CPU, models are on gpu: add --device cpu"):
        pytest.importorskip("onnxruntime") and engines.check("onnxruntime")


@pytest.mark.slow
def test_a_network_that_does_not_convert_ends_a_run_in_one_line(diorama, tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "mine.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    size = 64\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.head = torch.nn.Linear(3, 50)\n"
        "    def forward(self, x):\n"
        "        return self.head(x.mean(dim=(2, 3)) * (1 if float(x.sum()) > 0 else 2))\n"
        "def build():\n"
        "    torch.manual_seed(0)\n"
        "    return Net()\n"
    )
    words = ["-w", "birds(size=64)", "-M", "./mine.py:build", "-p", "accuracy", "-n", "2", "-o", "out"]
    done = diorama("run", *words, "--engine", "onnxruntime", "--on", "local:1")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("diorama: ./mine.py:build does not convert to onnxruntime: ")
    assert diorama("run", *words, "--on", "local:1").returncode == 0


def test_openvino_is_imported_without_the_package_that_reports_its_use():
    pytest.importorskip("openvino")
    code = (
        "import sys, types; fake = types.ModuleType('openvino_telemetry'); sys.modules['openvino_telemetry'] = fake\n"
        "from diorama.adapt.engines import without_telemetry\n"
        "with without_telemetry():\n"
        "    import openvino.tools.ovc.telemetry_utils as used\n"
        "print(used.tm.__name__, sys.modules['openvino_telemetry'] is fake)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["openvino.tools.ovc.telemetry_stub", "True"]


def test_workers_and_driver_agree_on_the_chunk_of_a_device(monkeypatch):
    """A driver without a GPU plans for workers that have one; a worker without one would give other rows, and is refused."""
    from diorama.core.run import Run
    from diorama.launch.parcel import difference, expectation

    plan = Plan(["birds"], [], ["accuracy"], ["birds_cnn"], cases=1)
    device.set_for_workers("gpu")
    try:
        driver = Run(None, plan)
        assert driver.cells[0].chunk == 64 and driver.cells[0].description["chunk"] == 64
        expected = json.loads(json.dumps(expectation(driver)))
        with pytest.raises(InputError, match="planned for GPUs"):
            device.check_for_workers()
    finally:
        device.set_for_workers("")
    assert "it has no GPU, and the run was planned for one" in difference(Run(None, plan), expected)
    monkeypatch.setattr(device, "current", lambda: "cuda")
    assert difference(Run(None, plan), expected) == ""
