"""The rows of the paper's Table 2 for our networks: which method explains which network, on how many birds.

A run a network and kind, kept in build/reproduce/funnybirds and taken up again: what is there is not computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from diorama.core.plan import Plan
from studies.page_kit import HOME, table
from studies.page_kit import cells_of as computed

BUILD = HOME / "build" / "reproduce" / "funnybirds"
#: Explanations of any network by maps, in the order of the paper's table.
MAPS = ("integrated_gradients", "integrated_gradients_abs", "input_x_gradient", "grad_cam")
#: Explanations from very many passes, for fewer birds.
SAMPLED = ("rise", "lime")
#: Methods that the paper does not have, on birds_resnet: later ones of its framework, ours, and the best one on parts.
FURTHER = ("saliency", "guided_backprop", "guided_grad_cam", "deep_lift", "lrp", "part_shapley")
PROTOTYPES = ("prototypes", "prototypes(reading=similarity)", "prototypes(reading=attribution)")
PROTOCOLS = ("funnybirds(variant=published)", "funnybirds")
COLUMNS = ("a", "bi", "csdc", "pc", "dc", "d", "sd", "ts", "com", "cor", "con", "mx")
Cells = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Network:
    """A network of ours, the paper's of the same family, and the methods that explain it beside those for all."""

    name: str
    family: str
    maps: tuple[str, ...]
    sampled: tuple[str, ...] = ()
    further: tuple[str, ...] = ()


