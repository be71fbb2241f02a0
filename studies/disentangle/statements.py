"""Which statements of the CANDLE papers hold here: a sentence each, its verdict and its numbers read from rows and cards."""

from typing import Any, Protocol

import numpy as np
from scipy.stats import spearmanr

from diorama.training.autoencoders import LEARNERS
from studies.disentangle.published import CANDLE
from studies.disentangle.trainings import card, finished

#: Differences of scores below this are called none: draws differ by as much.
SMALL = 0.02


class Scored(Protocol):
    """What is asked of a group of learners."""

    @property
    def names(self) -> list[str]:
        """The finished trainings."""

    def learners(self, head: str) -> dict[str, float]:
        """The values of all learners by name."""


def statements(candle: Scored, sprites: Scored) -> str:
    """Numbered sentences; what was not trained is said to be missing."""
    said = [
        _falls(candle, sprites),
        _labels(
            candle,
            "CG1 corrected",
            "Semi-supervised learners have more counterfactual generativeness (signed CG, ρ = 1)",
        ),
        _labels(candle, "CG1 published", "The same as the released code computes it (|own − other|, ρ = 1)"),
        _predict(candle, sprites),
        _floor(candle),
        _order(candle),
        _vanish(),
        _wrong(candle),
        _reconstruction(candle, sprites),
        "Confounded data make UC and CG fall: [confounding.md](confounding.md).",
    ]
    return "\n".join(f"{i}. {text}" for i, text in enumerate(said, 1))


def _mean(group: Scored, head: str) -> float:
    known = [v for v in group.learners(head).values() if np.isfinite(v)]
    return float(np.mean(known)) if known else float("nan")


def _verdict(holds: bool, *values: float) -> str:
    """Whether a statement holds; not to be told where one of the values that decide is missing."""
    if not all(map(np.isfinite, values)):
        return "**Not to be told**: something is missing."
    return "**Holds.**" if holds else "**Does not hold.**"


def _falls(candle: Scored, sprites: Scored) -> str:
    parts, falls = [], []
    for name, group in (("candle", candle), ("sprites", sprites)):
        published, corrected = ([_mean(group, f"UC{r} {word}") for r in (1, 2)] for word in ("published", "corrected"))
        falls += [corrected[0] - corrected[1]]
        parts.append(
            f"on {name} as released {published[0]:.2f} → {published[1]:.2f},"
            f" as defined {corrected[0]:.2f} → {corrected[1]:.2f}"
        )
    return (
        f"UC falls from ρ = 1 to ρ = 2 because latents are confounded: {'; '.join(parts)} (means over learners)."
        f" {_verdict(all(f > SMALL for f in falls), *falls)} The released slice takes fixed latents, which caps UC at 2/3."
    )


def _pairs(group: Scored, head: str) -> dict[str, tuple[float, float]]:
    """Unsupervised and semi-supervised value of every learner that has both."""
    values = group.learners(head)
    both = {name: (values.get(name, np.nan), values.get(f"ss_{name}", np.nan)) for name in LEARNERS}
    return {name: pair for name, pair in both.items() if np.isfinite(pair).all()}


def _labels(group: Scored, head: str, claim: str) -> str:
    told = _told(group, head)
    return f"{claim}: {told[0]}: {told[1]} on candle. {told[2]}" if told else f"{claim}: not measured."


def _told(group: Scored, head: str) -> tuple[str, str, str] | None:
    """The pairs of values, of how many the semi-supervised one is better, and the verdict; None where there are no pairs."""
    pairs = _pairs(group, head)
    better = sum(b > a + SMALL for a, b in pairs.values())
    listed = ", ".join(f"{name} {a:.2f} → {b:.2f}" for name, (a, b) in pairs.items())
    return (listed, f"{better} of {len(pairs)}", _verdict(better == len(pairs))) if pairs else None


def _predict(candle: Scored, sprites: Scored) -> str:
    parts = []
    for name, group in (("candle", candle), ("sprites", sprites)):
        listed, better, verdict = _told(group, "R²") or ("has no pair of learners", "", "")
        parts.append(f"{name} {listed}: {better}. {verdict}" if better else f"{name} {listed}: ")
    claim = "Labels for a tenth of the images let held-out labels be predicted better (R² of a linear regression)"
    return f"{claim}: {' '.join(parts)}"


def _floor(candle: Scored) -> str:
    values, nulls = candle.learners("IRS"), candle.learners("IRS null")
    above = [name for name in values if values[name] > nulls[name] + SMALL]
    return (
        "IRS tells how disentangled a learner is: of permuted codes it is"
        f" {min(nulls.values()):.2f} to {max(nulls.values()):.2f}, of the learners {min(values.values()):.2f} to"
        f" {max(values.values()):.2f}; {len(above)} of {len(values)} lie above their null."
        f" {_verdict(len(above) == len(values))} Without its null it says little."
    )


def _order(candle: Scored) -> str:
    values = {k: v for k, v in candle.learners("IRS").items() if np.isfinite(v)}
    if len(values) < 4:
        return "The order of learners by IRS is the paper's: too few learners."
    rank = float(spearmanr(list(values.values()), [CANDLE[k].irs for k in values])[0])
    best = max(values, key=lambda k: values[k])
    return (
        f"The order of learners by IRS is the paper's (β-VAE first, DIP-VAE last): Spearman {rank:+.2f} over {len(values)}"
        f" learners, first here is {best}. {_verdict(rank > 0.7)}"
    )


def _vanish() -> str:
    names = ("plain/beta_vae", "candle/beta_vae", "plain/beta_vae_10")
    told: dict[str, Any] = {name: card(name) for name in names if finished(name)}
    if "plain/beta_vae" not in told or "candle/beta_vae" not in told:
        return "Small objects vanish, and weighting the box helps: not measured."
    plain, boxed = told["plain/beta_vae"], told["candle/beta_vae"]
    ten = told.get("plain/beta_vae_10")
    more = f" (β = 10: {ten['box_error']:.4f})" if ten else ""
    return (
        "Small foreground objects vanish from reconstructions, and weighting their box helps: squared error in the box"
        f" {plain['box_error']:.4f} without{more}, {boxed['box_error']:.4f} with; of the image {plain['error']:.4f} and"
        f" {boxed['error']:.4f}. {_verdict(boxed['box_error'] < 0.8 * plain['box_error'])}"
    )


def _wrong(candle: Scored) -> str:
    signed, null, released = (_mean(candle, head) for head in ("CG1 corrected", "null 1", "CG1 published"))
    return (
        f"CG of |own − other| measures generativeness: it is {released:.2f} in the mean over learners, while the signed"
        f" difference is {signed:+.2f} and that of random latents {null:+.2f}."
        f" {_verdict(signed > null + SMALL, signed, null, released)}"
    )


def _reconstruction(candle: Scored, sprites: Scored) -> str:
    told = {name: float(card(name)["error"]) for name in sprites.names}  # type: ignore[arg-type]
    values = sprites.learners("CG1 corrected")
    known = [(told[n], values[n.partition("/")[2]]) for n in sprites.names if np.isfinite(values[n.partition("/")[2]])]
    rank = float(spearmanr(*zip(*known, strict=True))[0]) if len(known) > 3 else float("nan")
    a, b = _mean(candle, "CG1 corrected"), _mean(sprites, "CG1 corrected")
    return (
        f"CG is lower on sprites than on candle, as places are hard to reconstruct: signed CG {b:+.2f} against {a:+.2f};"
        f" over the learners of sprites error and CG correlate by {rank:+.2f}."
        f" {_verdict(b < a - SMALL and rank < 0, a, b, rank)}"
    )
