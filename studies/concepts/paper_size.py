"""The three networks at the paper's image size, for `scripts/reproduce concepts --middle`: all numbers are from rows."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diorama.core.catalogue import build
from diorama.core.plan import Plan
from studies.concepts import costs, tables
from studies.concepts import published as paper
from studies.concepts.tables import CORRECTED, FAMILY, INVARIANCE, PUBLISHED, Found
from studies.page_kit import HOME, filled, made

PAGE = HOME / "docs" / "results" / "concepts_paper_size.md"
STANDARD = ["si_mse", "lmse", "dssim"]
#: What was tried to make the time-lapse regime learn, and what came of it.
TIMELAPSE = Path(__file__).with_name("timelapse.md")


def plans(scale: Any, mit: str | None) -> dict[str, Plan]:
    """What is computed, by name, what matters most first: sets of every setting, then the usual scores."""
    networks, world = list(reversed(FAMILY)), scale.world(images=scale.images)
    csm = [scale.csm(PUBLISHED), scale.csm(CORRECTED)]
    cases = scale.sets and len(paper.SETTINGS) * scale.sets
    found = {
        "middle/csm": Plan([world], networks, csm, cases=cases),
        "middle/sets": Plan([world], networks, STANDARD, cases=cases),
        "middle/tests": Plan([scale.test(size=True)], networks, STANDARD, cases=40),
    }
    found |= {"middle/mit": Plan([mit], networks, STANDARD)} if mit else {}
    return found | {"middle/invariance": Plan([world], networks, [INVARIANCE], cases=cases)}


def by_setting(world: str, rows: Found) -> dict[str, Found]:
    """The rows of each setting's sets."""
    staged = build("world", world).object
    settings = {staged.scene(i)[0]: entry.setting for i, entry in enumerate(staged.entries)}
    found: dict[str, Found] = {}
    for setting in paper.SETTINGS:
        mine = {key: [row for row in some if settings[row.case] == setting] for key, some in rows.items()}
        found |= {setting: mine} if any(mine.values()) else {}
    return found


def page(scale: Any, rows: Mapping[str, Found], runtime: str, scaled: str) -> str:
    """The text; `rows` by the names of `plans`."""
    every = {**rows.get("middle/csm", {}), **rows.get("middle/invariance", {})}
    sets = by_setting(scale.world(images=scale.images), every)
    parts = {
        "MADE": made(("numpy", "scipy", "scikit-learn", "torch"), "seed 0"),
        "RUNTIME": runtime,
        "SCALE": scaled,
        "ORDERING": tables.ordering(sets),
        "TABLE1": tables.table1(sets, PUBLISHED, {}),
        "TABLE1C": tables.table1(sets, CORRECTED, {}),
        "SENSITIVITIES": tables.sensitivities(sets, PUBLISHED),
        "INVARIANCE": tables.invariances(sets),
        "STANDARDSETS": tables.standards(rows.get("middle/sets", {})),
        "STANDARDTESTS": tables.standards(rows.get("middle/tests", {})),
        "STANDARDMIT": tables.standards(rows.get("middle/mit", {})),
        "TIMELAPSE": TIMELAPSE.read_text(encoding="utf-8").strip(),
        "COSTS": costs.report(),
    }
    return filled(Path(__file__).with_name("paper_size.md"), parts)
