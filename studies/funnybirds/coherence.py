"""FunnyBirds' checks of coherence: do two image regions that an explanation calls similar show the same part of a bird?

    python -m studies.funnybirds.coherence [--pairs 100]

- **Prototypes** ("this looks like that"): a prototype is a patch of a training bird. On another bird it is coherent if its
  box there and its box on the training bird share a part. Released result of the full-size ProtoPNet: 628 of 1,000.
- **Counterfactual visual explanations** (Goyal et al. 2019): cells of the last feature map of a bird are replaced, one at a
  time and greedily, by cells of a bird of another class until the network predicts that class. A swap is coherent if both
  cells show the same part. Released: 1.21, 1.03, 3.04 and 2.75 incoherent swaps per pair in four settings.

The released code looks up the parts of the second bird in the part map of the bird *before* it was rendered again with
another class or camera, which is wrong in three of its four settings; both ways are computed here. Chance is the result for
boxes and cells of the same sizes at random places.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diorama.core.catalogue import build
from diorama.core.frame import Frame
from diorama.core.inherent import Prototypes, entering, inside
from diorama.core.scene import Scene, rng
from diorama.io.zoo import checkpoint_path
from diorama.methods.explain.prototypes import enlarged, high_box
from diorama.training.prototypes import RECIPE
from diorama.worlds.birds.birds import Birds
from studies.page_kit import table

#: The factors that two birds of the same view share.
VIEW = ("camera", "light")
#: Settings of the counterfactual check: whether both birds have the same view, whether their classes differ in one part
#: only, and the released number of incoherent swaps.
SETTINGS = {
    "same view, one part differs": (True, True, 1.21),
    "other view, one part differs": (False, True, 1.03),
    "same view, any classes": (True, False, 3.04),
    "other view, any classes": (False, False, 2.75),
}
RELEASED_PROTOTYPES = 0.628
#: x0, y0, x1, y1, far edges excluded.
Box = tuple[int, int, int, int]


def parts_within(parts: np.ndarray, box: Box) -> set[str]:
    """The names of the bird's parts with a pixel in a box of a part map; the body is no part."""
    x0, y0, x1, y1 = box
    ids = set(np.unique(parts[y0:y1, x0:x1]).tolist())
    return {name for name in Birds.part_names if ids & set(Birds.part_ids[name])}


# Prototypes --------------------------------------------------------------------------------------------------------------


def prototype_boxes(net: Any, module: nn.Module, image: np.ndarray, which: Sequence[int]) -> list[Box]:
    """The boxes of some prototypes on an image, one pixel short on the far edges as released."""
    with torch.no_grad():
        x = torch.from_numpy(image.transpose(2, 0, 1).copy())[None]
        similarities = net.similarities(entering(module, net, x))[0].numpy()
    boxes = [high_box(enlarged(similarities[p], image.shape[:2])) for p in which]
    return [(int(x0), int(y0), int(x1) - 1, int(y1) - 1) for x0, y0, x1, y1 in boxes]


@dataclass(frozen=True, slots=True)
class Share:
    """The number of comparisons, of coherent ones, of coherent ones by chance, and of prototypes whose box has no part."""

    count: int
    coherent: int
    by_chance: int
    empty: int


def prototypes(birds: int) -> Share:
    """Compare every prototype of the true class on some test birds with its training bird."""
    model = build("model", "birds_protopnet").object
    net: Any = inside(model.module, Prototypes)
    card = json.loads(checkpoint_path(None, "birds_protopnet").with_suffix(".json").read_text(encoding="utf-8"))
    origin, world = card["prototypes"], Birds()
    order, owner = RECIPE.orders()["train"], net.owner.numpy()
    source: dict[int, set[str]] = {}
    counts = np.zeros(4, int)
    for i in range(birds):
        random = rng(0, "coherence", i)
        frame = world.render([world.sample(random)])[0]
        mine = np.flatnonzero(owner == frame.truth["label"]).tolist()
        for p, box in zip(mine, prototype_boxes(net, model.module, frame.image, mine), strict=True):
            if p not in source:
                bird, _ = order.example(origin[p]["bird"])
                (own,) = prototype_boxes(net, model.module, bird.image, [p])
                source[p] = parts_within(bird.truth["parts"], own)
            here = parts_within(frame.truth["parts"], box)
            elsewhere = parts_within(frame.truth["parts"], moved(box, world.size, random))
            counts += np.array([1, bool(here & source[p]), bool(elsewhere & source[p]), not source[p]], int)
    return Share(*counts.tolist())


