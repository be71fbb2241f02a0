"""Results on intrinsic images, for `scripts/reproduce intrinsic`: every number is read from rows, none is typed.

Runs, fits and studies are kept in build/reproduce/intrinsic and resumed. Figures of the real photographs stay there, because
they are other people's pictures; figures of staged objects go to docs.
"""

import argparse
import json
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from diorama import api, layouts
from diorama.core.bench import Bench
from diorama.core.cases import Panel
from diorama.core.catalogue import build
from diorama.core.frame import linear_to_srgb
from diorama.core.keys import source_key
from diorama.core.memory import Memory
from diorama.core.run import asked_for, open_run, silent
from diorama.core.summary import settle
from diorama.core.writing import Writing
from diorama.io.store import write_json
from diorama.protocols.layers.judging import comparison
from diorama.report.write import write_report
from studies.figures import bars, pairs, sheet
from studies.intrinsic import capture, tappen
from studies.page_kit import HOME, PROCESSES, filled, made, perceptual, table, write_page

BUILD, PAGE = HOME / "build" / "reproduce" / "intrinsic", HOME / "docs" / "results" / "intrinsic.md"
FIGURES = PAGE.with_suffix("")
CLASSICAL = ("baseline", "retinex_gray", "retinex_color", "weiss", "weiss_retinex")
LEARNED = ("tappen05", "tappen06")
CONSTANT = ("constant(layer=reflectance)", "constant(layer=shading)")
#: The parameters that leave-one-out chose with L2; L1 uses them too (Grosse et al. 2009 tune with L2 only).
COLOUR = f"brightness=1.0, chroma={10**-1.125}"
GRAY, MEDIAN = 10 ** (-3 + 9 * 4 / 14), 0.1
FIXED = {
    "retinex_gray": f"retinex_gray(threshold={GRAY}",
    "retinex_color": f"retinex_color({COLOUR}",
    "weiss": "weiss(",
    "weiss_retinex": f"weiss_retinex(threshold={MEDIAN}",
    "tappen05": "tappen05(",
    "tappen06": "tappen06(",
}
SPREAD = ("lmse", "lmse(preset=barron)", "lmse(preset=fan)", "si_mse", "si_mse(preset=fan)", "dssim",
          "dssim(search=True)", "dssim(preset=marigold)", "psnr", "psnr(preset=marigold)", "psnr(preset=rgbx)", "whdr",
          "whdr(preset=li2018)", "reconstruction")  # fmt: skip
SEED, UNSEEN, STAGED, SCENES = 2009, 2010, 8, 3
SIZES = (10, 20, 40, 80)
STAGE = "tabletop(objects=1, surface=textured, size=160, samples=64)"
Cells = dict[str, dict[str, Any]]


def run(name: str, world: str, methods: Sequence[str], protocols: Sequence[str], controls: bool = False) -> Cells:
    """The results of a run by method, or by protocol if there are several."""
    results = api.run([world], methods, protocols, controls=controls, out=BUILD / name, processes=PROCESSES)
    key = "method" if len(protocols) == 1 else "protocol"
    return {cell[key].rpartition("/")[2]: cell for cell in results["cells"] if not cell["control"]}


def mean(cell: dict[str, Any], metric: str = "lmse") -> float:
    """The mean of a metric over all cases, each of which must have a value."""
    summary = cell["summary"][metric]
    assert summary["n_ok"] == cell["cases"], f"{cell['method']}: {summary}"
    return summary["mean"]


def named(cells: Cells, short: str) -> dict[str, Any]:
    """The cell of a method, whatever its parameters."""
    return next(cell for label, cell in cells.items() if label.partition("(")[0] == short)


def kept(name: str, module: Any, compute: Callable[[], Any]) -> Any:
    """A value that is stored as JSON until the source of the module, or of what it imports, changes."""
    path, key = BUILD / f"{name}.json", source_key(Path(module.__file__))["source"]
    known = json.loads(path.read_text()) if path.exists() else {}
    if known.get("source") != key:
        known = {"source": key, "value": compute()}
        write_json(path, known)
    return known["value"]


def report(name: str) -> str:
    """The tables of a run, written by `diorama report`."""
    text = write_report([BUILD / name], format="md")
    return re.sub(r"root=[^,)]*", "root=…", str(text)).strip()


