"""Our Table 2 of CANDLE, learning with and without a confounder, pictures and box errors, from what `trainings.py` made.

    python -m studies.disentangle.learners [FRAMES] [DRAWS]

Reads whatever trainings are finished ($DIORAMA_TRAININGS; the learners of candle and the judges are bundled) and says which
are missing; every number is read from rows of runs or from cards of trainings. Runs are kept in build/reproduce/learners and
taken up again.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from diorama import api
from diorama.core.scene import digest
from diorama.report.summary import read_results
from diorama.training.autoencoders import VAE_RECIPES
from studies.disentangle.judged import recorded
from studies.disentangle.page import Measured, shown
from studies.disentangle.pictures import pictures
from studies.disentangle.published import AAAI, CANDLE, LOGS, SPRITES, Row
from studies.disentangle.statements import statements
from studies.disentangle.trainings import CURVED, DOSES, FOLDER, SEEDS, card, checkpoint, finished, short, trainings
from studies.page_kit import HOME, PROCESSES, filled, made, table, write_page

BUILD = HOME / "build" / "reproduce" / "learners"
PAGE = HOME / "docs" / "results" / "disentangle" / "learners.md"
#: Frames that CG decodes: each costs 13 passes through decoder and classifier for every protocol.
DECODED = 60
#: Frames of the one draw that MIG of the longer learners is measured on, as for the published networks.
MATCHED_FRAMES = 10_000
#: Frames and draws of the learners of the curves, which are many and are averaged over seeds.
OF_CURVES = (500, 3)
NAMES = {"beta_vae": "β-VAE", "beta_tcvae": "β-TCVAE", "dip_vae": "DIP-VAE", "factor_vae": "FactorVAE"}
#: Groups of trainings that are compared with logs of published networks: how the penalty grew, and what else was as there.
MATCHED = {
    "sprites": "as in Table 2",
    "matched": "full from the start",
    "annealed": "over 10,000 steps",
    "constant": "over 10,000 steps; constant rate, 400,000 images, float32",
}
UNFINISHED = "(no training of this group is finished)"
#: Found values by (training, protocol, metric).
Found = dict[tuple[str, str, str], Measured]
#: What tables show of a protocol: its spec and metric, by head.
Columns = dict[str, tuple[str, str]]


class Sizes(NamedTuple):
    """Frames of a draw, and draws."""

    frames: int
    draws: int


def called(learner: str) -> str:
    """The name of a learner as the paper writes it."""
    return ("SS-" if learner.startswith("ss_") else "") + NAMES[learner.removeprefix("ss_")]


@dataclass(frozen=True)
class Group:
    """The finished learners of a group, what was found for them, and the columns of its tables."""

    names: list[str]
    found: Found
    codes: Columns
    decoded: Columns

    def cell(self, name: str, head: str) -> str:
        """A value with its interval."""
        known = self.found.get((name, *{**self.codes, **self.decoded}[head]))
        return "—" if known is None else shown(known, 2)

    def mean(self, name: str, head: str) -> float:
        """A value; NaN where there is none."""
        known = self.found.get((name, *{**self.codes, **self.decoded}[head]))
        return float("nan") if known is None or known.summary.mean is None else float(known.summary.mean)

    def learners(self, head: str) -> dict[str, float]:
        """The values of all learners by name."""
        return {name.partition("/")[2]: self.mean(name, head) for name in self.names}


def measured(names: list[str], world: str, columns: Columns, draws: int, model: str = "") -> Found:
    """The values of some trainings under the protocols of some columns: a run for each, so that none is asked twice."""
    protocols = list(dict.fromkeys(spec for spec, _ in columns.values()))
    found: Found = {}
    for name in names:
        asked = digest([world, protocols, draws, str(checkpoint(name))])[:8]
        out = BUILD / f"{name.replace('/', '-')}-{'cg' if model else 'codes'}-{asked}"
        spec = f"burgess_vae(checkpoint={checkpoint(name)})"
        api.run([world], [spec], protocols, [model] if model else [], draws, out=out, processes=PROCESSES)
        for cell in read_results(out).cells:
            for metric in cell.manifest["metrics"]:
                at = name, str(cell.manifest["protocol"]), metric
                found[at] = Measured(cell.of(metric), cell.record.summary[metric])
    return found


def group_of(names: list[str], world: str, sizes: Sizes, side: int = 64) -> Group:
    """Everything that is asked about some trainings, of those that are finished."""
    done = [name for name in names if finished(name)]
    codes, decoded = _codes(sizes), _decoded()
    model = judge_of(world, side)
    found = measured(done, world, codes, sizes.draws)
    found |= measured(done, world, decoded, sizes.draws, model) if model else {}
    return Group(done, found, codes, decoded)


def _codes(sizes: Sizes) -> Columns:
    """IRS, UC as defined and as released, MCC and R²."""
    n = f"frames={sizes.frames}"
    ucs = {
        f"UC{rho} {word}": (f"uc({variant}rho={rho}, {n})", "uc")
        for variant, word in (("", "corrected"), ("variant=published, ", "published"))
        for rho in (1, 2)
    }
    ucs |= {f"UC{rho} null": (ucs[f"UC{rho} corrected"][0], "uc_null") for rho in (1, 2)}
    irs = {"IRS": (f"irs({n})", "irs"), "IRS null": (f"irs({n})", "irs_null")}
    return {**irs, **ucs, "MCC": (f"mcc({n})", "mcc"), "R²": (f"mcc({n})", "r2")}


def _decoded() -> Columns:
    """CG as defined and as released."""
    found: Columns = {}
    for rho in (1, 2):
        own = f"cg(rho={rho}, frames={DECODED})"
        found |= {f"CG{rho} corrected": (own, "cg"), f"null {rho}": (own, "cg_null")}
    for rho in (1, 2):
        found[f"CG{rho} published"] = (f"cg(variant=published, rho={rho}, frames={DECODED})", "cg")
    return found | {"told on decoded": (f"cg(rho=1, frames={DECODED})", "accuracy_decoded")}


def judge_of(world: str, side: int = 64) -> str:
    """The classifier of a world's factors, where it is trained; else none."""
    model = "sprites_factors" if world.startswith("sprites") else "candle_factors"
    name = f"judges/{'32_' if side == 32 else ''}{model}"
    return f"{model}(checkpoint={checkpoint(name)})" if finished(name) else ""


