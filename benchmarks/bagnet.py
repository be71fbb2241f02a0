"""BagNet's evidence at every pixel: one dense pass against the loop over patches, for the bundled network and one bird.

The loop cuts the patch around every pixel and runs the network on it. One patch at a time is how the map is defined, and how
FunnyBirds counts 65,536 forwards an image; many patches at a time is the best a loop can do. Both are timed on some of the
patches and scaled to all; the dense pass is timed whole.
"""

import os
import sys
from pathlib import Path

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks._print import main, seconds
from diorama.core.catalogue import build
from diorama.core.device import one_thread

#: Patches that are timed one by one, and in batches of `BATCH`.
SINGLE, BATCHED, BATCH = 200, 2_048, 256


def measure() -> dict[str, float]:
    """Seconds of the three ways, their ratios, and the largest difference between loop and dense pass."""
    import torch
    from torch.nn.functional import pad

    one_thread()
    world, model = build("world", "birds").object, build("model", "birds_bagnet").object
    frame = world.render([world.scene_at(0, 0)[1]])[0]
    label, method, net = int(frame.truth["label"]), build("method", "bagnet").object, model.module
    before = (net.field - 1) // 2
    x = torch.from_numpy(np.array(frame.srgb())).permute(2, 0, 1)[None]
    x = pad(x, (before, net.field - 1 - before) * 2)
    patches = x.unfold(2, net.field, 1).unfold(3, net.field, 1)[0].permute(1, 2, 0, 3, 4).flatten(0, 1)
    chosen = np.random.default_rng(0).permutation(len(patches))

    def loop(count: int, batch: int) -> np.ndarray:
        index = chosen[:count]
        with torch.inference_mode():
            found = [net(patches[index[i : i + batch]])[:, label] for i in range(0, count, batch)]
        return torch.cat(found).numpy()

    def dense() -> np.ndarray:
        return method.explain_targets(model, frame.srgb(), [label])[0].values.ravel()

    gap = np.abs(loop(BATCHED, BATCH) - dense()[chosen[:BATCHED]]).max()
    whole = seconds(dense, 3)
    one_by_one = seconds(lambda: loop(SINGLE, 1), 3) * len(patches) / SINGLE
    in_batches = seconds(lambda: loop(BATCHED, BATCH), 3) * len(patches) / BATCHED
    return {
        "patches": float(len(patches)),
        "dense_seconds": whole,
        "loop_one_by_one_seconds": one_by_one,
        "loop_in_batches_seconds": in_batches,
        "ratio_to_one_by_one": one_by_one / whole,
        "ratio_to_batches": in_batches / whole,
        "largest_difference": float(gap),
    }


if __name__ == "__main__":
    main("bagnet", measure, ("torch", "numpy"))