def figure4(cells: Cells) -> str:
    """Draw mean LMSE and mean rank of every algorithm as bars, and return the Markdown that shows them."""
    means, ranks = ({name: get(cell) for name, cell in cells.items()} for get in (mean, lambda c: c["mean_rank"]))
    published = {name: cell["published"] for name, cell in cells.items() if cell["published"]}
    bars(FIGURES / "figure4_lmse.svg", "mean LMSE over the 16 objects; triangles: published", means, published, 4)
    bars(FIGURES / "figure4_rank.svg", f"mean rank among these {len(cells)} over the 16 objects", ranks, {}, 2)
    return "![mean LMSE](intrinsic/figure4_lmse.svg)\n\n![mean rank](intrinsic/figure4_rank.svg)"


def l1_table(tuned: Cells, l1: Cells, irls: Cells) -> str:
    """A table of every algorithm's LMSE with L2 and with L1."""
    rows = []
    for name, start in FIXED.items():
        if not any(label.startswith(f"{name}(") for label in l1):
            continue
        given = ", ".join(f"{k}={float(v):.3g}" for k, v in re.findall(r"(\w+)=([\d.]+)", start))
        parity = [f"{mean(cell):.4f}" for label, cell in irls.items() if label.startswith(name)]
        both = [f"{mean(named(cells, name)):.4f}" for cells in (tuned, l1)]
        rows.append([name, given or "–", *both, *(parity or ["–"])])
    return table(["algorithm", "parameters of L1", "L2", "L1 (ADMM)", "L1 (reweighting, as released)"], rows)


def values(name: str, method: str) -> dict[str, float]:
    """One method's LMSE by object in a run, at the chosen parameters."""
    opened = open_run(BUILD / name)
    cell = next(c for c in opened.cells if c.method and not c.control and c.method.name.endswith(method))
    return {r.case: r.value for r in settle(opened.rows(cell), "lmse", "lower").rows if r.metric == "lmse"}  # type: ignore[misc]


def windows(root: str) -> str:
    """A table of mean LMSE (rank) at four window sizes; one run, so that every method answers once for all sizes."""
    results = api.run([root], CLASSICAL, [f"lmse(k={k})" for k in SIZES], out=BUILD / "windows", processes=PROCESSES)
    scores = {(c["method"], c["protocol"]): f"{mean(c):.4f} ({c['mean_rank']:.2f})" for c in results["cells"]}
    rows = [[name, *(scores[name, f"lmse(k={k})"] for k in SIZES)] for name in CLASSICAL]
    return table(["algorithm", *(f"k = {k}" for k in SIZES)], rows)


def specular(diffuse: Cells, original: Cells) -> str:
    """A table of mean LMSE on diffuse images and on images with highlights."""
    both = [(name, mean(named(diffuse, name)), mean(named(original, name))) for name in CLASSICAL]
    rows = [[name, f"{a:.4f}", f"{b:.4f}", f"{b / a:.2f}"] for name, a, b in both]
    return table(["algorithm", "diffuse.png", "original.png (with highlights)", "ratio"], rows)


def spread(root: str) -> tuple[str, str]:
    """The report of one set of answers under every protocol, and a table that compares it with reference values."""
    protocols = [*SPREAD, *perceptual()]
    run("spread", root, [f"retinex_color({COLOUR})"], protocols)
    text = report("spread")
    reference = json.loads((HOME / "tests" / "golden" / "protocol_spread.json").read_text())
    rows = []
    for name, expected in list(reference.items())[1:]:
        scores = values_of("spread", name)
        ours = sum(scores) / len(scores), math.exp(sum(map(math.log, scores)) / len(scores))
        difference = max(abs(a - b) for a, b in zip(ours, expected, strict=True))
        four = (f"{v:.5f}" for pair in zip(ours, expected, strict=True) for v in pair)
        rows.append([f"`{name}`", *four, f"{difference:.0e}"])
    heads = ["protocol", "mean", "reference", "geometric mean", "reference", "largest difference"]
    return text[text.index("**one set of answers") :], table(heads, rows)


def values_of(name: str, protocol: str) -> list[float]:
    """The values of a protocol's first metric in a run of one method."""
    opened = open_run(BUILD / name)
    cell = next(c for c in opened.cells if c.protocol.label == protocol)
    metric = cell.protocol.object.metrics[0]
    return [row.value for row in opened.rows(cell) if row.metric == metric]  # type: ignore[misc]


