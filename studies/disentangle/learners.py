"""Our Table 2 of CANDLE, the curves of confounding, pictures and box errors, from the trainings of `trainings.py`.

    python -m studies.disentangle.learners [FRAMES] [DRAWS]

Reads whatever trainings are finished ($DIORAMA_TRAININGS) and says which are missing; every number is read from rows of runs
or from cards of trainings. Runs are kept in build/reproduce/learners and taken up again.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from diorama import api
from diorama.core.cases import Panel
from diorama.core.catalogue import build
from diorama.metrics.cg import farthest
from diorama.metrics.irs import irs
from diorama.metrics.uc import top
from diorama.report.summary import read_results
from diorama.training.autoencoders import VAE_RECIPES
from studies.disentangle.page import PROCESSES, Measured, figure, shown
from studies.disentangle.published import AAAI, CANDLE, SPRITES, Row
from studies.disentangle.trainings import DOSES, DRAWN, FOLDER, SEEDS, card, checkpoint, finished, trainings
from studies.figures import sheet
from studies.page_kit import HOME, made, table

BUILD, PAGE = HOME / "build" / "reproduce" / "learners", HOME / "docs" / "results" / "learners.md"
FIGURES = PAGE.with_suffix("")
#: What learners of candle are judged on: all combinations, independent of each other.
WORLD = f"candle({DRAWN})"
#: Frames that CG decodes, and frames that pictures are made from.
DECODED, PICTURED = 300, 400
NAMES = {"beta_vae": "β-VAE", "beta_tcvae": "β-TCVAE", "dip_vae": "DIP-VAE", "factor_vae": "FactorVAE"}
#: Found values by (training, protocol, metric).
Found = dict[tuple[str, str, str], Measured]


class Sizes(NamedTuple):
    """Frames of a draw, and draws."""

    frames: int
    draws: int


def called(learner: str) -> str:
    """The name of a learner as the paper writes it."""
    return ("SS-" if learner.startswith("ss_") else "") + NAMES[learner.removeprefix("ss_")]


def measured(names: list[str], world: str, protocols: list[str], sizes: Sizes, model: str = "") -> Found:
    """The values of some trainings under some protocols; nothing where there is nothing to ask."""
    if not names:
        return {}
    specs = {f"burgess_vae(checkpoint={checkpoint(name)})": name for name in names}
    out = BUILD / f"{names[0].partition('/')[0]}-{'cg' if model else 'codes'}-{len(protocols)}-{sizes.frames}"
    api.run([world], list(specs), protocols, [model] if model else [], sizes.draws, out=out, processes=PROCESSES)
    found: Found = {}
    for cell in read_results(out).cells:
        name = specs.get(str(cell.manifest["method"]))
        for metric in cell.manifest["metrics"]:
            if name:
                found[name, cell.manifest["protocol"], metric] = Measured(cell.of(metric), cell.record.summary[metric])
    return found


def codes_protocols(sizes: Sizes) -> list[str]:
    """IRS, UC as defined and as released, MCC."""
    n = f"frames={sizes.frames}"
    ucs = [f"uc({v}rho={r}, {n})" for v in ("", "variant=published, ") for r in (1, 2)]
    return [f"irs({n})", *ucs, f"mcc({n})"]


def cg_protocols() -> list[str]:
    """CG as defined and as released."""
    return [f"cg({v}rho={r}, frames={DECODED})" for v in ("", "variant=published, ") for r in (1, 2)]


def judge_of(world: str, side: int = 64) -> str:
    """The classifier of a world's factors, where it is trained; else the one that needs no training, or none."""
    if world.startswith("sprites"):
        return "sprites_moments"
    name = "judges/candle_factors" + ("_32" if side == 32 else "")
    return f"candle_factors(checkpoint={checkpoint(name)})" if finished(name) else ""


# Table 2


def table_two(group: str, world: str, paper: dict[str, Row], sizes: Sizes) -> tuple[str, str]:
    """Our lines beside the paper's, and how well the orders of learners agree."""
    names = [f"{group}/{learner}" for learner in VAE_RECIPES if finished(f"{group}/{learner}")]
    codes = measured(names, world, codes_protocols(sizes), sizes)
    model = judge_of(world)
    decoded = measured(names, world, cg_protocols(), sizes._replace(frames=DECODED), model) if model else {}
    found, n = {**codes, **decoded}, f"frames={sizes.frames}"
    keys = _columns(n)
    rows, ours = [], {key: [] for key in keys}  # type: ignore[var-annotated]
    for name in names:
        learner = name.partition("/")[2]
        cells = [_cell(found, name, spec, metric) for spec, metric in keys.values()]
        for key, (spec, metric) in keys.items():
            ours[key].append(_mean(found, name, spec, metric))
        told = card(name)
        errors = [f"{told['reconstruction']:.0f}", f"{told['divergence']:.1f}", f"{told['active']}"]
        rows.append([called(learner), *cells, *errors, *_paper(paper[learner], learner, group != "sprites")])
    heads = [
        "learner",
        *keys,
        "reconstruction",
        "KL",
        "active",
        "paper: IRS",
        "UC1",
        "CG1",
        "UC2",
        "CG2",
        "AAAI: IRS",
        "CG5",
    ]
    return table(heads, rows) if rows else "(no training of this group is finished)", _ranks(ours, names, paper)


