"""The rows of the paper's Table 2 for our networks: which method explains which network, on how many birds.

Each network and kind of method has a run in build/reproduce/funnybirds, which is resumed.
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
#: Methods that give maps for any network, in the order of the paper's table.
MAPS = ("integrated_gradients", "integrated_gradients_abs", "input_x_gradient", "grad_cam")
#: Methods that need very many passes, and so are computed for fewer birds.
SAMPLED = ("rise", "lime")
#: Methods that are not in the paper, for birds_resnet: later ones of its framework, ours, and Shapley values of the parts.
FURTHER = ("saliency", "guided_backprop", "guided_grad_cam", "deep_lift", "lrp", "part_shapley")
PROTOTYPES = ("prototypes", "prototypes(reading=similarity)", "prototypes(reading=attribution)")
PROTOCOLS = ("funnybirds(variant=published)", "funnybirds")
COLUMNS = ("a", "bi", "csdc", "pc", "dc", "d", "sd", "ts", "com", "cor", "con", "mx")
Cells = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Network:
    """A network of ours, the paper's network of the same family, and the methods that explain it."""

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
    """The numbers of birds for maps, for sampling methods and for methods that are not in the paper; seed and processes."""

    birds: int = 500
    sampled: int = 100
    further: int = 100
    seed: int = 0
    processes: int = 2


def cells_of(network: Network, size: Size) -> Cells:
    """The results of a network: maps with controls on all birds, the other methods on fewer."""
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
    """A cell's method without its track."""
    return str(cell["method"]).rpartition("/")[2]


def value(cell: dict[str, Any], metric: str) -> float | None:
    """The mean of a metric; None where it is undefined."""
    return cell["summary"][metric]["mean"] if metric in cell["summary"] else None


def digits(number: float) -> str:
    """A score with two digits, as the paper prints it.

    >>> digits(0.123), digits(0.999)
    ('.12', '1')
    """
    return f"{number:.2f}".replace("0.", ".", 1) if number < 0.995 else "1"


def score(cell: dict[str, Any], metric: str) -> str:
    """A score, with the paper's in brackets if it has one."""
    ours, paper = value(cell, metric), (cell["paper"] or {}).get(metric)
    shown = "–" if ours is None else digits(ours)
    return shown if paper is None else f"{shown} ({digits(paper)})"


def interval(cell: dict[str, Any], metric: str) -> str:
    """The bootstrap interval of a metric."""
    summary = cell["summary"].get(metric, {})
    return f"{digits(summary['lo'])}–{digits(summary['hi'])}" if summary.get("lo") is not None else "–"


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
    """Spearman's ρ over the cells, with an interval that follows from the intervals of our scores, and their number.

    Every draw takes each score from a normal distribution as wide as its interval, as if computed on other birds.
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
    """The standard error of a score, from its 95 % interval."""
    return 0.0 if summary.get("lo") is None else (summary["hi"] - summary["lo"]) / 3.92


def controls(found: dict[str, Cells]) -> str:
    """The scores of the oracle and of a random answer on every network, in the corrected variant."""
    shown = ("csdc", "pc", "dc", "d", "sd", "ts", "mx")
    rows = [
        [network, named(c), *(score(c, m) for m in shown)]
        for network, cells in found.items()
        for c in of_variant(cells, "corrected")
        if c["control"]
    ]
    return table(["network", "control", *shown], rows)


def doses(cells: Cells) -> str:
    """The scores as random importance is blended into the true one."""
    cell = next(c for c in cells if c["control"] == "dose" and c["variant"] == "corrected")
    shown = [m for m in ("csdc", "pc", "dc", "d", "sd", "ts") if m in cell["curve"]]
    rows = [[f"{dose}", *(digits(cell["curve"][m][i]["mean"]) for m in shown)] for i, dose in enumerate(cell["doses"])]
    return table(["share of random", *shown], rows)