def learned(root: str) -> str:
    """A table of the study of the learned algorithms, on held-out objects."""
    world = build("world", root).object
    frames = partial(world.render, [world.scene(i)[1] for i in range(len(world))])
    facts = kept("learned", tappen, lambda: tappen.study(frames()))
    folds = {name: "; ".join(str(facts[f"fold{i}"][name]) for i in (0, 1)) for name in ("stumps", "prototypes")}
    flipped, total = facts["labels_flipped_by_the_field"], facts["gradients"]
    cells = {k.replace("_", " "): f"{v:.4f}" for k, v in facts.items() if isinstance(v, float)}
    cells["labels flipped by belief propagation"] = f"{flipped:,} of {total:,} ({flipped / total:.1%})"
    cells |= {f"{k.replace('_', ' ')} (either fold)": v for k, v in folds.items()}
    return table(["on held-out objects", "value"], [[k, v] for k, v in cells.items()])


def staged() -> str:
    """Render staged objects in the data set's layout, and return the spec of the world that reads them."""
    folder = BUILD / "staged"
    if not (folder / "contact.png").exists():
        layouts.write("mit", Writing(build("world", STAGE), STAGED, SEED, {}, folder, silent))
    names = tuple(sorted(path.name for path in folder.iterdir() if path.is_dir()))
    return f"mit_intrinsic(root={folder}, objects={names})"


def components(world: str, out: Path) -> None:
    """Draw Figures 1 and 3: every object with its layers."""
    rows = []
    for i in range(len(build("world", world).object)):
        objects = [build("world", world[:-1] + f", image={image})").object for image in ("original", "diffuse")]
        original, diffuse = (w.render([w.scene(i)[1]])[0] for w in objects)
        layers = {"original I": original.image, "diffuse R*S": diffuse.image}
        layers |= {f"{n} {n[0].upper()}": original.truth[n] for n in ("shading", "reflectance")}
        layers["specular C"] = original.truth["specular"]
        rows.append((objects[0].scene(i)[0], [_panel(n, layer, original.mask) for n, layer in layers.items()]))
    sheet(out / "figure1.png", rows[:1], 150)
    uncaptioned = [(name, [Panel("", panel.image) for panel in panels]) for name, panels in rows[1:]]
    sheet(out / "figure3.png", [*rows[:1], *uncaptioned], 84)


def _panel(caption: str, layer: np.ndarray, mask: np.ndarray) -> Panel:
    top = max(float(np.quantile(layer[mask], 0.995)), 1e-3)
    masked = np.where(mask[:, :, None], np.broadcast_to(layer, (*mask.shape, 3)), 0)
    return Panel(caption, linear_to_srgb(masked / top))


def answered(name: str, objects: Sequence[str]) -> dict[str, dict[str, list[Panel]]]:
    """Panels of truth, answer and error of every method of a run for some objects, at the parameters chosen for each."""
    opened = open_run(BUILD / name)
    found: dict[str, dict[str, list[Panel]]] = {}
    for cell in opened.cells:
        if cell.control or cell.method is None:
            continue
        chosen = settle(opened.rows(cell), "lmse", "lower").chosen
        for i, key in enumerate(cell.cases.keys):
            if key in objects:
                case = cell.cases[i]
                asked, point = asked_for(opened, cell, i), chosen.get(case.key, 0)
                bench = Bench(cell.world, None, asked, cell.protocol.object, case, Memory(), point)
                scene = cell.world.object.scene(i)[1]
                panels = comparison(bench.frame(scene), bench.layers(scene))
                found.setdefault(case.key, {})[cell.method.name.rpartition("/")[2]] = panels
    return found


def figure5(name: str, objects: Sequence[str], out: Path) -> None:
    """Draw reflectance and shading of three objects by every algorithm."""
    rows = []
    for key, methods in answered(name, objects).items():
        rows += _both_layers(key, methods)
    sheet(out / "figure5.png", rows, 100)


def _both_layers(key: str, answers: dict[str, list[Panel]], above: Sequence[str] = ()) -> list[tuple[str, list[Panel]]]:
    """A row for each layer of an object: image, truth and answers; `above` are captions of R instead of the names."""
    some, rows = next(iter(answers.values())), []
    for layer, at, name, captions in (("reflectance", 1, key, above or answers), ("shading", 4, "", answers)):
        first = [Panel(name, some[0].image), Panel("truth", some[at].image)]
        captioned = zip(captions, answers.values(), strict=True)
        rows.append((layer, [*first, *(Panel(caption, panels[at + 1].image) for caption, panels in captioned)]))
    return rows


