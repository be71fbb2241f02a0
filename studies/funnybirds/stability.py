"""Table 3 of FunnyBirds: how far scores move with a second training, and with five times as many birds.

    python -m studies.funnybirds.stability [SECOND] [--birds 500] [--many 2500] [--only NETWORK]

SECOND (default: build/trainings/funnybirds) is a folder with NAME/NAME.safetensors of second trainings, which
`diorama train "birds_vgg(seed=1, half=True)" -o SECOND/birds_vgg` writes. Networks without one are left out. Runs are kept
below build/reproduce/funnybirds/stability and resumed; the 2,500 birds begin with the 500.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from diorama.core.plan import Plan
from studies.funnybirds.table2 import BUILD, digits, named, value
from studies.page_kit import HOME, cells_of, filled, made, table, write_page

NETWORKS = ("birds_vgg", "birds_resnet", "birds_vit")
METHODS = ("integrated_gradients", "input_x_gradient")
COLUMNS = ("a", "bi", "csdc", "pc", "dc", "d", "sd", "ts", "mx")
PROTOCOL = "funnybirds(variant=published)"
PAGE = HOME / "docs" / "results" / "funnybirds" / "stability.md"
SECOND = HOME / "build" / "trainings" / "funnybirds"
#: The paper's differences between two trainings (1) and between 500 and 2,500 birds (2), in the order of COLUMNS.
PAPER = {
    (1, "birds_vgg", "integrated_gradients"): (0.002, 0.003, 0.008, 0.008, 0.008, 0.001, 0.015, 0.005, 0.005),
    (1, "birds_resnet", "integrated_gradients"): (0, 0.001, 0, 0.020, 0.006, 0, 0.022, 0.002, 0.008),
    (1, "birds_vit", "integrated_gradients"): (0.010, 0, 0.051, 0.110, 0.104, 0.016, 0.031, 0.037, 0.035),
    (1, "birds_vgg", "input_x_gradient"): (0.002, 0.003, 0.005, 0.002, 0.066, 0.012, 0.019, 0.071, 0.023),
    (1, "birds_resnet", "input_x_gradient"): (0, 0.001, 0.020, 0.012, 0.032, 0.031, 0.003, 0.015, 0.003),
    (1, "birds_vit", "input_x_gradient"): (0.010, 0, 0.066, 0.120, 0.126, 0.026, 0.017, 0.060, 0.039),
    (2, "birds_vgg", "integrated_gradients"): (0.0128, 0.001, 0.008, 0.027, 0.004, 0.013, 0, 0.007, 0.001),
    (2, "birds_resnet", "integrated_gradients"): (0.0124, 0, 0.008, 0.079, 0.003, 0.029, 0.032, 0.005, 0.009),
    (2, "birds_vit", "integrated_gradients"): (0.0232, 0, 0.008, 0.082, 0.020, 0.017, 0.016, 0.008, 0.006),
    (2, "birds_vgg", "input_x_gradient"): (0.0128, 0.001, 0.004, 0.054, 0.001, 0, 0.006, 0.013, 0.001),
    (2, "birds_resnet", "input_x_gradient"): (0.0124, 0, 0.011, 0.079, 0.030, 0.005, 0.009, 0.005, 0.007),
    (2, "birds_vit", "input_x_gradient"): (0.0232, 0, 0.039, 0.106, 0.053, 0.058, 0.004, 0, 0.003),
}
Cells = dict[str, dict[str, Any]]


def cells(name: str, model: str, birds: int) -> Cells:
    """The results of a network by method; birds computed by a call with another number are reused."""
    plan = Plan(["birds"], list(METHODS), [PROTOCOL], [model], birds)
    return {named(cell): cell for cell in cells_of(BUILD / "stability" / name, plan)}


class Line(NamedTuple):
    """How far the scores of a network and method move, by column; None where one of the two is undefined."""

    setup: int
    network: str
    method: str
    ours: tuple[float | None, ...]

    @property
    def paper(self) -> tuple[float, ...]:
        """The paper's differences."""
        return PAPER[self.setup, self.network, self.method]

    def cells(self) -> list[str]:
        """The cells of the table's row: our differences, with the paper's in brackets."""
        both = [f"{_three(a)} ({_three(b)})" for a, b in zip(self.ours, self.paper, strict=True)]
        return [str(self.setup), self.network.removeprefix("birds_"), self.method, *both]


def _three(number: float | None) -> str:
    return "–" if number is None else f"{number:.3f}".removeprefix("0")


def differences(setup: int, network: str, one: Cells, other: Cells) -> Iterator[Line]:
    """The absolute differences of two sets of results, for every method."""
    for method in METHODS:
        pairs = [(value(one[method], m), value(other[method], m)) for m in COLUMNS]
        yield Line(setup, network, method, tuple(None if a is None or b is None else abs(a - b) for a, b in pairs))


def means(lines: list[Line]) -> str:
    """A sentence for each setup with the mean and the largest difference over all scores but the accuracy."""
    sentences = []
    for setup in (1, 2):
        moved = {
            (line.network, line.method, column): (ours, paper)
            for line in lines
            if line.setup == setup
            for column, ours, paper in list(zip(COLUMNS, line.ours, line.paper, strict=True))[1:]
            if ours is not None
        }
        if moved:
            ours, paper = zip(*moved.values(), strict=True)
            network, method, column = max(moved, key=lambda at: moved[at][0])
            sentences.append(
                f"Setup {setup}: mean difference {_three(fmean(ours))} (paper {_three(fmean(paper))}), largest"
                f" {_three(max(ours))} for {column} of {method} on {network} (paper's largest {_three(max(paper))})."
            )
    return "\n".join(sentences)


def accuracies(one: Cells, other: Cells) -> str:
    """The two accuracies behind the first column."""
    first, second = (value(c[METHODS[0]], "a") for c in (one, other))
    return f"{digits(first or 0)} and {digits(second or 0)}"


def main() -> None:
    """Compute missing rows and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("second", type=Path, nargs="?", default=SECOND, help="folder of second trainings")
    parser.add_argument("--birds", type=int, default=500)
    parser.add_argument("--many", type=int, default=2500)
    parser.add_argument("--only", nargs="+", choices=NETWORKS, help="compute these; no page")
    options = parser.parse_args()
    lines: list[Line] = []
    both = []
    for network in options.only or NETWORKS:
        first = cells(network, network, options.birds)
        path = options.second / network / f"{network}.safetensors"
        if path.exists():
            second = cells(f"{network}-second", f"{network}(checkpoint={path})", options.birds)
            lines += differences(1, network, first, second)
            both.append(f"{network} {accuracies(first, second)}")
        if options.many > options.birds:
            lines += differences(2, network, first, cells(network, network, options.many))
    if not options.only:
        write(sorted(lines), "; ".join(both) or "no second trainings", options)


def write(lines: list[Line], accuracy: str, options: argparse.Namespace) -> None:
    """Write the page."""
    parts = {
        "MADE": made(("torch", "numpy"), "seed 0"),
        "BIRDS": str(options.birds),
        "MANY": str(options.many),
        "TABLE": table(["setup", "network", "method", *COLUMNS], [line.cells() for line in lines]),
        "MEANS": means(lines),
        "ACCURACIES": accuracy,
    }
    write_page(PAGE, filled(Path(__file__).with_suffix(".md"), parts))


if __name__ == "__main__":
    main()
