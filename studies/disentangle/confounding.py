"""How scores of codes move with the strength of a confounder in the data that learners saw, from what `trainings.py` made.

    python -m studies.disentangle.confounding

Two learners, five doses, three seeds; all are judged on images whose factors are independent. A dose is measured by the
total correlation of the factors in the data: the sum of their entropies minus their joint entropy, 0 if independent.
Runs are kept in build/reproduce/learners and taken up again.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr
from scipy.stats import rankdata, t, zscore

from diorama.core.catalogue import build
from diorama.core.scene import rng
from diorama.worlds.candle.factors import grid
from studies.disentangle.judged import recorded
from studies.disentangle.scored import Group, Sizes, called, group_of, longer, values_of
from studies.disentangle.trainings import CURVED, DOSES, SEEDS, STEPS_CURVES, card, finished, short
from studies.page_kit import HOME, filled, made, svg_line, svg_text, table, write_page, write_svg

PAGE = HOME / "docs" / "results" / "disentangle" / "confounding.md"
FIGURE = PAGE.parent / "confounding.svg"
#: Frames of a draw and draws, of the curves and of the longer trainings.
OF_CURVES, OF_LONGER = Sizes(500, 3), Sizes(1000, 4)
#: The scores that are drawn and tested; the paper claims something about the first four.
HEADS = ("UC1 corrected", "UC2 corrected", "CG1 corrected", "CG2 corrected", "IRS", "MCC", "R²")
CLAIMED = HEADS[:4]
SHUFFLES = 4_999


class Trend(NamedTuple):
    """One score of one learner: change from no confounder to pairs, half its 95 % interval, ρ with the dose, its p."""

    learner: str
    head: str
    change: float
    half: float
    rho: float
    chance: float


def total_correlation(weights: np.ndarray, rows: np.ndarray) -> float:
    """Nats that the factors of combinations say about each other, when each combination comes as often as its weight.

    >>> corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> round(total_correlation(np.ones(4), corners), 3), round(total_correlation(np.array([1, 0, 0, 1]), corners), 3)
    (0.0, 0.693)
    """
    p = weights / weights.sum()
    single = sum(entr(np.bincount(column, p)).sum() for column in rows.T)
    return float(single - entr(p).sum())


def strengths() -> dict[str, float]:
    """The total correlation of the factors at every dose."""
    found = {}
    for dose, spec in DOSES.items():
        world: Any = build("world", spec).object
        found[dose] = total_correlation(world.weights(), grid(world.scenes))
    return found


def trained_at(group: Group, learner: str, dose: str) -> list[str]:
    """The finished trainings of a learner at a dose, one for each seed."""
    return [n for s in SEEDS if (n := f"curves/{short(dose)}-{learner}-{s}") in group.names]


def dose_table(group: Group, strength: dict[str, float]) -> str:
    """Every score at every dose, mean ± standard deviation over seeds."""
    heads = [head for head in (*group.codes, *group.decoded) if "null" not in head]
    rows = []
    for learner in CURVED:
        for dose in DOSES:
            names = trained_at(group, learner, dose)
            cells = [_seeds(values_of(group, names, head)) for head in heads]
            told: list[dict[str, Any]] = [card(name) for name in names]
            kept = [
                _seeds(np.array([float(one[part]) for one in told]), 1) for part in ("reconstruction", "divergence")
            ]
            rows.append([called(learner), f"{dose} ({strength[dose]:.2f})", str(len(names)), *cells, *kept])
    return table(["learner", "learnt on (nats)", "seeds", *heads, "reconstruction", "KL"], rows)


def _seeds(values: np.ndarray, places: int = 2) -> str:
    spread = f" ± {np.std(values, ddof=1):.{places}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{places}f}{spread}" if len(values) else "—"


def trends(group: Group, strength: dict[str, float]) -> Iterator[Trend]:
    """What each score does with the dose: seeds are paired, the order of doses is shuffled for p."""
    for learner in CURVED:
        for head in HEADS:
            at = {dose: values_of(group, trained_at(group, learner, dose), head) for dose in DOSES}
            if min(map(len, at.values())) < 2 or len(set(map(len, at.values()))) > 1:
                continue
            moved = at["pairs"] - at["none"]
            half = float(t.ppf(0.975, len(moved) - 1) * moved.std(ddof=1) / np.sqrt(len(moved)))
            doses, values = np.repeat([strength[d] for d in DOSES], len(moved)), np.concatenate([at[d] for d in DOSES])
            rho, chance = ranked(doses, values, rng("confounding", learner, head))
            yield Trend(learner, head, float(moved.mean()), half, rho, chance)


def ranked(doses: np.ndarray, values: np.ndarray, draw: np.random.Generator) -> tuple[float, float]:
    """Spearman's ρ and its p by shuffling; 0 and 1 where all values are the same."""
    if np.ptp(values) == 0:
        return 0.0, 1.0
    of_doses, of_values = (zscore(rankdata(x)) for x in (doses, values))
    shuffled = np.stack([draw.permutation(of_values) for _ in range(SHUFFLES)]) @ of_doses
    known = float(of_doses @ of_values)
    return known / len(doses), float((1 + (np.abs(shuffled) >= abs(known) - 1e-9).sum()) / (1 + SHUFFLES))


