"""FunnyBirds' own checks of coherence: do the two things that an explanation calls alike show the same part of a bird?

    python -m studies.funnybirds.coherence [--pairs 100]

- **Prototypes** ("this looks like that"): a prototype is coherent on a bird if its box there and its box on the training
  bird that it is a patch of share a part. Released figure for the full-size ProtoPNet: 628 of 1,000.
- **Counterfactual visual explanations** (Goyal et al. 2019): cells of the last feature map of a bird are replaced, one at a
  time and greedily, by cells of a bird of another class until the network says that class. A swap is coherent if both
  cells show the same part. Released: 1.21, 1.03, 3.04 and 2.75 incoherent swaps a pair in four settings.

The released code looks up the parts of the second bird in the part map of the bird *before* it was rendered anew with
another class or camera, which is wrong in three of its four settings; both ways are computed here. Chance is what boxes and
cells of the same sizes at random places give.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
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

#: What must be equal for two birds to be seen alike.
VIEW = ("camera", "light")
#: Settings of the counterfactual check: whether both birds are seen alike, whether their classes differ in one part only,
#: and the released number of incoherent swaps.
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
    """The names of bird parts with a pixel in a box x0, y0, x1, y1 of a part map; the body is no part."""
    x0, y0, x1, y1 = box
    seen = set(np.unique(parts[y0:y1, x0:x1]).tolist())
    return {name for name in Birds.part_names if seen & set(Birds.part_ids[name])}


# Prototypes --------------------------------------------------------------------------------------------------------------


def prototype_boxes(net: Any, module: nn.Module, image: np.ndarray, which: Sequence[int]) -> list[Box]:
    """The boxes of some prototypes on an image, one pixel short on the far edges as released."""
    with torch.no_grad():
        x = torch.from_numpy(image.transpose(2, 0, 1).copy())[None]
        found = net.similarities(entering(module, net, x))[0].numpy()
    large = [high_box(enlarged(found[p], image.shape[:2])) for p in which]
    return [(int(x0), int(y0), int(x1) - 1, int(y1) - 1) for x0, y0, x1, y1 in large]


@dataclass(frozen=True, slots=True)
class Share:
    """How many of some comparisons were coherent, and how many would be by chance."""

    count: int
    coherent: int
    by_chance: int
    empty: int


def prototypes(birds: int) -> Share:
    """Every prototype of the class of some test birds."""
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
    """Cells of `query` (c, h, w) and the cells of `distractor` that replace them, until `head` says `target`.

    In every step the pair is taken that raises the target's probability most, no cell twice; None if no pair does before
    the class is reached, or all cells are used.
    """
    edited, source = query.flatten(1).clone(), distractor.flatten(1)
    cells = edited.shape[1]
    found: list[tuple[int, int]] = []
    while len(found) < cells - 1:
        gone, used = {q for q, _ in found}, {d for _, d in found}
        free = [q for q in range(cells) if q not in gone]
        left = [d for d in range(cells) if d not in used]
        now = head(edited.view_as(query)[None]).softmax(1)[0, target]
        chances = torch.stack([_replaced(head, edited, query.shape, q, source[:, left], target) for q in free])
        best = int(chances.argmax())
        if chances.flatten()[best] <= now:
            return None
        q, d = free[best // len(left)], left[best % len(left)]
        edited[:, q] = source[:, d]
        found.append((q, d))
        if int(head(edited.view_as(query)[None]).argmax()) == target:
            return found
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
    """Two birds of different classes, and the second one before it was made alike."""

    query: Frame
    distractor: Frame
    before: Frame


def drawn_pairs(world: Birds, same_view: bool, one_part: bool) -> Iterator[Pair]:
    """Pairs of birds of a setting, without end."""
    i = 0
    while True:
        random = rng(0, "counterfactual", i)
        i += 1
        query, other = world.sample(random), world.sample(random)
        asked = int(other.params["label"])
        if one_part:
            near = classes_near(world, int(query.params["label"]))
            if not near:
                continue
            asked = near[int(random.integers(len(near)))]
        if asked == query.params["label"]:
            continue
        changes: dict[str, Any] = {name: query.params[name] for name in VIEW} if same_view else {}
        alike: Scene = world.do(other, label=asked, **changes)
        yield Pair(*world.render([query, alike, other]))


def classes_near(world: Birds, label: int) -> list[int]:
    """The classes that differ from one in a single part."""
    own = world.classes[label]
    return [i for i, other in enumerate(world.classes) if sum(own[p] != other[p] for p in own) == 1]


def halves(model: Any) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """`birds_vgg` cut after its last convolution: images to maps (n, c, 8, 8), maps to logits."""
    net = model.module
    stages = [net.get_submodule(f"stage{i}") for i in range(1, 5)]

    def features(x: Tensor) -> Tensor:
        return nn.Sequential(net.stem, *stages)((x - 0.5) / 0.25)

    return features, lambda maps: net.head(net.hidden(net.pool(maps)))


@dataclass(frozen=True, slots=True)
class Swaps:
    """Means over pairs: swaps needed, of them incoherent with the right part map, with the released one, and by chance."""

    pairs: int
    needed: float
    incoherent: float
    released: float
    by_chance: float


@torch.no_grad()
def counterfactuals(setting: str, pairs: int) -> Swaps:
    """The swaps of a setting; pairs that the network gets wrong or that never change class are replaced by others."""
    same_view, one_part, _ = SETTINGS[setting]
    world, model = Birds(), build("model", "birds_vgg").object
    features, head = halves(model)
    found = (_counted(pair, features, head) for pair in drawn_pairs(world, same_view, one_part))
    kept = np.array(list(islice((f for f in found if f is not None), pairs)), float)
    return Swaps(pairs, *kept.mean(axis=0).tolist())


def _counted(pair: Pair, features: Callable[[Tensor], Tensor], head: Callable[[Tensor], Tensor]) -> list[int] | None:
    """Swaps, incoherent ones by the right map, by the map from before, and of cells at random places; None if unusable."""
    images = np.stack([pair.query.image, pair.distractor.image]).transpose(0, 3, 1, 2)
    maps = features(torch.from_numpy(images.copy()))
    labels = [int(frame.truth["label"]) for frame in (pair.query, pair.distractor)]
    if head(maps).argmax(1).tolist() != labels:
        return None
    found = swaps(head, maps[0], maps[1], labels[1])
    if found is None:
        return None
    random = rng(0, "cells", *labels)
    shuffled = [(q, int(random.integers(maps.shape[2] * maps.shape[3]))) for q, _ in found]
    asked = ((found, pair.distractor), (found, pair.before), (shuffled, pair.distractor))
    side = maps.shape[3]
    return [len(found), *(incoherent(cells, pair.query, other, side) for cells, other in asked)]


def incoherent(cells: list[tuple[int, int]], query: Frame, other: Frame, side: int) -> int:
    """How many pairs of cells, numbered row by row in a map of `side` columns, share no part."""
    here, there = query.truth["parts"], other.truth["parts"]
    step = here.shape[1] // side

    def box(cell: int) -> Box:
        y, x = divmod(cell, side)
        return x * step, y * step, (x + 1) * step, (y + 1) * step

    return sum(not parts_within(here, box(q)) & parts_within(there, box(d)) for q, d in cells)


# Page --------------------------------------------------------------------------------------------------------------------


def page(pairs: int = 100) -> str:
    """Both checks as text for the page."""
    found = prototypes(pairs)
    share, chance = found.coherent / found.count, found.by_chance / found.count
    rows = []
    for setting, (_, _, paper) in SETTINGS.items():
        one = counterfactuals(setting, pairs)
        means = (one.needed, one.incoherent, one.by_chance, one.released)
        rows.append([setting, str(one.pairs), *(f"{v:.2f}" for v in means), f"{paper:.2f}"])
    heads = ["setting", "pairs", "swaps", "incoherent", "chance", "incoherent, part map as released", "paper's network"]
    return (
        f"**Prototypes.** Of {found.count:,} prototypes of the true class on {pairs} birds {share:.3f} share a part with the"
        f" training bird that they come from (full-size ProtoPNet, as released: {RELEASED_PROTOTYPES}); boxes of the same"
        f" sizes at random places: {chance:.3f}. In {found.empty / found.count:.3f} the prototype's own box shows no part at"
        f" all.\n\n**Counterfactual visual explanations** of `birds_vgg`, 8 × 8 cells of its last convolution:\n\n"
        + table(heads, rows)
    )


def main() -> None:
    """Print both checks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    print(page(parser.parse_args().pairs))


if __name__ == "__main__":
    main()
