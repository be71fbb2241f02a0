"""What the learned algorithms have learnt: held-out AUC, the score without the field, labels flipped, prototypes.

`python -m studies.intrinsic.tappen ROOT` trains both algorithms on one half of the MIT objects and tests them on the other,
both ways, and prints a JSON document. `study` accepts frames of any world with reflectance and shading as truth.
"""

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from diorama.core.answers import Layers
from diorama.core.errors import InputError
from diorama.core.folds import two_fold
from diorama.core.frame import Frame, channel_mean
from diorama.methods.decompose.tappen.filters import responses
from diorama.methods.decompose.tappen.tappen05 import Fitted05, Tappen05, labels, layers
from diorama.methods.decompose.tappen.tappen06 import Fitted06, Tappen06
from diorama.metrics.lmse import lmse

#: Gehler et al., NIPS 2011, Table 1, for the authors' own implementations; not verified by us.
PUBLISHED = {"tappen05_published_unverified": 0.0562, "tappen06_published_unverified": 0.0390}


def auc(score: np.ndarray, positive: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The area under the ROC curve: the probability that a positive scores above a negative; ties count one half.

    With weights, pairs are drawn in proportion to the product of their weights.

    >>> auc(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, False, True, True]))
    0.875
    """
    w = np.ones(len(score)) if weight is None else weight
    _, rank = np.unique(score, return_inverse=True)
    up, down = np.bincount(rank, w * positive), np.bincount(rank, w * ~positive)
    below = np.concatenate([[0.0], np.cumsum(down)[:-1]]) + down / 2
    return float(up @ below / (up.sum() * down.sum()))


def study(frames: Sequence[Frame], five: Tappen05 | None = None, six: Tappen06 | None = None) -> dict[str, Any]:
    """Train both algorithms two-fold (every other frame, as in the core), and average their results over frames."""
    if len(frames) < 2:
        raise InputError(f"the study trains on every other frame and needs at least two, got {len(frames)}")
    five, six = five or Tappen05(), six or Tappen06()
    rows, folds = [], dict[str, Any]()
    for half in (0, 1):
        examples = [[frames[i]] for i in two_fold(half, len(frames))]
        start = time.perf_counter()
        boosted, between = five.fitted(five.fit(examples, None)), time.perf_counter()
        experts = six.fitted(six.fit(examples, None))
        folds[f"fold{half}"] = {
            "tappen05_training_seconds": round(between - start, 2),
            "tappen06_training_seconds": round(time.perf_counter() - between, 2),
            "stumps": [len(boosted.down.vote), len(boosted.right.vote)],
            "prototypes": len(experts.experts.prototypes),
        }
        rows += [_held_out(frame, boosted, experts) for frame in frames[half::2]]
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0] if name != "flipped"}
    flipped, gradients = (int(sum(row[name] for row in rows)) for name in ("flipped", "gradients"))
    return {**means, "gradients": gradients, "labels_flipped_by_the_field": flipped, **PUBLISHED, **folds}


def _held_out(frame: Frame, five: Fitted05, six: Fitted06) -> dict[str, float]:
    filtered, truth = responses(frame), labels(frame)
    strength = np.abs(filtered[:, 0]).astype(np.float64)
    alone = five.log_odds(frame, filtered)
    pooled = five.pooled(frame, alone, filtered)
    return {
        "auc": auc(alone, truth),
        "auc_of_gradient_alone": auc(strength, truth),
        "auc_with_the_field": auc(pooled, truth),
        "auc_weighted_by_gradient": auc(alone, truth, strength),
        "auc_weighted_of_gradient_alone": auc(strength, truth, strength),
        "tappen05_lmse": _lmse(frame, layers(frame, filtered, pooled)),
        "tappen05_lmse_without_the_field": _lmse(frame, layers(frame, filtered, alone)),
        "tappen05_lmse_with_true_labels": _lmse(frame, layers(frame, filtered, np.where(truth, 1.0, -1.0))),
        "tappen06_lmse": _lmse(frame, six.decompose([frame])),
        "flipped": float(((alone > 0) != (pooled > 0)).sum()),
        "gradients": float(len(truth)),
    }


def _lmse(frame: Frame, answer: Layers) -> float:
    """½·LMSE(shading) + ½·LMSE(reflectance), in gray, as in the protocol `lmse`."""
    pairs = ((frame.truth["reflectance"], answer.reflectance), (frame.truth["shading"], answer.shading))
    return float(np.mean([lmse(channel_mean(t), channel_mean(e), frame.mask) for t, e in pairs]))


def main(root: str) -> None:
    """Print the results of the study on the MIT objects in a folder."""
    from diorama.core.catalogue import build

    world = build("world", f"mit_intrinsic(root={root})").object
    print(json.dumps(study(world.render([world.scene(i)[1] for i in range(len(world))])), indent=1))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m studies.intrinsic.tappen FOLDER_OF_MIT_OBJECTS")
    main(sys.argv[1])
