"""Why |IG| does not know the class on our networks: what parts say for the class that has them and against the other.

Target sensitivity asks whether the parts that a bird shares with class c1 weigh more in c1's explanation than in c2's. A
network may answer with evidence for c1 or with evidence against c2, which lacks these parts; without signs the second
counts as importance for c2, and the score falls below chance.
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
    """Means over birds, for TS's two classes: of parts that the class shares with the bird, and of the other's parts.

    effect    how much removing them lowers the class's logit
    signed    their importance by Integrated Gradients
    absolute  their importance by its absolute value
    """

    effect: tuple[float, float]
    signed: tuple[float, float]
    absolute: tuple[float, float]
    birds: int


def evidence(network: str, birds: int = 40, seed: int = 1) -> Evidence:
    """What the parts of O1 and O2 say for and against the classes that share them."""
    world, model = build("world", "birds").object, build("model", network).object
    classes = [{part: bird[part] for part in world.part_names} for bird in world.classes]
    found = [_of_bird(world, model, classes, world.scene_at(seed, i)[1]) for i in range(birds)]
    means = np.array([one for one in found if one is not None]).mean(
        axis=0
    )  # (effect, signed, absolute) × (own, other)
    effect, signed, absolute = (tuple(map(float, line)) for line in means)
    return Evidence(effect, signed, absolute, sum(one is not None for one in found))  # type: ignore[arg-type]


def _of_bird(world: Any, model: Any, classes: list[dict[str, int]], scene: Scene) -> np.ndarray | None:
    frame = world.render([scene])[0]
    found = target_pair(classes, int(frame.truth["label"]))
    if found is None:
        return None
    pair, shared = found
    member = np.array([[s >> i & 1 for i in range(len(world.part_names))] for s in shared], bool)
    without = [world.do(scene, **{p: None for p, m in zip(world.part_names, row, strict=True) if m}) for row in member]
    logits = model.logits(np.stack([f.srgb() for f in [frame, *world.render(without)]]))
    effects = logits[0, list(pair)][:, None] - logits[1:, list(pair)].T  # (class, set removed)
    ids, width = [world.part_ids[p] for p in world.part_names], dilation_at(frame.image.shape[0], 5)
    seen, two = elements(frame.truth["parts"], ids, width), np.stack([frame.srgb()] * 2)
    sums = [effects]
    for method in ("integrated_gradients", "integrated_gradients_abs"):
        maps = explain(build("method", method).object, model, two, np.array(pair))
        sums.append(np.array([[part_importance(m, seen)[row].sum() for row in member] for m in maps]))
    return np.array([[np.diagonal(s).mean(), np.diagonal(s[:, ::-1]).mean()] for s in sums])


def page(networks: list[str], birds: int = 40) -> str:
    """A table: for every network the three readings, for the class that shares the parts and for the other."""
    rows = []
    for network in networks:
        found = evidence(network, birds)
        pairs = (found.effect, found.signed, found.absolute)
        rows.append([network, str(found.birds), *(f"{v:+.2f}" for pair in pairs for v in pair)])
    heads = ["effect, own", "effect, other", "IG, own", "IG, other", "IG abs., own", "IG abs., other"]
    return table(["network", "birds", *heads], rows)


if __name__ == "__main__":
    print(page(["birds_resnet", "birds_vgg", "birds_cnn"]))
