"""Results on disentanglement, for `scripts/reproduce disentangle`: every number is read from rows, none is typed.

The published networks on re-rendered sprites, planted defects, traversals and counterfactuals. Runs are kept in
build/reproduce/disentangle and taken up again. Arguments: the folder of the networks, [frames in a draw], [draws].
"""

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diorama import api
from diorama.core.cases import Panel
from diorama.core.catalogue import build
from diorama.core.keys import source_key
from diorama.core.scene import rng
from diorama.core.summary import Summary
from diorama.metrics.beta_vae import beta_vae_score
from diorama.metrics.cg import cg, farthest
from diorama.metrics.dci import dci
from diorama.metrics.factor_vae import factor_vae_score
from diorama.metrics.infomec import infomec
from diorama.metrics.irs import irs
from diorama.metrics.mig import mig
from diorama.metrics.modularity import modularity
from diorama.metrics.planted import planted, unit
from diorama.metrics.sap import sap
from diorama.metrics.uc import top, uc, uc_published
from diorama.report.summary import read_results
from studies.disentangle.pictures import counterfactual, moved
from studies.figures import sheet
from studies.page_kit import (
    HOME,
    PROCESSES,
    filled,
    made,
    svg_line,
    svg_text,
    table,
    with_interval,
    write_page,
    write_svg,
)

BUILD, PAGE = HOME / "build" / "reproduce" / "disentangle", HOME / "docs" / "results" / "disentangle.md"
FIGURES = PAGE.with_suffix("")
NETWORKS = {"VAE": "VAE", "β-VAE-H": "betaH", "β-VAE-B": "betaB", "FactorVAE": "factor", "β-TCVAE": "btcvae",
            "β-TCVAE α−5": "btcvae", "β-TCVAE α0": "btcvae", "β-TCVAE α5": "btcvae"}  # fmt: skip
SUFFIX = {"β-TCVAE α−5": "_a-5", "β-TCVAE α0": "_a0", "β-TCVAE α5": "_a5"}
DOSES = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Sprites that the planted defects are measured on, and levels of their factors: at most 20, so that MIG can reach 1.
PLANTED, LEVELS = 3000, (3, 6, 20, 16, 16)
#: Colours that colour-blind readers tell apart, then dashes.
_COLOURS = (
    *("#000000", "#e69f00", "#56b4e9", "#009e73", "#d55e00"),
    *("#0072b2", "#cc79a7", "#999999", "#7a5195", "#a05a2c"),
)


class Measured(NamedTuple):
    """The rows of a metric, and what they come to: the interval is kept within the metric's range."""

    rows: list[Any]
    summary: Summary


#: What was measured, by network, protocol and metric.
Found = dict[tuple[str, str, str], Measured]


def method(folder: Path, name: str) -> str:
    return f"burgess_vae(checkpoint={folder / (NETWORKS[name] + '_dsprites' + SUFFIX.get(name, '')) / 'model.pt'})"


def run(folder: Path, protocols: list[str], draws: int, out: str, models: tuple[str, ...] = ()) -> Found:
    """The values of every draw, by (network, protocol, metric)."""
    specs = {method(folder, name): name for name in NETWORKS} | {"burgess_vae": "untrained"}
    api.run(["sprites"], list(specs), protocols, models, draws, out=BUILD / out, processes=PROCESSES)
    found: Found = {}
    for cell in read_results(BUILD / out).cells:
        name = specs.get(str(cell.manifest["method"]), str(cell.manifest["method"]))
        for metric in cell.manifest["metrics"]:
            found[name, cell.manifest["protocol"], metric] = Measured(cell.of(metric), cell.record.summary[metric])
    return found


def shown(measured: Measured, places: int = 3) -> str:
    found = measured.summary
    return with_interval(found.mean, found.lo, found.hi, places, "undefined")


def distribution(measured: Measured) -> str:
    """How often each value came: UC takes few."""
    values = [round(row.value, 2) for row in measured.rows if row.status == "ok"]
    counts = {v: values.count(v) for v in sorted(set(values))}
    return " · ".join(f"{v:.2f}×{n}" for v, n in counts.items()) or "undefined"


# Planted defects


def scores(z: np.ndarray, g: np.ndarray) -> dict[str, float]:
    """Every score of planted codes."""
    random = rng(5, "planted")
    points = (3000, 1500)
    robust = irs(z, g).values
    return {
        "IRS": robust["irs"],
        "IRS of the chosen latents": robust["irs_chosen"],
        "UC ρ=1 published": uc_published(z, g).value,
        "UC ρ=1 corrected": uc(z, g).value,
        "MIG": mig(z, g).value,
        "DCI-D": dci(z, g, random).value,
        "InfoM": infomec(z, g).value,
        "modularity": modularity(z, g).value,
        "β-VAE score": beta_vae_score(z, g, random, points=points).value,
        "FactorVAE score": factor_vae_score(z, g, random, "spread", points).value,
        "SAP": sap(z, g, random).value,
    }


