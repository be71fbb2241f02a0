"""Our Table 2 of CANDLE, pictures and box errors, from what `trainings.py` made.

    python -m studies.disentangle.learners [FRAMES] [DRAWS]

Reads whatever trainings are finished ($DIORAMA_TRAININGS; the learners of candle, three of sprites and the judges are
bundled) and says which are missing; every number is read from rows of runs or from cards of trainings. Runs are kept in
build/reproduce/learners and taken up again.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from diorama.training.autoencoders import VAE_RECIPES
from studies.disentangle.judged import recorded
from studies.disentangle.pictures import pictures
from studies.disentangle.published import AAAI, CANDLE, LOGS, SPRITES, Published
from studies.disentangle.scored import DECODED, Group, Sizes, called, group_of, measured, steps_of
from studies.disentangle.statements import statements
from studies.disentangle.trainings import FOLDER, card, finished, trainings
from studies.page_kit import HOME, filled, made, table, write_page

PAGE = HOME / "docs" / "results" / "disentangle" / "learners.md"
#: Frames of the one draw that MIG of the longer learners is measured on, as for the published networks.
MATCHED_FRAMES = 10_000
#: Groups of trainings that are compared with logs of published networks: how they learnt.
MATCHED = {"sprites": "as in Table 2", "published": "rate and penalty as published"}
UNFINISHED = "(no training of this group is finished)"


# Table 2


def codes_table(group: Group, paper: dict[str, Published], later: bool) -> str:
    """IRS, UC, MCC and R² of every learner, the paper's values behind them."""
    rows = []
    for name in group.names:
        learner = name.partition("/")[2]
        row = paper[learner]
        told = [f"{row.irs:.2f}", f"{row.uc1:.2f}", f"{row.uc2:.2f}", *([f"{AAAI[learner][0]:.2f}"] if later else [])]
        rows.append([called(learner), *(group.cell(name, head) for head in group.codes), *told])
    heads = ["learner", *group.codes, "paper: IRS", "paper: UC1", "paper: UC2", *(["AAAI: IRS"] if later else [])]
    return table(heads, rows) if rows else UNFINISHED


def decoded_table(group: Group, paper: dict[str, Published], later: bool) -> str:
    """CG of every learner beside what its reconstructions are like, the paper's values behind them."""
    rows = []
    for name in group.names:
        learner, told = name.partition("/")[2], card(name)
        row = paper[learner]
        errors = [f"{told['reconstruction']:.0f}", f"{told['error']:.4f}", f"{told['divergence']:.1f}"]
        values = [f"{row.cg1:.2f}", f"{row.cg2:.2f}", *([f"{AAAI[learner][1]:.2f}"] if later else [])]
        cells = [group.cell(name, head) for head in group.decoded]
        rows.append([called(learner), *cells, *errors, str(told["active"]), *values])
    heads = ["learner", *group.decoded, "reconstruction", "squared error", "KL", "active", "paper: CG1", "paper: CG2"]
    return table([*heads, *(["AAAI: CG5"] if later else [])], rows) if rows else UNFINISHED


def ranks(group: Group, paper: dict[str, Published]) -> str:
    """Spearman's correlation over learners of our values with the paper's."""
    pairs = {"IRS": "irs"} | {
        f"{metric.upper()}{rho} {word}": f"{metric}{rho}"
        for metric in ("uc", "cg") for rho in (1, 2) for word in ("corrected", "published")
    }  # fmt: skip
    said = []
    for head, column in pairs.items():
        known = [(v, getattr(paper[k], column)) for k, v in group.learners(head).items() if np.isfinite(v)]
        if len(known) > 3 and all(len(set(side)) > 1 for side in zip(*known, strict=True)):
            said.append(f"{head} {spearmanr(*zip(*known, strict=True))[0]:+.2f} ({len(known)} learners)")
    return ", ".join(said) or "too few learners"


# Boxes and steps


def boxes() -> str:
    """Squared error inside the object's box and of the whole image, with and without weighting."""
    rows = []
    for learner in ("beta_vae", "ss_factor_vae"):
        asked = [(f"plain/{learner}", "no"), (f"candle/{learner}", "yes")]
        asked += [(f"plain/{learner}_10", "no, β = 10 as in the paper's code")] if learner == "beta_vae" else []
        for name, said in asked:
            if name in trainings() and finished(name):
                told: dict[str, Any] = card(name)
                rows.append([called(learner), said, steps_of(told), f"{told['box_error']:.4f}", f"{told['error']:.4f}"])
    return table(["learner", "box weighted", "steps", "squared error in the box", "in the whole image"], rows)