def trend_table(found: list[Trend]) -> str:
    """All trends."""
    rows = [
        [called(one.learner), one.head, f"{one.change:+.2f} ± {one.half:.2f}", f"{one.rho:+.2f}", f"{one.chance:.3f}"]
        for one in found
    ]
    return table(["learner", "score", "none → pairs", "ρ with the dose", "p"], rows, text=2)


def answer(found: list[Trend]) -> str:
    """Whether UC and CG notice the confounder, in sentences."""
    asked = [one for one in found if one.head in CLAIMED]
    if not asked:
        return "Not to be told: too few trainings are finished."
    falls = [one for one in asked if one.rho < 0 and one.chance < 0.05]
    rises = [one for one in asked if one.rho > 0 and one.chance < 0.05]
    sure = [one for one in asked if abs(one.change) > one.half]
    other = [one for one in found if one.head not in CLAIMED and one.chance < 0.05]
    both = [
        any((one.learner, one.head[:2]) == (learner, score) for one in falls)
        for learner in CURVED
        for score in ("UC", "CG")
    ]
    verdict = "**Holds.**" if all(both) else "**Holds in part.**" if any(both) else "**Does not hold.**"
    below, halves = sum(one.rho < 0 for one in asked), [one.half for one in asked]
    return (
        "The papers' claim: UC and CG are lower where the data were confounded. Here, of their"
        f" {len(asked)} trends {len(falls)} fall with the dose at p < .05{_listed(falls)} and {len(rises)} rise"
        f"{_listed(rises)} (ρ is below 0 in {below}); from no confounder to pairs {len(sure)} change by more than their"
        f" interval over seeds{_listed(sure)}, which reaches from ±{min(halves):.2f} to ±{max(halves):.2f}: less would not"
        f" be seen. {verdict} Of IRS, MCC and R² {len(other)} move with the dose{_listed(other)}. With {len(found)} tests at"
        " .05 one is expected by chance."
    )


def _listed(found: list[Trend]) -> str:
    said = ", ".join(f"{one.head} of {called(one.learner)}, ρ {one.rho:+.2f}" for one in found)
    return f" ({said})" if said else ""


# The picture

_WIDE, _HIGH, _LEFT, _GAP, _TOP = 150, 120, 136, 30, 78
_INK = {"beta_vae": "#0072b2", "ss_beta_tcvae": "#d55e00"}