def curves() -> dict[str, dict[str, list[float]]]:
    """By defect and score, one value per dose; kept in a file until this script or a metric changes."""
    path = BUILD / f"planted-{source_key(Path(__file__))['source']}.json"
    if not path.exists():
        random = rng(0, "planted factors")
        g = np.stack([random.integers(0, v, PLANTED) for v in LEVELS], axis=1)
        found: dict[str, dict[str, list[float]]] = {}
        for defect in ("noise", "rotation", "confounder", "dead"):
            points = [scores(planted(g, defect, d, rng(1, defect)), g) for d in DOSES]
            found[defect] = {name: [p[name] for p in points] for name in points[0]}
        found["wrong assignment"] = assignments(g)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
    return json.loads(path.read_text())


def assignments(g: np.ndarray) -> dict[str, list[float]]:
    """CG of codes = factors with an ideal decoder and classifier while factors are given another factor's latent."""
    z = unit(g)[:500]
    chosen = top(irs(z, g[:500], bins=None).matrix, 1)
    found: dict[str, list[float]] = {}
    for dose in DOSES:
        wrong = round(dose * len(LEVELS))
        order = [(i + 1) % len(LEVELS) if i < wrong else i for i in range(len(LEVELS))]
        values = cg(ideal, z, g[:500], chosen[:, order]).values
        shown = {"CG Eq. 3": "cg_eq3", "CG Eq. 4 (published)": "cg_eq4", "CG signed (corrected)": "cg"}
        for name, metric in shown.items():
            found.setdefault(name, []).append(values[metric])
    return found


def ideal(z: np.ndarray) -> list[np.ndarray]:
    """One-hot probabilities of the level that each code means."""
    return [np.eye(v)[np.rint(np.clip(z[:, i], 0, 1) * (v - 1)).astype(int)] for i, v in enumerate(LEVELS)]