# Table 2


def codes_table(group: Group, paper: dict[str, Row], later: bool) -> str:
    """IRS, UC, MCC and R² of every learner, the paper's values behind them."""
    rows = []
    for name in group.names:
        learner = name.partition("/")[2]
        row = paper[learner]
        told = [f"{row.irs:.2f}", f"{row.uc1:.2f}", f"{row.uc2:.2f}", *([f"{AAAI[learner][0]:.2f}"] if later else [])]
        rows.append([called(learner), *(group.cell(name, head) for head in group.codes), *told])
    heads = ["learner", *group.codes, "paper: IRS", "paper: UC1", "paper: UC2", *(["AAAI: IRS"] if later else [])]
    return table(heads, rows) if rows else UNFINISHED


def decoded_table(group: Group, paper: dict[str, Row], later: bool) -> str:
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


def ranks(group: Group, paper: dict[str, Row]) -> str:
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


# Doses, boxes, steps, labels


def doses(world: str) -> tuple[str, dict[tuple[str, str, str], float]]:
    """Every score of learners at every dose of confounding, learnt there and judged on independent factors."""
    names = [name for name in trainings() if name.startswith("curves/")]
    group = group_of(names, world, Sizes(*OF_CURVES), 32)
    heads = [head for head in (*group.codes, *group.decoded) if "null" not in head]
    rows: list[list[str]] = []
    means: dict[tuple[str, str, str], float] = {}
    for learner in CURVED:
        for dose in DOSES:
            own = [n for s in SEEDS if (n := f"curves/{short(dose)}-{learner}-{s}") in group.names]
            if not own:
                continue
            values = {head: [v for n in own if np.isfinite(v := group.mean(n, head))] for head in heads}
            means |= {(learner, dose, head): float(np.mean(v)) for head, v in values.items() if v}
            rows.append([called(learner), dose, str(len(own)), *(_seeds(v) for v in values.values())])
    return table(["learner", "learnt on", "seeds", *heads], rows) if rows else "(none is finished)", means


