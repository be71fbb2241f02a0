"""The first picture: a bird, its parts, and three explanations beside the measured effect of each part. scripts/picture"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from diorama.api import evaluate
from diorama.io.pictures import coloured_parts, diverging
from diorama.report.gallery import Picture, select

METHODS, CASES = ("grad_cam", "input_x_gradient", "saliency"), 12
EXPLAINED, MEASURED = "#e69f00", "#0072b2"


def draw(out: Path) -> Path:
    """Explain some birds with three methods, and draw the bird on which the scores differ most."""
    with TemporaryDirectory() as folder:
        result = evaluate(
            METHODS, model="birds_cnn", on="birds", by="single_deletion", cases=CASES, out=folder, keep="maps"
        )
        result.illustrate()
        (section,) = result.sections
        shown = select([section], 10**9).shown[0]
        case = max(shown, key=lambda one: np.ptp([_score(picture) for _, picture, _ in one.pictures]))
        strips = {picture.method: picture for _, picture, _ in case.pictures}
        means = {line.name: line.mean for line in section.methods}
        return _compose(out, {m: result.case(m, case.case) for m in METHODS}, strips, means)


def _score(picture: Picture) -> float:
    return float(picture.value.rpartition(" ")[2])


def _compose(out: Path, cases: dict[str, Any], strips: dict[str, Picture], means: dict[str, float | None]) -> Path:
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    axes = figure.subplots(2, 2 + len(cases), height_ratios=[3, 1.5])
    first = next(iter(cases.values()))
    _image(axes[0, 0], first.frame, "a staged bird")
    _image(axes[0, 1], coloured_parts(first.truth["parts"]), "its parts, known exactly")
    for axis in axes[1, :2]:
        axis.axis("off")
    axes[1, 0].text(
        0, 0.5, "Remove each part in turn:\nhow far does the network's\nlogit really drop?", va="center", color=MEASURED
    )
    axes[1, 1].text(
        0, 0.5, "Ask each explanation:\nhow much importance does\nit put on the part?", va="center", color=EXPLAINED
    )
    best = max(means, key=lambda m: means[m] or 0.0)
    for column, (method, case) in enumerate(cases.items(), 2):
        _image(axes[0, column], diverging(case.answer, case.frame), method)
        _bars(axes[1, column], strips[method])
        mean = means[method]
        verdict = f"here {_score(strips[method]):.2f}, over {CASES} birds {mean:.2f}" if mean is not None else ""
        axes[1, column].set_xlabel(verdict, fontweight="bold" if method == best else "normal")
    figure.savefig(out, dpi=100, facecolor="white", bbox_inches="tight", pad_inches=0.08)
    return out


def _image(axis: Any, picture: np.ndarray, title: str) -> None:
    axis.imshow(np.clip(picture, 0, 1))
    axis.set_title(title, fontsize=11)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def _bars(axis: Any, strip: Picture) -> None:
    """The importance of each part beside its measured effect, each relative to its largest value."""
    matrix = next(filter(None, strip.matrices))
    x = np.arange(len(matrix["columns"]))
    for shift, values, colour in zip((-0.2, 0.2), matrix["values"], (EXPLAINED, MEASURED), strict=True):
        axis.bar(x + shift, values, 0.38, color=colour)
    axis.set_xticks(x, matrix["columns"], fontsize=9)
    axis.set_yticks([])
    axis.axhline(0, color="#555555", linewidth=0.8)
    axis.spines[["top", "right", "left"]].set_visible(False)


if __name__ == "__main__":
    print(draw(Path(sys.argv[1])))
