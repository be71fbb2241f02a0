"""Results on FunnyBirds, for `scripts/reproduce funnybirds`: every number is read from rows, none is typed.

Runs are kept in build/reproduce/funnybirds and taken up again; what is there is not computed again.
"""

import base64
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scipy.stats import spearmanr

from diorama.adapt.methods import explain
from diorama.core.answers import Answer, Heatmap, Mask
from diorama.core.cases import Panel
from diorama.core.catalogue import build
from diorama.core.contracts import scene_at
from diorama.core.plan import Plan
from diorama.core.run import create, open_run
from diorama.io.images import quantise
from diorama.io.pictures import coloured_parts, diverging
from diorama.launch.local import launch
from diorama.metrics.funnybirds import minimal_sets
from diorama.protocols.parts.importance import dilation_at, elements, important_parts
from diorama.report.summary import document, read_results
from studies.figures import sheet
from studies.page_kit import made, table

HOME = Path(__file__).resolve().parents[2]
BUILD, PAGE = HOME / "build" / "reproduce" / "funnybirds", HOME / "docs" / "results" / "funnybirds.md"
FIGURES = PAGE.with_suffix("")
FAST = ("input_x_gradient", "integrated_gradients", "integrated_gradients_abs", "grad_cam", "saliency", "lrp")
SLOW = ("rise", "lime", "smoothgrad", "occlusion")
PROTOCOLS = ("funnybirds", "funnybirds(variant=published)")
COLUMNS = ("a", "bi", "csdc", "pc", "dc", "d", "sd", "ts", "com", "cor", "con", "mx")
SHOWN = ("a", "bi", "com", "cor", "con", "mx")
#: Birds for the fast methods and for the slow ones.
BIRDS = {"birds_resnet": (500, 48), "birds_vgg": (500, 24), "birds_cnn": (100, 8)}
SEED = 0
PROCESSES = int(os.environ.get("DIORAMA_PROCESSES", "2"))
Cells = list[dict[str, Any]]


def run(network: str) -> Cells:
    """The cells of a network: the fast methods with controls on all birds, the slow ones on fewer."""
    found: Cells = []
    many, few = BIRDS[network]
    for name, methods, cases, controls in (("fast", FAST, many, True), ("slow", SLOW, few, False)):
        out = BUILD / f"{name}-{network}"
        plan = Plan(["birds"], list(methods), list(PROTOCOLS), [network], cases, SEED, controls)
        launch(create(out, plan), PROCESSES)  # without a gallery, which explains once more
        found += document(read_results(out))["cells"]
    return found


def short(cell: dict[str, Any]) -> str:
    """A method's name without its track."""
    return str(cell["method"]).rpartition("/")[2]


def value(cell: dict[str, Any], metric: str) -> float | None:
    """The mean of a metric; None where it is undefined."""
    return cell["summary"][metric]["mean"] if metric in cell["summary"] else None


def score(cell: dict[str, Any], metric: str) -> str:
    """A score as .92 with the paper's in brackets where it has one."""
    ours, paper = value(cell, metric), (cell["paper"] or {}).get(metric)
    shown = "–" if ours is None else _digits(ours)
    return shown if paper is None else f"{shown} ({_digits(paper)})"


def _digits(number: float) -> str:
    return f"{number:.2f}".replace("0.", ".", 1) if number < 0.995 else "1"


def scores(cells: Cells, protocol: str) -> str:
    """Table 2 for one network and variant."""
    mine = [c for c in cells if c["protocol"] == protocol and c["control"] != "dose"]
    rows = [[short(c), str(c["cases"]), *(score(c, m) for m in COLUMNS), interval(c, "mx")] for c in mine]
    return table(["method", "birds", *COLUMNS, "mx, 95 %"], rows)


def interval(cell: dict[str, Any], metric: str) -> str:
    """The bootstrap interval of a metric."""
    found = cell["summary"].get(metric, {})
    return f"{_digits(found['lo'])}–{_digits(found['hi'])}" if found.get("lo") is not None else "–"


