"""Reflectance and shading against their truth. Images are linear (h, w) or (h, w, 3), one, a stack or a list.

Each value is the mean over images with an interval over images; fewer than three images have no interval.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from diorama.metrics import errors as squared
from diorama.metrics import saw
from diorama.metrics.invariance import centred_log
from diorama.metrics.invariance import invariance as invariance_score
from diorama.metrics.lmse import lmse as lmse_score
from diorama.metrics.public.measurement import Measurement, images_of, masks_of, mean_of, paired_images, resampled
from diorama.metrics.ssim import ssim as ssim_score
from diorama.metrics.whdr import Judgements, judgements
from diorama.metrics.whdr import whdr as whdr_score


def lmse(truth: Any, estimate: Any, mask: Any = None, k: int = 20) -> Measurement:
    """Local mean squared error in windows of k pixels, gray, scale-invariant in each (Grosse et al. 2009); 0 is best.

    >>> x = np.linspace(0.1, 1, 400).reshape(20, 20)
    >>> lmse([x, x, x], [2 * x, 3 * x, 0 * x])
    lmse 0.3333 [0.0000, 1.0000], n = 3
    """
    pairs = paired_images(truth, estimate)
    masks = masks_of(mask, [a for a, _ in pairs])
    each = [
        lmse_score(a.mean(axis=2), b.mean(axis=2), m, k, max(k // 2, 1)) for (a, b), m in zip(pairs, masks, strict=True)
    ]
    return mean_of("lmse", each, (0.0, 1.0), f"the truth has no energy in any window of {k} pixels")


def si_mse(truth: Any, estimate: Any, mask: Any = None) -> Measurement:
    """Mean squared error after the one scale that fits best; 0 is best.

    >>> si_mse(np.full((2, 2), 0.5), np.full((2, 2), 2.0)).value
    0.0
    """
    pairs = paired_images(truth, estimate)
    masks = masks_of(mask, [a for a, _ in pairs])
    each = [squared.si_mse(a, b, m) for (a, b), m in zip(pairs, masks, strict=True)]
    return mean_of("si_mse", each, (0.0, None))


def psnr(truth: Any, estimate: Any, mask: Any = None, peak: float = 1.0) -> Measurement:
    """Peak signal-to-noise ratio in dB, at most 100; higher is better.

    >>> psnr(np.full((2, 2), 0.5), np.full((2, 2), 0.4)).value.__round__(6)
    20.0
    """
    pairs = paired_images(truth, estimate)
    masks = masks_of(mask, [a for a, _ in pairs])
    return mean_of("psnr", [squared.psnr(a, b, m, peak) for (a, b), m in zip(pairs, masks, strict=True)], (None, 100.0))


def ssim(truth: Any, estimate: Any, peak: float = 1.0) -> Measurement:
    """Structural similarity, Gaussian windows of 11 pixels (Wang et al. 2004); 1 is best."""
    return mean_of("ssim", [ssim_score(a, b, peak) for a, b in paired_images(truth, estimate)], (-1.0, 1.0))


def whdr(reflectance: Any, judged: Any, delta: float = 0.1) -> Measurement:
    """Weighted human disagreement rate of linear reflectance (Bell et al. 2014); 0 is best.

    `judged` is, for each image, the JSON of an IIW file (`intrinsic_points`, `intrinsic_comparisons`) or `Judgements`.

    >>> j = Judgements(np.array([[0.0, 0.0]]), np.array([[0.5, 0.0]]), np.array([1]), np.array([3.0]))
    >>> whdr(np.array([[0.2, 0.8]]), j).value
    0.0
    """
    images = images_of(reflectance, "reflectance")
    sets = list(judged) if isinstance(judged, list | tuple) else [judged]
    if len(sets) != len(images):
        raise ValueError(f"there are {len(images)} images and judgements of {len(sets)}: give one set for each image")
    each = [whdr_score(image, _judgements(one), delta) for image, one in zip(images, sets, strict=True)]
    return mean_of("whdr", each, why="no judgement counts")


def _judgements(given: Any) -> Judgements:
    if isinstance(given, Judgements):
        return given
    if isinstance(given, Mapping) and {"intrinsic_points", "intrinsic_comparisons"} <= given.keys():
        return judgements(given["intrinsic_points"], given["intrinsic_comparisons"])
    raise ValueError("judged is neither Judgements nor the JSON of an IIW file with intrinsic_points and _comparisons")


def saw_ap(shading: Any, labels: Any, resamples: int = 200, seed: int = 0) -> Measurement:
    """Average precision of smooth shading over photos (Li & Snavely 2018); labels 0 edge, 1 shadow, 2 smooth, 100 none.

    It is computed once from the pixels of all photos; the interval resamples photos.
    """
    images = [image.mean(axis=2) for image in images_of(shading, "shading")]
    marks = list(labels) if isinstance(labels, list | tuple) or np.ndim(labels) == 3 else [labels]
    counted = np.stack([saw.li_confusion(i, np.asarray(m)) for i, m in zip(images, marks, strict=True)])
    return resampled(
        "saw_ap", lambda rows: saw.average_precision(counted[rows].sum(axis=0)), len(counted), seed, resamples, {}
    )


def invariance(answers: Any, images: Any, mask: Any = None) -> Measurement:
    """How much of a change of light is left in the reflectance: 0 none, 1 all of it.

    `answers` and `images` (views, h, w) are of one scene under several lights, or lists of such stacks, one for each scene.
    The interval is over scenes.
    """
    scenes = list(zip(answers, images, strict=True)) if isinstance(answers, list | tuple) else [(answers, images)]
    each = []
    for pair in scenes:
        inside = np.ones(np.shape(pair[1])[1:3], bool) if mask is None else np.asarray(mask, bool)
        logs = (np.stack([centred_log(v.mean(axis=2), inside) for v in images_of(list(x), "views")]) for x in pair)
        each.append(invariance_score(*logs))
    return mean_of("invariance", each, (0.0, None), "the images do not change with the light")