NETWORKS = (
    Network("birds_vgg", "VGG16", MAPS, SAMPLED),
    Network("birds_resnet", "ResNet-50", MAPS, SAMPLED, FURTHER),
    Network("birds_vit", "ViT-B/16", (*MAPS, "rollout", "chefer"), SAMPLED, ("lrp_attention", "rollout(skip=0)")),
    Network("birds_bagnet", "BagNet-33", ("bagnet", "bagnet(border=edge)")),
    Network("birds_bcos", "B-cos ResNet-50", ("bcos",)),
    Network("birds_xdnn", "X-DNN ResNet-50", ("xdnn",)),
    Network("birds_protopnet", "ProtoPNet", PROTOTYPES),
    Network("birds_cnn", "–", MAPS),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How many birds: for maps, for sampling methods, for methods that are not the paper's; and how they are computed."""

    birds: int = 500
    sampled: int = 100
    further: int = 100
    seed: int = 0
    processes: int = 2


def cells_of(network: Network, size: Size) -> Cells:
    """The cells of a network: maps with controls on all birds, the others on fewer."""
    kinds = (
        ("maps", network.maps, size.birds, True),
        ("sampled", network.sampled, size.sampled, False),
        ("further", network.further, size.further, False),
    )
    return [cell for kind in kinds if kind[1] for cell in _computed(network.name, *kind, size)]


def _computed(network: str, kind: str, methods: Sequence[str], birds: int, controls: bool, size: Size) -> Cells:
    plan = Plan(["birds"], list(methods), list(PROTOCOLS), [network], birds, size.seed, controls)
    return [cell | {"kind": kind} for cell in computed(BUILD / f"{network}-{kind}", plan, size.processes)]


def named(cell: dict[str, Any]) -> str:
    """A method's name without its track."""
    return str(cell["method"]).rpartition("/")[2]


def value(cell: dict[str, Any], metric: str) -> float | None:
    """The mean of a metric; None where it is undefined."""
    return cell["summary"][metric]["mean"] if metric in cell["summary"] else None


def digits(number: float) -> str:
    """Two digits, as the paper prints them.

    >>> digits(0.123), digits(0.999)
    ('.12', '1')
    """
    return f"{number:.2f}".replace("0.", ".", 1) if number < 0.995 else "1"


def score(cell: dict[str, Any], metric: str) -> str:
    """A score, with the paper's in brackets where it has one."""
    ours, paper = value(cell, metric), (cell["paper"] or {}).get(metric)
    shown = "–" if ours is None else digits(ours)
    return shown if paper is None else f"{shown} ({digits(paper)})"


def interval(cell: dict[str, Any], metric: str) -> str:
    """The bootstrap interval of a metric."""
    found = cell["summary"].get(metric, {})
    return f"{digits(found['lo'])}–{digits(found['hi'])}" if found.get("lo") is not None else "–"


def of_variant(cells: Cells, variant: str) -> Cells:
    """The cells of one variant of the protocol, without planted errors."""
    return [c for c in cells if c["variant"] == variant and c["control"] != "dose"]


def scores(found: dict[str, Cells], variant: str) -> str:
    """Table 2 of one variant: every network with its methods."""
    rows = [
        [network.removeprefix("birds_"), named(c), str(c["cases"]), *(score(c, m) for m in COLUMNS), interval(c, "mx")]
        for network, cells in found.items()
        for c in of_variant(cells, variant)
    ]
    return table(["network", "method", "birds", *COLUMNS, "mx, 95 %"], rows)


def orders(found: dict[str, Cells]) -> str:
    """Spearman's ρ with the paper's values, over all rows and within the families that have several."""
    groups = {"all rows": [c for cells in found.values() for c in cells]}
    own = {network: {named(c) for c in cells if c["paper"] and "(" not in named(c)} for network, cells in found.items()}
    groups |= {network: cells for network, cells in found.items() if len(own[network]) > 2}
    rows = []
    for group, cells in groups.items():
        for variant in ("published", "corrected"):
            both = [c for c in of_variant(cells, variant) if c["paper"] and "(" not in named(c)]  # the paper's settings
            rows.append([group, variant, *(correlation(both, m) for m in COLUMNS[2:])])
    return table(["rows", "variant", *COLUMNS[2:]], rows)


def correlation(cells: Cells, metric: str, draws: int = 2000) -> str:
    """Spearman's ρ over the cells, with the interval that our scores' own intervals leave open, and how many there are.

    Every draw takes each score from a normal distribution as wide as its interval: what other birds could have given.
    """
    known = [c for c in cells if value(c, metric) is not None]
    ours = np.array([value(c, metric) for c in known], float)
    paper = np.array([c["paper"][metric] for c in known], float)
    if len(known) < 3 or not np.ptp(ours) or not np.ptp(paper):
        return "–"
    noise = np.random.default_rng(0).standard_normal((draws, len(known)))
    drawn = ours + noise * np.array([_error(c["summary"][metric]) for c in known])
    lo, hi = np.percentile([spearmanr(one, paper).statistic for one in drawn], (2.5, 97.5))
    return f"{spearmanr(ours, paper).statistic:+.2f} [{lo:+.2f}, {hi:+.2f}] (n={len(known)})"


def _error(summary: dict[str, Any]) -> float:
    """The standard error that an interval stands for."""
    return 0.0 if summary.get("lo") is None else (summary["hi"] - summary["lo"]) / 3.92


def controls(found: dict[str, Cells]) -> str:
    """What the oracle and a random answer get on every network, in the corrected variant."""
    shown = ("csdc", "pc", "dc", "d", "sd", "ts", "mx")
    rows = [
        [network, named(c), *(score(c, m) for m in shown)]
        for network, cells in found.items()
        for c in of_variant(cells, "corrected")
        if c["control"]
    ]
    return table(["network", "control", *shown], rows)


def doses(cells: Cells) -> str:
    """How the scores fall as random importance is blended into the true one."""
    cell = next(c for c in cells if c["control"] == "dose" and c["variant"] == "corrected")
    shown = [m for m in ("csdc", "pc", "dc", "d", "sd", "ts") if m in cell["curve"]]
    rows = [[f"{dose}", *(digits(cell["curve"][m][i]["mean"]) for m in shown)] for i, dose in enumerate(cell["doses"])]
    return table(["share of random", *shown], rows)