def figure(group: Group, strength: dict[str, float], path: Path) -> None:
    """A panel for each score, a row for each learner: dots are seeds, the line runs through their means."""
    order = sorted(DOSES, key=strength.__getitem__)
    width = _LEFT + len(HEADS) * (_WIDE + _GAP)
    said = "Learnt on data with a confounder, judged without one. Dots: seeds; line: their mean; from left to right the"
    parts = [svg_text(12, 22, "Do scores notice a confounder in what was learnt from?", 15, weight="bold"),
             svg_text(12, 42, f"{said} total correlation of the factors: {_steps(order, strength)}.", 12)]  # fmt: skip
    for row, learner in enumerate(CURVED):
        y = _TOP + row * (_HIGH + 60)
        parts.append(svg_text(12, y + _HIGH / 2, called(learner), 13, _INK[learner], weight="bold"))
        for column, head in enumerate(HEADS):
            parts += _panel(group, order, learner, head, _LEFT + column * (_WIDE + _GAP), y)
    write_svg(path, "Scores against the strength of a confounder", width, _TOP + len(CURVED) * (_HIGH + 60), parts)


def _steps(order: list[str], strength: dict[str, float]) -> str:
    return ", ".join(f"{dose} {strength[dose]:.2f}" for dose in order)


def _panel(group: Group, order: list[str], learner: str, head: str, x0: float, y0: float) -> list[str]:
    low, high = (-0.5, 1.0) if head.startswith("CG") else (0.0, 1.0)
    parts = [svg_text(x0, y0 - 8, head, 12, weight="bold")]
    for v in (low, 0.0, 0.5, 1.0):
        y = y0 + _HIGH * (high - v) / (high - low)
        ink = "#9aa4ae" if v == 0 else "#e3e6e9"
        parts.append(svg_line([(x0, y), (x0 + _WIDE, y)], ink, 1, 1.0))
        parts.append(svg_text(x0 - 4, y + 4, f"{v:g}", 10, "#555", "end"))
    line = []
    for i, dose in enumerate(order):
        x, values = (
            x0 + 10 + (_WIDE - 20) * i / (len(order) - 1),
            values_of(group, trained_at(group, learner, dose), head),
        )
        heights = y0 + _HIGH * (high - np.clip(values, low, high)) / (high - low)
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_INK[learner]}" opacity="0.55"/>' for y in heights]
        line += [(x, float(heights.mean()))] if len(heights) else []
        parts.append(svg_text(x, y0 + _HIGH + 14, dose.replace("gaussian", "σ"), 9, "#444", "middle"))
    return [*parts, svg_line(line, _INK[learner], 2.5, 1.0)]


def judge() -> str:
    """What the classifier of the curves' images tells, on images that it did not learn."""
    name = "judges/32_candle_factors"
    if not finished(name):
        return "not trained"
    told: dict[str, Any] = card(name)
    return ", ".join(f"{factor} {entry['value']:.3f}" for factor, entry in told["accuracy"].items())


def main() -> None:
    """Write docs/results/disentangle/confounding.md and its picture."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    world, strength = recorded(), strengths()
    asked = [f"curves/{short(dose)}-{learner}-{seed}" for seed in SEEDS for dose in DOSES for learner in CURVED]
    group = group_of(asked, world, OF_CURVES, 32)
    found = list(trends(group, strength))
    figure(group, strength, FIGURE)
    parts = {
        "MADE": made(("numpy", "torch", "scipy"), f"seeds {', '.join(map(str, SEEDS))}"),
        "DONE": f"{len(group.names)} of {len(asked)}",
        "STEPS": f"{STEPS_CURVES:,}",
        "DRAWS": f"{OF_CURVES.draws} draws of {OF_CURVES.frames} frames",
        "JUDGE": judge(),
        "ANSWER": answer(found),
        "TRENDS": trend_table(found),
        "DOSES": dose_table(group, strength),
        "LONGEST": longer(["curves/none-beta_vae-0", "longest/beta_vae"], world, OF_LONGER, 32),
        "LONGEST_PAIRS": longer(["curves/pairs-beta_vae-0", "longest/pairs-beta_vae"], world, OF_LONGER, 32),
    }
    write_page(PAGE, filled(Path(__file__).with_suffix(".md"), parts))


if __name__ == "__main__":
    main()