def moved(box: Box, size: int, random: np.random.Generator) -> Box:
    """A box of the same size at a random place."""
    x0, y0, x1, y1 = box
    x, y = (int(random.integers(size - (far - near) + 1)) for near, far in ((x0, x1), (y0, y1)))
    return x, y, x + x1 - x0, y + y1 - y0


# Counterfactuals ---------------------------------------------------------------------------------------------------------


def swaps(
    head: Callable[[Tensor], Tensor], query: Tensor, distractor: Tensor, target: int
) -> list[tuple[int, int]] | None:
    """Pairs of cells: of `query` (c, h, w), and of `distractor` that replace them until `head` predicts `target`.

    Each step takes the pair that raises the target's probability most, no cell twice. None if no pair raises it or all cells
    are used before the target is predicted.
    """
    edited, source = query.flatten(1).clone(), distractor.flatten(1)
    cells = edited.shape[1]
    taken: list[tuple[int, int]] = []
    while len(taken) < cells - 1:
        replaced, used = {q for q, _ in taken}, {d for _, d in taken}
        free = [q for q in range(cells) if q not in replaced]
        left = [d for d in range(cells) if d not in used]
        now = head(edited.view_as(query)[None]).softmax(1)[0, target]
        probabilities = torch.stack([_replaced(head, edited, query.shape, q, source[:, left], target) for q in free])
        best = int(probabilities.argmax())
        if probabilities.flatten()[best] <= now:
            return None
        q, d = free[best // len(left)], left[best % len(left)]
        edited[:, q] = source[:, d]
        taken.append((q, d))
        if int(head(edited.view_as(query)[None]).argmax()) == target:
            return taken
    return None


def _replaced(
    head: Callable[[Tensor], Tensor], edited: Tensor, shape: torch.Size, q: int, values: Tensor, target: int
) -> Tensor:
    """The probability of the target with cell q replaced by each of some values (c, k)."""
    tried = edited.expand(values.shape[1], *edited.shape).clone()
    tried[:, :, q] = values.T
    return head(tried.view(-1, *shape)).softmax(1)[:, target]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two birds of different classes, and the second one before its class and view were changed."""

    query: Frame
    distractor: Frame
    before: Frame


def drawn_pairs(world: Birds, same_view: bool, one_part: bool) -> Iterator[Pair]:
    """An endless sequence of pairs of birds of a setting."""
    for i in count():
        random = rng(0, "counterfactual", i)
        query, other = world.sample(random), world.sample(random)
        label = int(other.params["label"])
        if one_part:
            near = classes_near(world, int(query.params["label"]))
            if not near:
                continue
            label = near[int(random.integers(len(near)))]
        if label == query.params["label"]:
            continue
        changes: dict[str, Any] = {name: query.params[name] for name in VIEW} if same_view else {}
        distractor: Scene = world.do(other, label=label, **changes)
        yield Pair(*world.render([query, distractor, other]))


def classes_near(world: Birds, label: int) -> list[int]:
    """The classes that differ from one in a single part."""
    own = world.classes[label]
    return [i for i, other in enumerate(world.classes) if sum(own[p] != other[p] for p in own) == 1]


def halves(model: Any) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """`birds_vgg` split after its last convolution: a function from images to maps (n, c, 8, 8), one from maps to logits."""
    net = model.module
    stages = [net.get_submodule(f"stage{i}") for i in range(1, 5)]

    def features(x: Tensor) -> Tensor:
        return nn.Sequential(net.stem, *stages)((x - 0.5) / 0.25)

    return features, lambda maps: net.head(net.hidden(net.pool(maps)))


@dataclass(frozen=True, slots=True)
class Swaps:
    """Means over pairs: swaps, incoherent swaps with the right part map, with the released one, and by chance."""

    pairs: int
    needed: float
    incoherent: float
    released: float
    by_chance: float


@torch.no_grad()
def counterfactuals(setting: str, pairs: int) -> Swaps:
    """The swaps of a setting, over pairs that the network classifies correctly and whose class can be changed."""
    same_view, one_part, _ = SETTINGS[setting]
    world, model = Birds(), build("model", "birds_vgg").object
    features, head = halves(model)
    counted = (_counted(pair, features, head) for pair in drawn_pairs(world, same_view, one_part))
    counts = np.array(list(islice((c for c in counted if c is not None), pairs)), float)
    return Swaps(pairs, *counts.mean(axis=0).tolist())


def _counted(pair: Pair, features: Callable[[Tensor], Tensor], head: Callable[[Tensor], Tensor]) -> list[int] | None:
    """Swaps; incoherent swaps by the right map, by the map from before, and by chance; None for a pair that is left out."""
    images = np.stack([pair.query.image, pair.distractor.image]).transpose(0, 3, 1, 2)
    maps = features(torch.from_numpy(images.copy()))
    labels = [int(frame.truth["label"]) for frame in (pair.query, pair.distractor)]
    if head(maps).argmax(1).tolist() != labels:
        return None
    swapped = swaps(head, maps[0], maps[1], labels[1])
    if swapped is None:
        return None
    random = rng(0, "cells", *labels)
    by_chance = [(q, int(random.integers(maps.shape[2] * maps.shape[3]))) for q, _ in swapped]
    compared = ((swapped, pair.distractor), (swapped, pair.before), (by_chance, pair.distractor))
    side = maps.shape[3]
    return [len(swapped), *(incoherent(cells, pair.query, other, side) for cells, other in compared)]


def incoherent(cells: list[tuple[int, int]], query: Frame, other: Frame, side: int) -> int:
    """The number of pairs of cells, numbered row by row in a map of `side` columns, that share no part."""
    query_parts, other_parts = query.truth["parts"], other.truth["parts"]
    step = query_parts.shape[1] // side

    def box(cell: int) -> Box:
        y, x = divmod(cell, side)
        return x * step, y * step, (x + 1) * step, (y + 1) * step

    return sum(not parts_within(query_parts, box(q)) & parts_within(other_parts, box(d)) for q, d in cells)


# Page --------------------------------------------------------------------------------------------------------------------


def page(pairs: int = 100) -> str:
    """The results of both checks, as text for the page."""
    shares = prototypes(pairs)
    coherent, chance = shares.coherent / shares.count, shares.by_chance / shares.count
    rows = []
    for setting, (_, _, paper) in SETTINGS.items():
        one = counterfactuals(setting, pairs)
        means = (one.needed, one.incoherent, one.by_chance, one.released)
        rows.append([setting, str(one.pairs), *(f"{v:.2f}" for v in means), f"{paper:.2f}"])
    heads = ["setting", "pairs", "swaps", "incoherent", "chance", "incoherent, part map as released", "paper's network"]
    return (
        f"**Prototypes.** Of {shares.count:,} prototypes of the true class on {pairs} birds a share of {coherent:.3f} shows"
        f" a part that it also shows on its training bird (full-size ProtoPNet, as released: {RELEASED_PROTOTYPES}; boxes of"
        f" the same sizes at random places: {chance:.3f}). In {shares.empty / shares.count:.3f} of them the box on the"
        f" training bird contains no part.\n\n**Counterfactual visual explanations** of `birds_vgg`, 8 × 8 cells of its last"
        f" convolution:\n\n" + table(heads, rows)
    )


def main() -> None:
    """Print the results of both checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    print(page(parser.parse_args().pairs))


if __name__ == "__main__":
    main()
