"""Why |IG| does not depend on the class on our networks: parts are evidence for one class and against another.

Target sensitivity asks whether the parts that a bird shares with class c1 weigh more in c1's explanation than in c2's. For
the network these parts may be evidence for c1, or evidence against c2, which lacks them. Without signs the second counts as
importance for c2, and the score falls below chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from diorama.adapt.methods import explain
from diorama.core.catalogue import build
from diorama.core.scene import Scene
from diorama.metrics.funnybirds import target_pair
from diorama.protocols.parts.importance import dilation_at, elements, part_importance
from studies.page_kit import table


@dataclass(frozen=True, slots=True)
class Evidence:
    """Means over birds and TS's two classes; each is a pair: of the parts that the class shares with the bird, and of those
    that the other class shares with it.

    effect    how much removing the parts lowers the class's logit
    signed    the parts' importance by Integrated Gradients
    absolute  the parts' importance by its absolute value
    """

    effect: tuple[float, float]
    signed: tuple[float, float]
    absolute: tuple[float, float]
    birds: int


def evidence(network: str, birds: int = 40, seed: int = 1) -> Evidence:
    """The evidence over all birds that have two classes for TS."""
    world, model = build("world", "birds").object, build("model", network).object
    classes = [{part: bird[part] for part in world.part_names} for bird in world.classes]
    of_birds = (_of_bird(world, model, classes, world.scene_at(seed, i)[1]) for i in range(birds))
    defined = [one for one in of_birds if one is not None]
    means = np.array(defined).mean(axis=0)  # (effect, signed, absolute) × (own, other)
    effect, signed, absolute = (tuple(map(float, line)) for line in means)
    return Evidence(effect, signed, absolute, len(defined))  # type: ignore[arg-type]


def _of_bird(world: Any, model: Any, classes: list[dict[str, int]], scene: Scene) -> np.ndarray | None:
    frame = world.render([scene])[0]
    targets = target_pair(classes, int(frame.truth["label"]))
    if targets is None:
        return None
    pair, shared = targets
    member = np.array([[s >> i & 1 for i in range(len(world.part_names))] for s in shared], bool)
    without = [world.do(scene, **{p: None for p, m in zip(world.part_names, row, strict=True) if m}) for row in member]
    logits = model.logits(np.stack([f.srgb() for f in [frame, *world.render(without)]]))
    effects = logits[0, list(pair)][:, None] - logits[1:, list(pair)].T  # (class, set removed)
    ids, width = [world.part_ids[p] for p in world.part_names], dilation_at(frame.image.shape[0], 5)
    bird, twice = elements(frame.truth["parts"], ids, width), np.stack([frame.srgb()] * 2)
    sums = [effects]
    for method in ("integrated_gradients", "integrated_gradients_abs"):
        maps = explain(build("method", method).object, model, twice, np.array(pair))
        sums.append(np.array([[part_importance(m, bird)[row].sum() for row in member] for m in maps]))
    return np.array([[np.diagonal(s).mean(), np.diagonal(s[:, ::-1]).mean()] for s in sums])


def page(networks: list[str], birds: int = 40) -> str:
    """A table with the evidence of every network."""
    rows = []
    for network in networks:
        found = evidence(network, birds)
        pairs = (found.effect, found.signed, found.absolute)
        rows.append([network, str(found.birds), *(f"{v:+.2f}" for pair in pairs for v in pair)])
    heads = ["effect, own", "effect, other", "IG, own", "IG, other", "IG abs., own", "IG abs., other"]
    return table(["network", "birds", *heads], rows)


if __name__ == "__main__":
    print(page(["birds_resnet", "birds_vgg", "birds_cnn"]))