def _columns(n: str) -> dict[str, tuple[str, str]]:
    shown_ = {"IRS": (f"irs({n})", "irs"), "null": (f"irs({n})", "irs_null")}
    for variant, word in (("", "corrected"), ("variant=published, ", "published")):
        for rho in (1, 2):
            shown_[f"UC{rho} {word}"] = (f"uc({variant}rho={rho}, {n})", "uc")
            shown_[f"CG{rho} {word}"] = (f"cg({variant}rho={rho}, frames={DECODED})", "cg")
    return {**shown_, "MCC": (f"mcc({n})", "mcc"), "R²": (f"mcc({n})", "r2")}


def _mean(found: Found, name: str, spec: str, metric: str) -> float:
    known = found.get((name, spec, metric))
    return float("nan") if known is None or known.summary.mean is None else float(known.summary.mean)


def _cell(found: Found, name: str, spec: str, metric: str) -> str:
    known = found.get((name, spec, metric))
    return "—" if known is None else shown(known, 2)


def _paper(row: Row, learner: str, later: bool) -> list[str]:
    return [
        *(f"{value:.2f}" for value in row),
        *(f"{value:.2f}" for value in AAAI[learner] if later),
        *["—"] * (0 if later else 2),
    ]


def _ranks(ours: dict[str, list[float]], names: list[str], paper: dict[str, Row]) -> str:
    """Spearman's correlation over learners of our values with the paper's."""
    learners = [name.partition("/")[2] for name in names]
    pairs = {"IRS": "irs", "UC1 corrected": "uc1", "UC1 published": "uc1", "UC2 published": "uc2"}
    pairs |= {"CG1 corrected": "cg1", "CG1 published": "cg1", "CG2 published": "cg2"}
    said = []
    for key, column in pairs.items():
        known = [(v, getattr(paper[k], column)) for v, k in zip(ours[key], learners, strict=True) if np.isfinite(v)]
        if len(known) > 3 and all(len(set(side)) > 1 for side in zip(*known, strict=True)):
            said.append(f"{key} {spearmanr(*zip(*known, strict=True))[0]:+.2f} ({len(known)} learners)")
    return ", ".join(said) or "too few learners"


# Curves


def curves(sizes: Sizes) -> tuple[str, dict[str, dict[str, list[float]]]]:
    """Every score at every dose of confounding, learnt there and judged on independent factors: means over seeds."""
    names = [name for name in trainings() if name.startswith("curves/") and finished(name)]
    found = measured(names, WORLD, codes_protocols(sizes), sizes)
    model = judge_of(WORLD, 32)
    if model:
        found |= measured(names, WORLD, cg_protocols(), sizes._replace(frames=DECODED), model)
    columns = {k: v for k, v in _columns(f"frames={sizes.frames}").items() if k != "null"}
    rows: list[list[str]] = []
    lines: dict[str, dict[str, list[float]]] = {}
    for learner in ("beta_vae", "ss_factor_vae"):
        for dose in DOSES:
            own = [n for s in SEEDS if (n := f"curves/{dose.replace(' .', '_')}-{learner}-{s}") in names]
            values = {key: [_mean(found, n, *at) for n in own] for key, at in columns.items()}
            rows.append([called(learner), dose, str(len(own)), *(_seeds(v) for v in values.values())])
            for key, v in values.items():
                lines.setdefault(called(learner), {}).setdefault(key, []).append(
                    float(np.mean(v)) if v else float("nan")
                )
    return table(["learner", "learnt on", "seeds", *columns], rows), lines


def _seeds(values: list[float]) -> str:
    known = [v for v in values if np.isfinite(v)]
    spread = f" ± {np.std(known, ddof=1):.2f}" if len(known) > 1 else ""
    return f"{np.mean(known):.2f}{spread}" if known else "—"


# Boxes, long training, labels


def boxes(group: str) -> str:
    """Squared error inside the object's box and of the whole image, with and without weighting."""
    rows = []
    for learner in ("beta_vae", "ss_factor_vae"):
        for name, said in ((f"{group}/{learner}", "no"), (f"boxes/{learner}", "λ = 10")):
            if finished(name):
                told: dict[str, Any] = card(name)
                rows.append([called(learner), said, steps_of(told), f"{told['box_error']:.4f}", f"{told['error']:.4f}"])
    return table(["learner", "box weighted", "steps", "squared error in the box", "in the whole image"], rows)


