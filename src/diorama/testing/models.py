"""Contract checks for classifiers. Each takes the component and returns a problem in one line, or an empty string."""

import numpy as np

from diorama.core.catalogue import Component


def _images(component: Component, count: int) -> np.ndarray:
    size = component.object.size or 128
    return np.random.default_rng(0).random((count, size, size, 3), np.float32)


def logits_are_finite_and_one_per_class(component: Component) -> str:
    """`logits` maps (n, h, w, 3) to (n, classes)."""
    logits = np.asarray(component.object.logits(_images(component, 4)))
    if logits.shape != (4, component.object.classes):
        return f"logits have shape {logits.shape}, expected (4, {component.object.classes})"
    return "" if np.isfinite(logits).all() else "logits are NaN or infinite"


def logits_do_not_depend_on_the_batch(component: Component) -> str:
    """The same image gives the same logits in any batch of four or more, to 1e-4."""
    images = _images(component, 8)
    whole, half = component.object.logits(images), component.object.logits(images[:4])
    gap = float(np.abs(np.asarray(whole)[:4] - np.asarray(half)).max())
    return "" if gap <= 1e-4 else f"logits differ by {gap:.2g} between batches: is the model in eval mode?"


def logits_are_repeatable(component: Component) -> str:
    """The same batch gives the same bytes twice."""
    images = _images(component, 4)
    same = np.array_equal(component.object.logits(images), component.object.logits(images))
    return "" if same else "the same images gave two different logits: is dropout on?"


def features_have_their_layers(component: Component) -> str:
    """`features(x, layer)` is finite for every declared layer."""
    for layer in component.object.layers:
        if not np.isfinite(component.object.features(_images(component, 4), layer)).all():
            return f"features of layer {layer!r} are NaN or infinite"
    return ""


CHECKS = (
    logits_are_finite_and_one_per_class,
    logits_do_not_depend_on_the_batch,
    logits_are_repeatable,
    features_have_their_layers,
)
