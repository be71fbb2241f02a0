"""Results on FunnyBirds, for `scripts/reproduce funnybirds`: every number in a table is read from rows, none is typed.

    python -m studies.funnybirds.page [--birds 500] [--sampled 100] [--only birds_vit …]

Networks without weights are left out, and the page says so. `--only` computes the rows of some networks and writes no page;
the next call without it reuses them.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path

from diorama.core.guard import attempt
from diorama.core.run import open_run, silent
from diorama.io.zoo import checkpoint_path
from studies.funnybirds.bare import BIRDS, bare_birds, bare_table
from studies.funnybirds.coherence import page as coherence
from studies.funnybirds.drift import page as drift
from studies.funnybirds.figures import figure3, figure7, figure9
from studies.funnybirds.signs import page as signs
from studies.funnybirds.table2 import BUILD, NETWORKS, Network, Size, cells_of, controls, doses, orders, scores
from studies.page_kit import HOME, PROCESSES, filled, made, write_page

PAGE = HOME / "docs" / "results" / "funnybirds.md"


def standard_errors(network: str) -> str:
    """The bounds on the standard error in RISE's rows, and how often each occurs."""
    opened = open_run(BUILD / f"{network}-sampled")
    cell = next(c for c in opened.cells if c.method and c.method.name.endswith("rise"))
    notes = (re.search(r"standard error[^;]*", row.reason) for row in opened.rows(cell) if row.metric == "sd")
    counts = Counter(note.group(0) for note in notes if note)
    return "; ".join(f"{text}: {n} birds" for text, n in counts.most_common())


def write(networks: list[Network], size: Size, page: Path) -> None:
    """Write the page and its figures."""
    figures = page.with_suffix("")
    figures.mkdir(parents=True, exist_ok=True)
    found = {network.name: cells_of(network, size) for network in networks}
    figure3(found, figures / "figure3.svg")
    figure7(figures / "figure7.png", networks)
    figure9("birds_resnet", figures / "figure9.png")
    missing = [network.name for network in NETWORKS if network not in networks]
    parts = {
        **{name.upper(): str(number) for name, number in asdict(size).items()},
        "MADE": made(("torch", "numpy"), f"seed {size.seed}"),
        "MISSING": f"Without weights, and so missing: {', '.join(missing)}." if missing else "",
        "PUBLISHED": scores(found, "published"),
        "CORRECTED": scores(found, "corrected"),
        "ORDERS": orders(found),
        "CONTROLS": controls(found),
        "DOSES": doses(found["birds_resnet"]),
        "BARE": bare_table([n.name for n in networks], bare_birds(BUILD / "bare", silent)),
        "BARE_BIRDS": f"{BIRDS:,}",
        "DRIFT": drift(size.sampled, size.processes),
        "COHERENCE": coherence(size.sampled),
        "SIGNS": signs([n.name for n in networks if "integrated_gradients" in n.maps]),
        "ERRORS": "\n".join(f"- {n.name}: {standard_errors(n.name)}" for n in networks if n.sampled),
    }
    write_page(page, filled(Path(__file__).with_suffix(".md"), parts))


def main() -> None:
    """Compute missing rows and write the page."""
    default = Size()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--birds", type=int, default=default.birds, help="for explanations by maps")
    parser.add_argument("--sampled", type=int, default=default.sampled, help="for RISE and LIME")
    parser.add_argument("--further", type=int, default=default.further, help="for methods that are not in the paper")
    parser.add_argument("--only", nargs="+", choices=[n.name for n in NETWORKS], help="compute these; no page")
    options = parser.parse_args()
    size = Size(options.birds, options.sampled, options.further, 0, PROCESSES)
    available = [n for n in NETWORKS if attempt(partial(checkpoint_path, None, n.name)).error is None]
    networks = [n for n in available if not options.only or n.name in options.only]
    if options.only:
        for network in networks:
            cells_of(network, size)
        return
    write(networks, size, PAGE)


if __name__ == "__main__":
    main()