def _seeds(values: list[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{spread}" if values else "—"


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


def longer(names: list[str], world: str, sizes: Sizes, side: int = 64) -> str:
    """The same learner after more and more steps: reconstruction, KL and CG."""
    group = group_of(names, world, sizes, side)
    rows = []
    for name in group.names:
        told: dict[str, Any] = card(name)
        values = [group.cell(name, head) for head in ("IRS", "UC1 corrected", "R²", *group.decoded)]
        rows.append([steps_of(told), f"{told['reconstruction']:.0f}", f"{told['divergence']:.1f}", *values])
    return table(["steps", "reconstruction", "KL", "IRS", "UC1 corrected", "R²", *group.decoded], rows)


def matched() -> str:
    """Two learners of sprites beside the logs of published ones after 12,000 steps."""
    rows, mig = [], {"MIG": (f"mig(frames={MATCHED_FRAMES})", "mig")}
    of_groups = [n for n in trainings() if n.partition("/")[0] in MATCHED and n.partition("/")[2] in LOGS]
    for name in filter(finished, of_groups):
        told: dict[str, Any] = card(name)
        log = LOGS[name.partition("/")[2]]
        found = measured([name], "sprites", mig, 1)[name, *mig["MIG"]]
        grown = MATCHED[name.partition("/")[0]]
        ours = [f"{told['divergence']:.1f}", str(told["active"]), f"{told['reconstruction']:.0f}"]
        theirs = [" → ".join(map(str, values)) or "—" for values in (log.divergence, log.reconstruction)]
        sums = ["—", "—"]
        if log.reconstruction:  # of β-VAE, whose β is 4
            parts = ((told["reconstruction"], told["divergence"]), (log.reconstruction[-1], log.divergence[-1]))
            sums = [f"{error + 4 * kl:.1f}" for error, kl in parts]
        own = [called(name.partition("/")[2]), grown, steps_of(told), *ours, sums[0], f"{found.summary.mean:.3f}"]
        rows.append([*own, theirs[0], log.active, theirs[1], sums[1], f"{log.mig:.3f}"])
    heads = ["learner", "penalty grows", "steps", "KL", "active", "reconstruction", "with 4·KL", "MIG"]
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


def steps_of(told: dict[str, Any]) -> str:
    """The steps of a training, from its card; the first cards have all parameters in one table."""
    recipe = told["recipe"]
    return f"{recipe.get('how', recipe)['steps']:,}"


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
    dose_table, by_dose = doses(world)
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
        "DOSES": dose_table, "BOXES": boxes(),
        "LONG": longer(["sprites/beta_vae", "matched/beta_vae"], "sprites", sizes),
        "LONGEST": longer(["curves/none-beta_vae-0", "longest/beta_vae"], world, sizes, 32),
        "LONGEST_PAIRS": longer(["curves/pairs-beta_vae-0", "longest/pairs-beta_vae"], world, sizes, 32),
        "MATCHED": matched(), "JUDGES": judges(),
        "STATEMENTS": statements(candle, sprites, by_dose),
        "PICTURES": "\n\n".join(pictures(names, world, PAGE.with_suffix(""), called)),
    }  # fmt: skip
    write_page(PAGE, filled(Path(__file__).with_suffix(".md"), parts))


if __name__ == "__main__":
    main()
