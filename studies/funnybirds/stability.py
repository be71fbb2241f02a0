"""Table 3 of FunnyBirds: how far scores move with a second training, and with five times as many birds.

    python -m studies.funnybirds.stability SECOND [--birds 500] [--many 2500]

SECOND is a folder with NAME/NAME.safetensors of second trainings: `diorama train "birds_vgg(seed=1)" -o SECOND/birds_vgg`
makes one. Networks that are not there are left out. Runs are kept below build/reproduce/funnybirds and taken up again;
the rows of the first trainings are those of Table 2.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from diorama.core.plan import Plan
from diorama.core.run import create
from diorama.launch.local import launch
from diorama.report.summary import document, read_results
from studies.funnybirds.table2 import BUILD, HOME, digits, named, value
from studies.page_kit import made, table

NETWORKS = ("birds_vgg", "birds_resnet", "birds_vit")
METHODS = ("integrated_gradients", "input_x_gradient")
COLUMNS = ("a", "bi", "csdc", "pc", "dc", "d", "sd", "ts", "mx")
PROTOCOL = "funnybirds(variant=published)"
PAGE = HOME / "docs" / "results" / "funnybirds" / "stability.md"
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
    """The cells of a network by their method."""
    out = BUILD / "stability" / name
    plan = Plan(["birds"], list(METHODS), [PROTOCOL], [model], birds, 0, False)
    launch(create(out, plan), int(os.environ.get("DIORAMA_PROCESSES", "2")))
    return {named(cell): cell for cell in document(read_results(out))["cells"]}


def differences(setup: int, network: str, one: Cells, other: Cells) -> Iterator[list[str]]:
    """A line for every method: absolute differences, the paper's in brackets."""
    for method in METHODS:
        pairs = [(value(one[method], m), value(other[method], m)) for m in COLUMNS]
        ours = ["–" if a is None or b is None else f"{abs(a - b):.3f}".removeprefix("0") for a, b in pairs]
        paper = [f"{p:.3f}".removeprefix("0") for p in PAPER[setup, network, method]]
        both = [f"{a} ({b})" for a, b in zip(ours, paper, strict=True)]
        yield [str(setup), network.removeprefix("birds_"), method, *both]


def accuracies(one: Cells, other: Cells) -> str:
    """The accuracies behind the first column."""
    first, second = (value(c[METHODS[0]], "a") for c in (one, other))
    return f"{digits(first or 0)} and {digits(second or 0)}"


def main() -> None:
    """Compute what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("second", type=Path, help="folder of second trainings")
    parser.add_argument("--birds", type=int, default=500)
    parser.add_argument("--many", type=int, default=2500)
    asked = parser.parse_args()
    lines: list[list[str]] = []
    said = []
    for network in NETWORKS:
        first = cells(f"{network}-first", network, asked.birds)
        path = asked.second / network / f"{network}.safetensors"
        if path.exists():
            second = cells(f"{network}-second", f"{network}(checkpoint={path})", asked.birds)
            lines += differences(1, network, first, second)
            said.append(f"{network}: accuracy {accuracies(first, second)}")
        if asked.many > asked.birds:
            lines += differences(2, network, first, cells(f"{network}-many", network, asked.many))
    heads = ["setup", "network", "method", *COLUMNS]
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(
        text.format(
            made=made(("torch", "numpy"), "seed 0"),
            asked=asked,
            table=table(heads, sorted(lines)),
            accuracies="; ".join(said) or "no second trainings",
        ),
        encoding="utf-8",
    )
    print(PAGE)


if __name__ == "__main__":
    main()
