"""The three networks at the paper's image size, for `scripts/reproduce concepts --middle`: all numbers are from rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diorama.core.plan import Plan
from studies.concepts import costs, tables
from studies.concepts import published as paper
from studies.concepts.tables import CORRECTED, FAMILY, INVARIANCE, PUBLISHED, Found
from studies.page_kit import HOME, filled, made, perceptual

PAGE = HOME / "docs" / "results" / "concepts_paper_size.md"
STANDARD = ["si_mse", "lmse", "dssim", *perceptual()]
#: The text about attempts to train the time-lapse network better.
TIMELAPSE = Path(__file__).with_name("timelapse.md")
#: The settings in the order in which they are computed.
ORDER = ("textured-simple", "rgb-simple", "rgb-complex", "textured-complex")


def plans(scale: Any, mit: str | None) -> dict[str, Plan]:
    """All plans by name, the most important first; one network at a time, so that its activations stay in memory."""
    networks, found = list(reversed(FAMILY)), {}
    worlds = {setting: scale.world(f", setting={setting}", images=scale.images) for setting in ORDER}
    for setting, world in worlds.items():
        for network in networks:
            csm = [scale.csm(PUBLISHED), scale.csm(CORRECTED)]
            found[f"middle/csm/{setting}/{network}"] = Plan([world], [network], csm, cases=scale.sets)
    for setting, world in worlds.items():
        found[f"middle/sets/{setting}/all"] = Plan([world], networks, STANDARD, cases=scale.sets)
    found["middle/tests"] = Plan([scale.test(size=True)], networks, STANDARD, cases=40)
    if mit:
        found["middle/mit"] = Plan([mit], networks, STANDARD)
    for setting, world in worlds.items():
        found[f"middle/invariance/{setting}/all"] = Plan([world], networks, [INVARIANCE], cases=scale.sets)
    return found


def gathered(rows: Mapping[str, Found], *starts: str) -> dict[str, Found]:
    """The rows of each setting, from the jobs of these kinds; a setting that lacks a network is left out."""
    found: dict[str, Found] = {}
    for setting in paper.SETTINGS:
        jobs = [some for name, some in rows.items() for s in starts if name.startswith(f"middle/{s}/{setting}/")]
        mine = {(p, m): some[p, m] for m in FAMILY for some in jobs for p, method in some if method == m}
        found |= {setting: mine} if {method for _, method in mine} == set(FAMILY) else {}
    return found


def computed(sets: Mapping[str, Found]) -> str:
    """A sentence that says which sets are on the page."""
    counts = {setting: len({row.case for rows in some.values() for row in rows}) for setting, some in sets.items()}
    lacking = [setting for setting in paper.SETTINGS if setting not in counts]
    listed = ", ".join(f"{count} of {setting}" for setting, count in counts.items()) or "none"
    more = f" Not computed yet by all three networks: {', '.join(lacking)}." if lacking else ""
    return f"Sets behind the tables of CSM: {listed}.{more}"


def page(scale: Any, rows: Mapping[str, Found], runtime: str, scaled: str) -> str:
    """The text of the page; `rows` has the names of `plans`."""
    sets = gathered(rows, "csm", "invariance")
    drawn: Found = {}
    for some in gathered(rows, "sets").values():
        for key, values in some.items():
            drawn.setdefault(key, []).extend(values)
    parts = {
        "MADE": made(("numpy", "scipy", "scikit-learn", "torch"), "seed 0"),
        "RUNTIME": runtime,
        "SCALE": f"{scaled}\n\n{computed(sets)}",
        "ORDERING": tables.ordering(sets),
        "TABLE1": tables.table1(sets, PUBLISHED, {}),
        "TABLE1C": tables.table1(sets, CORRECTED, {}),
        "SENSITIVITIES": tables.sensitivities(sets, PUBLISHED),
        "INVARIANCE": tables.invariances(sets) if gathered(rows, "invariance") else "Not computed yet.",
        "STANDARDSETS": tables.standards(drawn),
        "STANDARDTESTS": tables.standards(rows.get("middle/tests", {})),
        "STANDARDMIT": tables.standards(rows.get("middle/mit", {})),
        "TIMELAPSE": TIMELAPSE.read_text(encoding="utf-8").strip(),
        "COSTS": costs.report(),
    }
    return filled(Path(__file__).with_name("paper_size.md"), parts)