def orders(cells: dict[str, Cells]) -> str:
    """Spearman's ρ between our order of the paper's methods and the paper's, for every score and variant."""
    rows = []
    for network, found in cells.items():
        for protocol in PROTOCOLS:
            both = [c for c in found if c["protocol"] == protocol and c["paper"]]
            if both:
                rows.append([network, both[0]["variant"], *(_order(both, m) for m in COLUMNS[2:])])
    return table(["network", "variant", *COLUMNS[2:]], rows)


def _order(cells: Cells, metric: str) -> str:
    pairs = [(value(c, metric), c["paper"][metric]) for c in cells if value(c, metric) is not None]
    ours, paper = np.array(pairs, float).T
    rho = spearmanr(ours, paper).statistic if np.ptp(ours) and np.ptp(paper) else np.nan
    return "–" if np.isnan(rho) else f"{rho:+.2f} (n={len(pairs)})"


def doses(cells: Cells) -> str:
    """How the scores fall as random importance is blended into the true one."""
    cell = next(c for c in cells if c["control"] == "dose" and c["variant"] == "corrected")
    shown = [m for m in ("csdc", "pc", "dc", "d", "sd", "ts") if m in cell["curve"]]
    rows = [[f"{dose}", *(_digits(cell["curve"][m][i]["mean"]) for m in shown)] for i, dose in enumerate(cell["doses"])]
    return table(["share of random", *shown], rows)


def standard_errors(network: str) -> str:
    """The bounds on RISE's standard error that stand beside its rows, and how often each occurs."""
    opened = open_run(BUILD / f"slow-{network}")
    cell = next(c for c in opened.cells if c.method and c.method.name.endswith("rise"))
    notes = (re.search(r"standard error[^;]*", row.reason) for row in opened.rows(cell) if row.metric == "sd")
    counts = Counter(note.group(0) for note in notes if note)
    return "; ".join(f"{text}: {n} birds" for text, n in counts.most_common())


def asked(method: str, network: str, index: int) -> tuple[Any, Answer]:
    """A bird's frame and what a method says about its true class."""
    world = build("world", "birds").object
    frame = world.render([scene_at(world, SEED, index)[1]])[0]
    label = np.array([frame.truth["label"]])
    answer = explain(build("method", method).object, build("model", network).object, frame.srgb()[None], label)[0]
    return frame, answer


def shown(answer: Answer, image: np.ndarray) -> np.ndarray:
    """A heat map or binary map over the image."""
    assert isinstance(answer, Heatmap | Mask)
    return diverging(np.asarray(answer.values, float), image)


def figure3(cells: Cells, network: str, index: int = 0) -> None:
    """A, BI, Com, Cor, Con and mX of every method as bars, beside an example map; one SVG."""
    mine = sorted(
        (c for c in cells if c["protocol"] == "funnybirds" and not c["control"]), key=lambda c: -(value(c, "mx") or 0)
    )
    parts, left, step = [], 210, 88
    for i, metric in enumerate(SHOWN):
        parts.append(_text(left + i * step, 20, metric))
    for j, cell in enumerate(mine):
        y = 30 + 76 * j
        frame, answer = asked(short(cell), network, index)
        parts += [_text(78, y + 40, _brief(short(cell))), _picture(4, y, shown(answer, frame.srgb()))]
        for i, metric in enumerate(SHOWN):
            height = 60 * (value(cell, metric) or 0.0)
            parts.append(f'<rect x="{left + i * step}" y="{y + 66 - height:.1f}" width="40" height="{height:.1f}"/>')
            parts.append(_text(left + i * step + 44, y + 62, score(cell, metric).partition(" ")[0]))
    size = f'viewBox="0 0 {left + len(SHOWN) * step} {40 + 76 * len(mine)}" font-family="sans-serif" font-size="13"'
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} fill="#0072b2"><rect width="100%" height="100%" fill="#fff"/>'
    )
    (FIGURES / "figure3.svg").write_text(text + "".join(parts) + "</svg>\n", encoding="utf-8")


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x}" y="{y}" fill="#222">{text}</text>'