def longer(sizes: Sizes) -> str:
    """The same learner after 2,000, 8,000 and 30,000 steps: reconstruction, KL and CG."""
    names = [n for n in ("short/beta_tcvae", "candle/beta_tcvae", "long/beta_tcvae") if finished(n)]
    model, rows = judge_of(WORLD), []
    for name in names:
        told: dict[str, Any] = card(name)
        found = measured([name], WORLD, cg_protocols(), sizes._replace(frames=DECODED), model) if model else {}
        cells = [_cell(found, name, spec, "cg") for spec in cg_protocols()]
        rows.append([steps_of(told), f"{told['reconstruction']:.0f}", f"{told['divergence']:.1f}", *cells])
    heads = ["steps", "reconstruction", "KL", "CG1 corrected", "CG2 corrected", "CG1 published", "CG2 published"]
    return table(heads, rows)


# Pictures


def pictures(group: str, world_spec: str) -> list[str]:
    """A sheet of traversals and one of counterfactuals for every learner of a group; gives Markdown that shows them."""
    names = [f"{group}/{learner}" for learner in VAE_RECIPES if finished(f"{group}/{learner}")]
    if not names:
        return []
    world = build("world", world_spec).object
    scenes = [world.scene_at(0, i)[1] for i in range(PICTURED)]
    frames = world.render(scenes)
    levels = world.levels
    factors = np.array([[list(v).index(f.truth["factors"][k]) for k, v in levels.items()] for f in frames])
    return [_drawn(name, frames, factors, list(levels)) for name in names]


def _drawn(name: str, frames: list[Any], factors: np.ndarray, levels: list[str]) -> str:
    vae = build("method", f"burgess_vae(checkpoint={checkpoint(name)})").object
    codes = np.concatenate([vae.encode(frames[i : i + 100]) for i in range(0, len(frames), 100)])
    widest, file = np.argsort(-codes.std(axis=0))[:6], name.replace("/", "_")
    sheet(FIGURES / f"traversal_{file}.png", [(f"z{m}", _moved(vae, codes, int(m))) for m in widest], 64)
    chosen, far = top(np.nan_to_num(irs(codes, factors, rule="all").matrix), 1), farthest(codes)
    rows = []
    for n in range(3):
        moved = [codes[n], *(np.where(chosen[:, i], far[n], codes[n]) for i in range(len(levels)))]
        captions = ["decoded", *(f"{level} moved" for level in levels)]
        panels = [Panel(c, x) for c, x in zip(captions, vae.decode(np.stack(moved)), strict=True)]
        rows.append((f"frame {n}", [Panel("frame", frames[n].srgb()), *panels]))
    sheet(FIGURES / f"counterfactual_{file}.png", rows, 80)
    said = called(name.partition("/")[2])
    both = [f"![{what}s of {said}](learners/{what}_{file}.png)" for what in ("traversal", "counterfactual")]
    return "\n\n".join([f"**{said}**, {name.partition('/')[0]}", *both])


def _moved(vae: Any, codes: np.ndarray, latent: int) -> list[Panel]:
    steps = np.quantile(codes[:, latent], np.linspace(0.02, 0.98, 7))
    moved = np.repeat(codes[:1], len(steps), axis=0)
    moved[:, latent] = steps
    return [Panel(f"{s:+.1f}", image) for s, image in zip(steps, vae.decode(moved), strict=True)]


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


def fullest() -> str:
    """The group of candle learners to show: the whole trainings where there are any, else the short ones."""
    return "candle" if all(finished(f"candle/{learner}") for learner in VAE_RECIPES) else "short"


def main() -> None:
    """Write docs/results/learners.md and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frames", type=int, nargs="?", default=1000, help="frames of a draw")
    parser.add_argument("draws", type=int, nargs="?", default=3)
    given = parser.parse_args()
    sizes, group = Sizes(given.frames, given.draws), fullest()
    done = [name for name in trainings() if finished(name)]
    if not done:
        parser.exit(
            1, f"learners: no training is finished in {FOLDER}: python -m studies.disentangle.trainings --jobs 2\n"
        )
    candle, candle_ranks = table_two(group, WORLD, CANDLE, sizes)
    sprites, sprites_ranks = table_two("sprites", "sprites", SPRITES, sizes)
    curve_table, lines = curves(sizes)
    if any(np.isfinite(v).any() for panel in lines.values() for v in panel.values()):
        figure(lines, FIGURES / "curves.svg")
    filled = {
        "MADE": made(("numpy", "torch", "scipy"), f"draws of {sizes.frames} frames, {sizes.draws} of them"),
        "DONE": f"{len(done)} of {len(trainings())}",
        "MISSING": ", ".join(name for name in trainings() if name not in done) or "none",
        "STEPS": steps_of(card(f"{group}/beta_vae")) if finished(f"{group}/beta_vae") else "(none finished)",
        "CANDLE": candle, "CANDLE_RANKS": candle_ranks, "SPRITES": sprites, "SPRITES_RANKS": sprites_ranks,
        "CURVES": curve_table, "BOXES": boxes(group), "LONG": longer(sizes), "JUDGES": judges(),
        "PICTURES": "\n\n".join(pictures(group, WORLD) + pictures("sprites", "sprites")),
    }  # fmt: skip
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    for name, value in filled.items():
        text = text.replace("{{" + name + "}}", value)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    print(PAGE.relative_to(HOME))


if __name__ == "__main__":
    main()