def figure(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Small multiples: one panel per defect, one line per score."""
    wide, high, left, gap, columns = 250, 190, 46, 26, 3
    names = list(dict.fromkeys(name for panel in found.values() for name in panel))
    dashes = {name: '" stroke-dasharray="5 3' * (i >= len(_COLOURS)) for i, name in enumerate(names)}
    ink = {name: _COLOURS[i % len(_COLOURS)] + dashes[name] for i, name in enumerate(names)}
    places = [(left + k % columns * (wide + gap), 34 + k // columns * (high + 62)) for k in range(len(found) + 1)]
    parts = [part for place, panel in zip(places, found.items(), strict=False) for part in _panel(*panel, ink, place)]
    x, top = places[-1]
    for i, name in enumerate(names):
        y = top + 8 + 17 * i
        parts += [svg_line([(x, y), (x + 26, y)], ink[name], 2, 1), svg_text(x + 34, y + 4, name, 12)]
    width, height = left + columns * (wide + gap), 34 + 2 * (high + 62) + 20
    write_svg(path, "Scores against the dose of a planted defect", width, height, parts)


def _panel(title: str, lines: dict[str, list[float]], ink: dict[str, str], place: tuple[float, float]) -> list[str]:
    (x0, y0), (wide, high) = place, (250, 190)
    low = min(0.0, *(min(v) for v in lines.values()))

    def at(d: float, v: float) -> tuple[float, float]:
        return x0 + d * wide, y0 + high * (1 - (v - low) / (1 - low))

    parts = [svg_text(x0, y0 - 10, title, 12, weight="bold")]
    for v in ([low] if low < 0 else []) + [0.0, 0.5, 1.0]:
        y = at(0, v)[1]
        parts += [svg_line([at(0, v), at(1, v)], "#ddd", 1, 1), svg_text(x0 - 6, y + 4, f"{v:.2g}", 12, anchor="end")]
    for name, values in lines.items():
        points = [at(d, v) for d, v in zip(DOSES, values, strict=True) if np.isfinite(v)]
        parts.append(svg_line(points, ink[name], 2, 1))
    parts += [svg_text(x0 + d * wide, y0 + high + 16, f"{d:g}", 12, anchor="middle") for d in (0, 0.5, 1)]
    return [*parts, svg_text(x0 + wide / 2, y0 + high + 32, "dose", 12, anchor="middle")]


# Pictures


def pictures(folder: Path) -> None:
    """Traversals of the widest latents, and counterfactuals of one sprite by the latents that IRS chooses."""
    world = build("world", "sprites").object
    scenes = [world.scene(i)[1] for i in range(500)]
    frames = world.render(scenes)
    factors = np.array([[levels.index(s.params[name]) for name, levels in world.levels.items()] for s in scenes])
    for name in ("VAE", "β-VAE-B"):
        vae = build("method", method(folder, name)).object
        codes = vae.encode(frames)
        widest = np.argsort(-codes.std(axis=0))[:6]
        rows = [(f"z{m}", moved(vae, codes, int(m))) for m in widest]
        sheet(FIGURES / f"traversal_{NETWORKS[name]}.png", rows, 64)
        chosen, far = top(irs(codes, factors, rule="all").matrix, 1), farthest(codes)
        shown = (counterfactual(vae, frames[n], codes[n], far[n], chosen, list(world.levels)) for n in range(3))
        rows = [(f"frame {n}", panels) for n, panels in enumerate(shown)]
        sheet(FIGURES / f"counterfactual_{NETWORKS[name]}.png", rows, 80)


def candle_sheets() -> None:
    """Images of the candle world from all over its numbers, and one scene with one factor changed at a time."""
    world = build("world", "candle").object
    numbers = [int(i) for first in (0, 1350, 2700) for i in first + np.sort(rng(0, "sheet", first).choice(1350, 4))]
    frames = world.render([world.numbered(i, 0) for i in numbers])
    rows = [Panel(f"{i}", frame.srgb()) for i, frame in zip(numbers, frames, strict=True)]
    sheet(
        FIGURES / "candle.png",
        [(name, rows[4 * k : 4 * k + 4]) for k, name in enumerate(("indoor", "outdoor", "playground"))],
        240,
    )
    start = world.do(world.numbered(1906, 0), object="cube", light="left", rotation=15)
    changes: list[dict[str, Any]] = [{}, {"color": "yellow"}, {"light": "right"}, {"scene": "playground"}]
    changes += [{"object": "cone"}, {"size": 1.5}, {"rotation": 60}, {"position": [-3.0, -4.0]}]
    done = world.render([world.do(start, **change) for change in changes])
    said = [", ".join(f"{k}={v}" for k, v in change.items()) or "a scene" for change in changes]
    panels = [Panel(text, frame.srgb()) for text, frame in zip(said, done, strict=True)]
    sheet(FIGURES / "candle_do.png", [("do", panels[:4]), ("do", panels[4:])], 240)


def main() -> None:
    """Write docs/results/disentangle.md and its pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the published networks")
    parser.add_argument("frames", type=int, nargs="?", default=10_000, help="frames of a draw")
    parser.add_argument("draws", type=int, nargs="?", default=20)
    given = parser.parse_args()
    folder, draws, n = given.folder, given.draws, f"frames={given.frames}"
    figure(curves(), FIGURES / "doses.svg")
    pictures(folder)
    candle_sheets()
    ucs = [f"uc({v}rho={r}, {n})" for v in ("variant=published, ", "") for r in (1, 2)]
    cheap = run(folder, [f"irs({n})", f"irs(rule=spread, {n})", f"mig({n})", f"modularity({n})", *ucs], draws, "cheap")
    dear = run(folder, [f"dci({n})", f"infomec({n})", f"factor_vae({n})", f"sap({n})"], 2, "dear")
    decoded = run(folder, ["cg", "cg(rho=2)", "cg(variant=published)"], 3, "cg", ("sprites_moments",))
    names = [*NETWORKS, "untrained"]
    first = [
        [name, shown(cheap[name, f"irs({n})", "irs"]), shown(cheap[name, f"irs({n})", "irs_null"]),
         shown(cheap[name, f"irs(rule=spread, {n})", "irs"]), shown(cheap[name, f"mig({n})", "mig"]),
         shown(cheap[name, f"modularity({n})", "modularity"]), shown(cheap[name, f"modularity({n})", "modularity_null"])]
        for name in names
    ]  # fmt: skip
    second = [[name, *(distribution(cheap[name, spec, "uc"]) for spec in ucs)] for name in names]
    third = [
        [name, shown(dear[name, f"dci({n})", "dci_d"]), shown(dear[name, f"dci({n})", "dci_c"]),
         shown(dear[name, f"dci({n})", "dci_i"]), *(shown(dear[name, f"infomec({n})", f"info_{k}"]) for k in "mec"),
         shown(dear[name, f"factor_vae({n})", "factor_vae"]), shown(dear[name, f"sap({n})", "sap"])]
        for name in names
    ]  # fmt: skip
    fourth = [
        [name, *(shown(decoded[name, "cg", m]) for m in ("cg", "cg_own", "cg_other", "cg_eq3", "cg_eq4", "cg_null")),
         shown(decoded[name, "cg(rho=2)", "cg"]), shown(decoded[name, "cg(variant=published)", "cg"]),
         shown(decoded[name, "cg", "accuracy_decoded"])]
        for name in names
    ]  # fmt: skip
    parts = {
        "MADE": made(("numpy", "torch", "scikit-learn"), "seed 0"), "FRAMES": f"{given.frames:,}", "DRAWS": str(draws),
        "TABLE1": table(["network", "IRS", "null", "IRS, dead pruned", "MIG", "modularity", "null"], first),
        "TABLE2": table(["network", "published ρ=1", "published ρ=2", "corrected ρ=1", "corrected ρ=2"], second),
        "TABLE3": table(["network", "DCI-D", "DCI-C", "DCI-I", "InfoM", "InfoE", "InfoC", "FactorVAE", "SAP"], third),
        "TABLE4": table(["network", "CG signed", "own", "other", "Eq. 3", "Eq. 4", "random sets", "CG signed ρ=2",
                         "as released", "told on reconstructions"], fourth),
    }  # fmt: skip
    write_page(PAGE, filled(Path(__file__).with_suffix(".md"), parts))


if __name__ == "__main__":
    main()