def matched() -> str:
    """Two learners of sprites beside the logs of published ones after 12,000 steps."""
    rows, mig = [], {"MIG": (f"mig(frames={MATCHED_FRAMES})", "mig")}
    of_groups = [n for n in trainings() if n.partition("/")[0] in MATCHED and n.partition("/")[2] in LOGS]
    for name in filter(finished, of_groups):
        told: dict[str, Any] = card(name)
        log = LOGS[name.partition("/")[2]]
        found = measured([name], "sprites", mig, 1)[name, *mig["MIG"]]
        how = MATCHED[name.partition("/")[0]]
        ours = [f"{told['divergence']:.1f}", str(told["active"]), f"{told['reconstruction']:.0f}"]
        theirs = [" → ".join(map(str, values)) or "—" for values in (log.divergence, log.reconstruction)]
        sums = ["—", "—"]
        if log.reconstruction:  # of β-VAE, whose β is 4
            parts = ((told["reconstruction"], told["divergence"]), (log.reconstruction[-1], log.divergence[-1]))
            sums = [f"{error + 4 * kl:.1f}" for error, kl in parts]
        own = [called(name.partition("/")[2]), how, steps_of(told), *ours, sums[0], f"{found.summary.mean:.3f}"]
        rows.append([*own, theirs[0], log.active, theirs[1], sums[1], f"{log.mig:.3f}"])
    heads = ["learner", "learnt", "steps", "KL", "active", "reconstruction", "with 4·KL", "MIG"]
    logged = ["published: KL in epoch 0 → 1", "active", "reconstruction", "with 4·KL", "MIG after 30 epochs"]
    return table([*heads, *logged], rows) if rows else "(none is finished)"


def judges() -> str:
    """The accuracy of the classifiers on each factor of images that they did not learn."""
    rows = []
    for name in (n for n in trainings() if n.startswith("judges/") and finished(n)):
        told: dict[str, Any] = card(name)
        each = ", ".join(f"{factor} {entry['value']:.3f}" for factor, entry in told["accuracy"].items())
        rows.append([name.partition("/")[2], each, str(told["remark"])])
    return table(["classifier", "accuracy", "remark"], rows)


def main() -> None:
    """Write docs/results/disentangle/learners.md and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frames", type=int, nargs="?", default=1000, help="frames of a draw")
    parser.add_argument("draws", type=int, nargs="?", default=4)
    given = parser.parse_args()
    sizes = Sizes(given.frames, given.draws)
    done = [name for name in trainings() if finished(name)]
    if not any(name.startswith(("candle/", "sprites/")) for name in done):
        command = "python -m studies.disentangle.trainings --jobs 2"
        parser.exit(1, f"learners: no learner is trained in {FOLDER}: {command}\n")
    world = recorded()
    candle = group_of([f"candle/{learner}" for learner in VAE_RECIPES], world, sizes)
    sprites = group_of([f"sprites/{learner}" for learner in VAE_RECIPES], "sprites", sizes)
    names = [*candle.names, *sprites.names]
    parts = {
        "MADE": made(("numpy", "torch", "scipy"), f"draws of {sizes.frames} frames, {sizes.draws} of them, CG of {DECODED}"),
        "DRAWS": str(sizes.draws),
        "DONE": f"{len(done)} of {len(trainings())}",
        "MISSING": ", ".join(name for name in trainings() if name not in done) or "none",
        "STEPS": steps_of(card(candle.names[0])) if candle.names else "—",
        "STEPS_SPRITES": steps_of(card(sprites.names[0])) if sprites.names else "—",
        "CANDLE_CODES": codes_table(candle, CANDLE, True), "CANDLE_CG": decoded_table(candle, CANDLE, True),
        "CANDLE_RANKS": ranks(candle, CANDLE),
        "SPRITES_CODES": codes_table(sprites, SPRITES, False), "SPRITES_CG": decoded_table(sprites, SPRITES, False),
        "SPRITES_RANKS": ranks(sprites, SPRITES),
        "BOXES": boxes(),
        "MATCHED": matched(), "JUDGES": judges(),
        "STATEMENTS": statements(candle, sprites),
        "PICTURES": "\n\n".join(pictures(names, world, PAGE.with_suffix(""), called)),
    }  # fmt: skip
    write_page(PAGE, filled(Path(__file__).with_suffix(".md"), parts))


if __name__ == "__main__":
    main()
