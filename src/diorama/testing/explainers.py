"""Contract checks for attribution methods, on a bundled classifier. Each returns a one-line problem or an empty string."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from diorama.adapt.methods import explain
from diorama.core.answers import Answer, check_answer
from diorama.core.catalogue import Component, build
from diorama.core.contracts import Control, Explainer
from diorama.core.guard import attempt

_WORLD = "birds"
#: Networks to try a method on: the first one that it does not refuse is used.
_MODELS = (
    "birds_cnn",
    *(f"birds_{family}" for family in ("vit", "bagnet", "xdnn", "bcos", "protopnet")),
    "timm:vit_tiny_patch16_224(size=128, classes=50)",
)
#: The images of the two calls: first all four, then two of them in another order, in a batch of the same size.
_ORDERS = ([0, 1, 2, 3], [3, 1, 3, 1])


@lru_cache(maxsize=1)
def _images() -> np.ndarray:
    world = build("world", _WORLD).object
    return np.stack([frame.image for frame in world.render([world.scene_at(0, i)[1] for i in range(4)])])


@lru_cache(maxsize=len(_MODELS))
def built(name: str) -> Any:
    """A network, or None if its weights or its library are missing."""
    return attempt(lambda: build("model", name).object).value


def _networks() -> Iterator[Any]:
    return (model for name in _MODELS if (model := built(name)) is not None)


def cannot_try(component: Component) -> str:
    """Why a method cannot be checked, or an empty string: it is a protocol's control, or refuses every network."""
    if isinstance(component.object, Control):
        return "it is a control of protocols, and checked with them"
    if not isinstance(component.object, Explainer):
        return ""
    refusals = [component.object.refuses(model) for model in _networks()]
    return "" if "" in refusals else refusals[0]


def _model(component: Component) -> Any:
    """The first network that a method does not refuse."""
    method = component.object
    return next(model for model in _networks() if not isinstance(method, Explainer) or not method.refuses(model))


class Trial:
    """A method called twice with the same images; all checks examine the results."""

    def __init__(self, component: Component) -> None:
        self.component = component

    @cached_property
    def model(self) -> Any:
        """The network it is tried on."""
        return _model(self.component)

    @cached_property
    def done(self) -> "Done":
        """The results."""
        module, images = self.model.module, [_images()[order].copy() for order in _ORDERS]
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        asked = zip(images, _ORDERS, strict=True)
        answers = [explain(self.component.object, self.model, some, np.array(order)) for some, order in asked]
        same = all(bool((tensor == before[name]).all()) for name, tensor in module.state_dict().items())
        clean = [np.array_equal(some, _images()[order]) for some, order in zip(images, _ORDERS, strict=True)]
        return Done(answers[0], answers[1], same, all(clean))


@dataclass(frozen=True, slots=True)
class Done:
    """The answers of both calls, and whether weights and images are unchanged."""

    answers: list[Answer]
    again: list[Answer]
    same_weights: bool
    same_images: bool


def answers_are_valid(trial: Trial) -> str:
    """One finite answer per image, of the image's size."""
    answers = trial.done.answers
    if len(answers) != 4:
        return f"{len(answers)} answers for 4 images"
    problems = [attempt(lambda a=a: check_answer(a, _images().shape[1:3])).error for a in answers]  # type: ignore[misc]
    return next((str(problem) for problem in problems if problem), "")


def answers_the_same_twice(trial: Trial) -> str:
    """The answer is a function of model, image and target, not of the rest of the batch."""
    first, again = trial.done.answers, trial.done.again
    for a, b in [(first[i], other) for i, other in zip(_ORDERS[1], again, strict=True)]:
        arrays = [f.name for f in fields(a) if isinstance(getattr(a, f.name), np.ndarray)]  # type: ignore[arg-type]
        if not all(np.allclose(getattr(a, f), getattr(b, f), atol=1e-5, rtol=1e-4) for f in arrays):
            return "the same image and target gave two different answers: make randomness a function of (seed, image)"
    return ""


def leaves_the_model_alone(trial: Trial) -> str:
    """Weights, mode and hooks of the model are unchanged."""
    module = trial.model.module
    if not trial.done.same_weights:
        return "the method changed the model's weights or statistics"
    if module.training:
        return "the method left the model in training mode"
    hooked = any(m._forward_hooks or m._backward_hooks or m._forward_pre_hooks for m in module.modules())
    return "the method left hooks on the model" if hooked else ""


def leaves_images_alone(trial: Trial) -> str:
    """The images given are not written to."""
    return "" if trial.done.same_images else "the method wrote to its images"


CHECKS = (answers_are_valid, answers_the_same_twice, leaves_the_model_alone, leaves_images_alone)
