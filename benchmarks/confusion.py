"""The confusion matrix: all rates of 1,000 maps against numpy.sum over them and Quantus' Focus; LIME against its passes.

Quantus is measured where it can be imported; $DIORAMA_QUANTUS names a folder that `pip install --target` put it in.
"""

import importlib
import importlib.util
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks._print import main, seconds
from diorama.core.catalogue import build
from diorama.core.device import one_thread
from diorama.metrics.confusion import evidence
from diorama.metrics.confusion import rates as rates_of

#: Maps, their side, and how many of them Quantus is given at once (its default).
MAPS, SIDE, BATCH = 1000, 448, 64


def rates() -> dict[str, float]:
    """Every rate of 1,000 float32 maps in memory; the sides take turns, so that a busy machine slows all of them."""
    random = np.random.default_rng(0)
    maps = random.standard_normal((MAPS, SIDE, SIDE), np.float32)
    own = random.permuted(np.tile([1, 1, 0, 0], (MAPS, 1)), axis=1)
    rates_of(evidence(maps[:64], own[:64], 2))  # compiled before it is measured
    calls: dict[str, Any] = {"numpy_sum": lambda: np.sum(maps), "rates": lambda: rates_of(evidence(maps, own, 2))}
    focus = _focus()
    if focus is not None:
        calls["quantus_focus"] = lambda: [
            focus.evaluate_batch(a_batch=maps[i : i + BATCH, None], c_batch=own[i : i + BATCH])
            for i in range(0, MAPS, BATCH)
        ]
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(7):
        for name, call in calls.items():
            best[name] = min(best[name], seconds(call))
    figures = {f"{name}_seconds": taken for name, taken in best.items()}
    figures["rates_over_numpy_sum"] = best["rates"] / best["numpy_sum"]
    if focus is not None:
        theirs = np.concatenate(calls["quantus_focus"]())
        figures["quantus_focus_over_rates"] = best["quantus_focus"] / best["rates"]
        figures["focus_difference"] = float(np.abs(theirs - rates_of(evidence(maps, own, 2))["precision"]).max())
    return figures


def _focus() -> Any:
    """Quantus' Focus, or None where it is not installed."""
    if folder := os.environ.get("DIORAMA_QUANTUS"):
        sys.path.append(folder)
    if importlib.util.find_spec("quantus") is None:
        print("quantus is not installed: its figures are left out (set DIORAMA_QUANTUS)", file=sys.stderr)
        return None
    from diorama.adapt.torchvision_ops import make_importable

    make_importable()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = importlib.import_module("quantus.metrics.localisation.focus")
        return found.Focus(disable_warnings=True)


class Timed:
    """A model that adds up how long its passes take."""

    def __init__(self, model: Any) -> None:
        self.model, self.seconds = model, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def logits(self, images: np.ndarray) -> np.ndarray:
        """The model's logits, timed."""
        start = time.perf_counter()
        found = self.model.logits(images)
        self.seconds += time.perf_counter() - start
        return found


@one_thread()
def lime() -> dict[str, float]:
    """LIME in the paper's settings, 1,000 samples: everything over the time inside the network."""
    from diorama.methods.explain.lime_acm import LimeAcm

    figures: dict[str, float] = {}
    for name, cell in (("birds_cnn", 64), ("efficientnet_lite0", 112)):
        if name != "birds_cnn" and importlib.util.find_spec("efficientnet_lite_pytorch") is None:
            print(f"{name} is not installed: LIME on it is left out", file=sys.stderr)
            continue
        world, model = build("world", f"mosaic(source=birds(size={cell}))").object, Timed(build("model", name).object)
        image = world.render([world.scene(0)[1]])[0].srgb()
        LimeAcm(samples=8).explain_targets(model, image, [0])  # loaded before it is measured
        model.seconds = 0.0
        whole = seconds(lambda model=model, image=image: LimeAcm().explain_targets(model, image, [0]))  # type: ignore[misc]
        figures |= {f"lime_{name}_seconds": whole, f"lime_{name}_over_passes": whole / model.seconds}
    return figures


def measure() -> dict[str, float]:
    """All figures."""
    return {**rates(), **lime()}


if __name__ == "__main__":
    main("confusion", measure, ("numpy", "numba", "torch"))