def figure6(l2: str, l1: str, objects: Sequence[str], out: Path) -> None:
    """Draw the answers of colour Retinex with L2 and with L1."""
    before, after = (answered(name, objects) for name in (l2, l1))
    scores = [values(name, "retinex_color") for name in (l2, l1)]
    rows = []
    for key in before:
        answers = {"L2": before[key]["retinex_color"], "L1": after[key]["retinex_color"]}
        captions = [f"{name} {score[key]:.4f}" for name, score in zip(answers, scores, strict=True)]
        rows += _both_layers(key, answers, captions)
    sheet(out / "figure6.png", rows, 130)


def pictures(real: str) -> None:
    """Draw Figures 1, 3, 5 and 6: of the real objects in build, of the staged objects in docs."""
    stage = staged()
    run("staged_l2", stage, ("retinex_gray", "retinex_color", "weiss", "weiss_retinex", *LEARNED), ["lmse"])
    run("staged_l1", stage, [f"retinex_color({COLOUR}, norm=l1)"], ["lmse"])
    names = build("world", stage).object.objects
    for world, l2, l1, three, out in (
        (stage, "staged_l2", "staged_l1", names[1:4], FIGURES),
        (real, "mit", "l1", ("raccoon", "box", "turtle"), BUILD / "figures"),
    ):
        components(world, out)
        figure5(l2, three, out)
        figure6(l2, l1, three[:1], out)


def page(root: str, parity: bool) -> str:
    """The text of docs/results/intrinsic.md; `parity` adds slow columns: L1 of all algorithms and as released."""
    mit = run("mit", root, (*CLASSICAL, *LEARNED, *CONSTANT), ["lmse"], controls=True)
    sizes, (table_of_spread, compared) = windows(root), spread(root)
    original = run("original", root[:-1] + ", image=original)", CLASSICAL, ["lmse"])
    held_out = learned(root)
    starts = [start for name, start in FIXED.items() if parity or name in ("retinex_color", "weiss")]
    l1 = run("l1", root, [f"{start}{', ' * (not start.endswith('('))}norm=l1)" for start in starts], ["lmse"])
    irls = run("irls", root, [f"retinex_color({COLOUR}, norm=l1_irls)"], ["lmse"]) if parity else {}
    pictures(root)
    captured = kept("capture", capture, lambda: capture.markdown(capture.study(scenes=SCENES, seed=UNSEEN)))
    both = {key: (value, values("l1", "retinex_color")[key]) for key, value in values("mit", "retinex_color").items()}
    pairs(FIGURES / "figure6_objects.svg", "LMSE of colour Retinex", ("L2", "L1"), both)
    parts = {
        "MADE": made(("numpy", "scipy"), f"seed 0 of runs and {SEED} of staged scenes"),
        "TABLE": report("mit"),
        "FIGURE4": figure4(mit),
        "L1": l1_table(mit, l1, irls),
        "BETTER": str(sum(b < a for a, b in both.values())),
        "WINDOWS": sizes,
        "SPECULAR": specular(mit, original),
        "SPREAD": table_of_spread,
        "AGAINST": compared,
        "LEARNED": held_out,
        "CAPTURE": captured,
        "SCENES": str(SCENES),
        "STAGE": STAGE,
        "SEED": str(SEED),
        "UNSEEN": str(UNSEEN),
        "STAGED": str(STAGED),
        "STAGED_TABLE": table(["algorithm", "LMSE", "mean rank"], staged_rows()),
    }
    return filled(Path(__file__).with_name("page.md"), parts)


def staged_rows() -> list[list[str]]:
    """A row with the scores of every method on the staged objects."""
    cells = json.loads((BUILD / "staged_l2" / "summary.json").read_text())["cells"]
    return [[c["method"].rpartition("/")[2], f"{mean(c):.4f}", f"{c['mean_rank']:.2f}"] for c in cells]


def main() -> None:
    """Write the page and its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", help="the folder of MIT Intrinsic Images")
    root = Path(parser.parse_args().root).resolve()
    for parity in (False, True):  # first write the page without its slowest column
        write_page(PAGE, page(f"mit_intrinsic(root={root})", parity))


if __name__ == "__main__":
    main()
