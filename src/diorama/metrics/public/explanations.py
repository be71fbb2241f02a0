"""Explanations of a classifier: evidence inside and outside a mask, and the scores of FunnyBirds on plain arrays.

n images, P parts. Importances are a method's values of the parts; drops are how far removing the parts lowers the logit.
Each value is a mean over images with an interval over images; shares have Wilson's.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from diorama.metrics import funnybirds as formulas
from diorama.metrics.confusion import LACKS, RATES, rates
from diorama.metrics.public.measurement import Measurement, mean_of, share_of


def accuracy(predicted: Any, labels: Any) -> Measurement:
    """The share of images whose class is right; `predicted` are classes (n,) or logits (n, classes).

    >>> accuracy([[0.1, 0.9], [0.8, 0.2]], [1, 1])
    accuracy 0.5000 [0.0945, 0.9055], n = 2
    """
    answers = np.asarray(predicted)
    return share_of("accuracy", (answers.argmax(axis=1) if answers.ndim == 2 else answers) == np.asarray(labels))


def confusion(maps: Any, mask: Any) -> Measurement:
    """The attribution confusion matrix of signed maps (n, h, w) against where the target is (Arias-Duart et al. 2023).

    The number is precision, which is Focus: positive evidence inside the mask over all positive evidence. `values` has
    the other rates. An image without the evidence that a rate needs is left out of that rate.

    >>> confusion(np.array([[1.0, -2.0], [3.0, 4.0]]), np.array([[True, True], [False, False]])).value
    0.125
    """
    signed = np.asarray(maps, np.float64)
    signed = signed[None] if signed.ndim == 2 else signed
    inside = np.broadcast_to(np.asarray(mask, bool), signed.shape)
    up, down = np.maximum(signed, 0), np.maximum(-signed, 0)
    four = [
        np.where(m, v, 0).sum(axis=(1, 2)) for v, m in ((up, inside), (up, ~inside), (down, ~inside), (down, inside))
    ]
    each = rates(np.stack(four, axis=1))
    means = {name: mean_of(name, each[name], (-1.0 if name == "mcc" else 0.0, 1.0), LACKS[name]) for name in RATES}
    return replace(means["precision"], values={name: mean.value for name, mean in means.items()})


def single_deletion(drops: Any, importances: Any) -> Measurement:
    """½ + ½·ρ, ρ = Spearman over the parts of drops (n, P) and importances (n, P): 1 the same order, ½ chance.

    An image whose drops or importances are all equal has no rank and is left out.

    >>> single_deletion([[3.0, 2.0, 1.0]], [[0.9, 0.5, 0.1]]).value
    1.0
    """
    pairs = zip(np.atleast_2d(drops).astype(float), np.atleast_2d(importances).astype(float), strict=True)
    each = [formulas.rank_agreement(a, b) for a, b in pairs]
    return mean_of("single_deletion", each, why="all drops or all importances are equal")


def preservation(whole: Any, kept: Any) -> Measurement:
    """PC: the share of images whose class stays when only the important parts are kept; logits (n, classes) of both."""
    return share_of("preservation", np.argmax(whole, axis=1) == np.argmax(kept, axis=1))


def deletion(whole: Any, without: Any) -> Measurement:
    """DC: the share of images whose class changes when the important parts are removed; logits (n, classes) of both."""
    return share_of("deletion", np.argmax(whole, axis=1) != np.argmax(without, axis=1))


def csdc(important: Any, classes: Any, labels: Any) -> Measurement:
    """CSDC: how much of a smallest sufficient set of parts is found important.

    `important` (n, P) flags, `classes` (classes, P) the variant of every part of each class, numbers or words, `labels`
    (n,). A sufficient set is shared with no other class.

    >>> csdc([[True, False], [False, True]], [["long", "red"], ["long", "blue"]], [0, 1]).each.tolist()
    [0.0, 1.0]
    """
    table = [{str(i): v for i, v in enumerate(row)} for row in np.asarray(classes).tolist()]
    flags = np.atleast_2d(np.asarray(important, bool))
    minimal = {label: formulas.minimal_sets(table, label) for label in set(np.asarray(labels).tolist())}
    pairs = zip(formulas.as_sets(flags), np.asarray(labels).tolist(), strict=True)
    return mean_of("csdc", [float(formulas.csdc(np.array([subset]), minimal[label])[0]) for subset, label in pairs])


def distractibility(important: Any, irrelevant: Any) -> Measurement:
    """D: 1 − the share of irrelevant parts and objects (n, E) that are found important; images without any are left out.

    >>> distractibility([[True, True, False]], [[False, True, True]]).value
    0.5
    """
    flags, idle = (np.atleast_2d(np.asarray(x, bool)) for x in (important, irrelevant))
    each = [1 - f[i].mean() if i.any() else np.nan for f, i in zip(flags, idle, strict=True)]
    return mean_of("distractibility", each, why="every part and object matters to the model")


def target_sensitivity(first: Any, second: Any, shared_first: Any, shared_second: Any) -> Measurement:
    """TS: do importances (n, P) for two classes lean to the parts (n, P flags) that each shares with the image?

    Half a point for each class whose explanation gives its own shared parts more than the other's does; a tie is half of it.

    >>> target_sensitivity([[2.0, 0.0]], [[0.0, 2.0]], [[True, False]], [[False, True]]).value
    1.0
    """
    gap = np.atleast_2d(np.asarray(first, float)) - np.atleast_2d(np.asarray(second, float))
    gaps = [(gap * np.atleast_2d(np.asarray(s, bool))).sum(axis=1) for s in (shared_first, shared_second)]
    won = [np.where(g == 0, 0.5, g > 0) for g in (gaps[0], -gaps[1])]
    return mean_of("target_sensitivity", np.mean(won, axis=0))


def background_independence(whole: Any, without: Any) -> Measurement:
    """BI: the share of background objects whose removal lowers the logit by less than 5 %, a mean over images.

    `whole` (n,) logits of the class, `without` for each image the logits without each object.

    >>> background_independence([10.0], [[9.9, 9.0]]).value
    0.5
    """
    pairs = zip(np.asarray(whole, float).tolist(), without, strict=True)
    each = [1 - formulas.relevant(w, np.asarray(x, float)).mean() if len(x) else np.nan for w, x in pairs]
    return mean_of("background_independence", each, why="there is no background object")


def mx(csdc: Any, pc: Any, dc: Any, d: Any, sd: Any, ts: Any) -> Measurement:
    """mX of FunnyBirds: the mean of completeness ((CSDC + PC + DC)/3 + D)/2, correctness SD and contrastivity TS.

    Takes numbers or measurements. There is no interval: the six may be of different images, and do not say how they vary
    together (`diorama run -p funnybirds` resamples whole images and has an interval).

    >>> mx(0.92, 0.92, 0.92, 0.97, 0.67, 0.92)
    mx 0.8450, n = 6; com 0.9450, cor 0.6700, con 0.9200
    """
    scores = formulas.composites(*(float(value) for value in (csdc, pc, dc, d, sd, ts)))
    return Measurement("mx", scores["mx"], None, 6, {"mx": scores.pop("mx"), **scores})
