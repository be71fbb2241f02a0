"""Forward passes by another engine: a network is exported to ONNX, and ONNX Runtime or OpenVINO computes its logits.

Engines compute logits only: tables of logits, RISE, LIME, Occlusion, accuracy. Gradients and features stay with torch. An
engine is chosen by name (`--engine`), is part of the plan and of every key, and computes in float32 with one thread in
batches of one fixed size, so that the key determines the results. `openvino_bf16` computes in bfloat16 if the processor
can: half the time, logits correct to two digits. An engine's logits are compared with torch's twice: on noise images when
a network is converted, and on the first real images.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from diorama.adapt.classifying import USUAL_SIZE, pass_module
from diorama.core import device
from diorama.core.contracts import Model
from diorama.core.errors import InputError, did_you_mean
from diorama.core.guard import attempt

if TYPE_CHECKING:
    from torch import nn

#: The default engine, which needs no conversion: torch, with batch norms folded.
USUAL = "torch"
#: The other engines, with the packages that each needs.
PACKAGES = {"onnxruntime": ("onnxruntime", "onnxscript"), "openvino": ("openvino", "onnxscript")}
PACKAGES["openvino_bf16"] = PACKAGES["openvino"]
#: The largest difference of a logit from torch's, relative to the largest logit: in float32, in bfloat16, and in bfloat16
#: on noise. For noise, logits are small sums of large features, so bfloat16 loses more of their digits.
TOLERANCE, TOLERANCE_BF16, TOLERANCE_BF16_NOISE = 1e-4, 0.1, 0.5

#: Images (n, 3, h, w) float32 to logits.
Pass = Callable[[np.ndarray], np.ndarray]


def check(engine: str) -> None:
    """Raise InputError unless an engine is known, is installed, and runs on the device of the models."""
    known = [USUAL, *PACKAGES]
    if engine not in known:
        raise InputError(f"unknown engine {engine!r}; {did_you_mean(engine, known)} (there are {', '.join(known)})")
    for package in PACKAGES.get(engine, ()):
        if importlib.util.find_spec(package) is None:
            raise InputError(f"--engine {engine} needs {package}: pip install 'diorama[fast]', or leave out --engine")
    if engine != USUAL and device.for_workers() != "cpu":
        there = device.for_workers()
        raise InputError(f"--engine {engine} computes on the CPU, models are on {there}: add --device cpu")


def converted(model: Model, engine: str) -> Model:
    """The model with its logits computed by an engine; InputError if the engine cannot."""
    if engine == USUAL:
        return model
    if model.module is None:
        raise InputError(f"{model.name} is a function, which {engine} cannot compute: leave out --engine")
    return Converted(model, engine)


class Converted(Model):
    """A model whose logits an engine computes; everything else is the original model's."""

    def __init__(self, model: Model, engine: str) -> None:
        self.model, self.engine, self.chunk = model, engine, device.chunk("cpu")
        self.name, self.classes, self.size, self.heads = model.name, model.classes, model.size, model.heads
        self.layers, self.cam_layer, self.copies = model.layers, model.cam_layer, model.copies
        self.module, self.folded = model.module, model.folded
        self._passes: dict[tuple[int, int], Pass] = {}
        self._compared = False
        side = model.size or USUAL_SIZE
        noise = np.random.default_rng(0).random((self.chunk, side, side, 3), np.float32)
        self._compare(noise, self._logits(noise), TOLERANCE_BF16_NOISE)
        self._compared = False

    def logits(self, images: np.ndarray) -> np.ndarray:
        """(n, h, w, 3) float32 sRGB in [0, 1] → (n, classes) float32."""
        found = self._logits(images)
        if not self._compared and len(images):
            self._compare(images[: self.chunk], found[: self.chunk])
        return found

    def features(self, images: np.ndarray, layer: str) -> np.ndarray:
        """The features of the original model."""
        return self.model.features(images, layer)

    def fingerprint(self) -> str | None:
        """The fingerprint of the original model."""
        return self.model.fingerprint()

    def _logits(self, images: np.ndarray) -> np.ndarray:
        size = images.shape[1], images.shape[2]
        if size not in self._passes:
            self._passes[size] = self._convert(size)
        passing, found = self._passes[size], [np.zeros((0, self.classes), np.float32)]
        for start in range(0, len(images), self.chunk):
            part = images[start : start + self.chunk]
            full = part if len(part) == self.chunk else np.concatenate([part, *[part[-1:]] * (self.chunk - len(part))])
            found.append(passing(np.ascontiguousarray(full.transpose(0, 3, 1, 2)))[: len(part)])
        return np.concatenate(found)

    def _convert(self, size: tuple[int, int]) -> Pass:
        shape = (self.chunk, 3, *size)
        outcome = attempt(lambda: ENGINES[self.engine](_as_onnx(pass_module(self.model), shape)))
        if outcome.error:
            raise InputError(
                f"{self.name} does not convert to {self.engine}: {outcome.reason[:200]}; leave out --engine"
            ) from outcome.error
        return outcome.value

    def _compare(self, images: np.ndarray, found: np.ndarray, allowed_bf16: float = TOLERANCE_BF16) -> None:
        """Raise InputError unless torch gives the same logits."""
        expected = self.model.logits(images)
        apart = float(np.abs(found - expected).max() / max(float(np.abs(expected).max()), 1e-30))
        allowed = allowed_bf16 if self.engine == "openvino_bf16" else TOLERANCE
        if not apart <= allowed:
            raise InputError(
                f"{self.engine} gives other logits of {self.name} than torch: they differ by {apart:.1e} of the largest"
                f" (at most {allowed:g} is allowed): leave out --engine"
            )
        self._compared = True


def _as_onnx(module: nn.Module, shape: tuple[int, ...]) -> bytes:
    """A network in eval mode as an ONNX graph for images of one shape."""
    import torch

    first = torch.zeros(shape)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        program = torch.onnx.export(module, (first,), dynamo=True, verbose=False)
    assert program is not None
    return program.model_proto.SerializeToString()


def _onnxruntime(graph: bytes) -> Pass:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda images: np.asarray(session.run(None, {name: images})[0], np.float32)


def _openvino(graph: bytes, precision: str = "f32") -> Pass:
    with without_telemetry():
        import openvino

    core = openvino.Core()
    settings = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
    # without pinning: pinned threads of several workers would share one core
    compiled = core.compile_model(core.read_model(graph), "CPU", {**settings, "ENABLE_CPU_PINNING": False})
    return lambda images: np.array(compiled(images)[0], np.float32)


ENGINES: dict[str, Callable[[bytes], Pass]] = {
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "openvino_bf16": partial(_openvino, precision="bf16"),
}


@contextmanager
def without_telemetry() -> Iterator[None]:
    """Import OpenVINO as if its telemetry package were not installed, so that no usage data is sent."""
    before = {name: found for name, found in sys.modules.items() if name.partition(".")[0] == "openvino_telemetry"}
    for name in before:
        del sys.modules[name]
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["openvino_telemetry"]
        sys.modules.update(before)