def _picture(x: float, y: float, image: np.ndarray) -> str:
    data = cv2.imencode(".png", quantise(image.astype(np.float32), 8)[:, :, ::-1])[1].tobytes()
    return f'<image x="{x}" y="{y}" width="70" height="70" href="data:image/png;base64,{base64.b64encode(data).decode()}"/>'


def figure7(birds: Sequence[int] = (0, 3)) -> None:
    """The maps of all methods and networks for the same birds."""
    rows = []
    for index in birds:
        for network in BIRDS:
            found = [asked(method, network, index) for method in (*FAST, *SLOW)]
            image = Panel("image", found[0][0].srgb())
            maps = [Panel(_brief(m), shown(a, f.srgb())) for m, (f, a) in zip((*FAST, *SLOW), found, strict=True)]
            rows.append((network.removeprefix("birds_"), [image, *maps]))
    sheet(FIGURES / "figure7.png", rows, 100)


def _brief(method: str) -> str:
    return method.replace("integrated_gradients", "IG").replace("input_x_gradient", "IxG")


def figure9(network: str, birds: Sequence[int] = (0, 1, 2, 3)) -> None:
    """Input, explanation, the parts it calls important at t = 0.02, and a sufficient part set."""
    world = build("world", "birds").object
    rows = []
    for index in birds:
        frame, answer = asked("integrated_gradients", network, index)
        assert isinstance(answer, Heatmap)
        ids, width = [world.part_ids[p] for p in world.part_names], dilation_at(frame.image.shape[0], 5)
        found = important_parts(answer, elements(frame.truth["parts"], ids, width), np.array([0.02]), False)[0]
        sets = minimal_sets([dict(c) for c in world.classes], int(frame.truth["label"]))
        best = max(sets, key=lambda s: sum(found[i] for i in range(5) if s >> i & 1) / s.bit_count())
        true = np.array([bool(best >> i & 1) for i in range(5)])
        panels = [Panel("input", frame.srgb()), Panel("IG", shown(answer, frame.srgb()))]
        panels += [
            Panel(t, _only(frame, ids, f)) for t, f in (("important, t = 0.02", found), ("sufficient set", true))
        ]
        rows.append((f"bird {index}", panels))
    sheet(FIGURES / "figure9.png", rows, 128)


def _only(frame: Any, ids: Sequence[tuple[int, ...]], kept: np.ndarray) -> np.ndarray:
    """The part map with only some parts in colour."""
    parts = np.asarray(frame.truth["parts"])
    wanted = np.isin(parts, [i for of_part, keep in zip(ids, kept, strict=True) if keep for i in of_part])
    return coloured_parts(np.where(wanted, parts, (parts > 0).astype(parts.dtype)))


def main() -> None:
    """Write the page and its figures."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    cells = {network: run(network) for network in BIRDS}
    figure3(cells["birds_resnet"], "birds_resnet")
    figure7()
    figure9("birds_resnet")
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    tables = "\n\n".join(
        f"### {network}, {'corrected' if protocol == 'funnybirds' else 'published'}\n\n{scores(found, protocol)}"
        for network, found in cells.items()
        for protocol in PROTOCOLS
    )
    page = text.format(
        made=made(("torch", "numpy"), f"seed {SEED}"),
        seed=SEED,
        tables=tables,
        orders=orders(cells),
        doses=doses(cells["birds_resnet"]),
        errors="\n".join(f"- {network}: {standard_errors(network)}" for network in BIRDS),
    )
    PAGE.write_text(page, encoding="utf-8")
    print(PAGE.relative_to(HOME))


if __name__ == "__main__":
    main()
