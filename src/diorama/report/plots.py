"""Figures for papers, drawn by matplotlib: methods, dose curves, cases; and the pictures of a single case."""

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from diorama.io.pictures import coloured_parts, diverging
from diorama.report.sections import Line, Section
from diorama.report.verdicts import dose_curve, equivalent_dose
from diorama.report.words import names, title, words

#: Okabe and Ito's colours, which suit all kinds of colour vision; controls are gray.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6b4fa0")
CONTROL = "#6b737d"
#: Inches: the width of a paper's column, and the height per method.
COLUMN, STEP = 3.4, 0.26
#: Text in PDF and SVG stays text, so that it can be searched and edited.
_STYLE: Any = {
    "font.size": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}


class PaperFigure(Figure):
    """A figure that notebooks display; `savefig("x.pdf")`, or .svg, or .png."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save without margins, in the format of the file's ending."""
        with matplotlib.rc_context(_STYLE):
            super().savefig(fname, **{"bbox_inches": "tight", "dpi": 200, **options})

    def _repr_png_(self) -> bytes:
        from io import BytesIO

        out = BytesIO()
        self.savefig(out, format="png", facecolor="white")
        return out.getvalue()


class Plots:
    """The figures of some results, one panel for each world, model and protocol; a method has one colour in all of them."""

    def __init__(self, sections: Sequence[Section]):
        self.sections = [section for section in sections if section.lines]
        methods = dict.fromkeys(line.name for section in self.sections for line in section.methods)
        self._colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(methods)}
        self._many_models = len({section.model for section in self.sections}) > 1

    @property
    def has_doses(self) -> bool:
        """Whether any section has a dose curve."""
        return any(dose_curve(section) for section in self.sections)

    def methods(self) -> PaperFigure:
        """Every method's mean with its 95 % interval, single cases as faint dots, controls in gray."""
        heights = [STEP * len(_scored(section)) for section in self.sections]
        return self._panels(self.sections, heights, self._methods)

    def doses(self) -> PaperFigure:
        """The score against the planted error; horizontal lines are the methods, rings mark the equivalent dose."""
        found = [section for section in self.sections if dose_curve(section)]
        return self._panels(found, [2.0] * len(found), self._doses, "no dose curve: call evaluate with controls=True")

    def cases(self) -> PaperFigure:
        """Every case's value for every method, joined by a line: shows if methods differ on all cases or on a few."""
        found = [section for section in self.sections if any(line.name for line in section.methods)]
        return self._panels(found, [2.0] * len(found), self._cases, "no methods")

    def _panels(
        self, sections: Sequence[Section], heights: Sequence[float], draw: "Draw", empty: str = "no values"
    ) -> PaperFigure:
        with matplotlib.rc_context(_STYLE):
            tall = [height + 0.75 for height in heights] or [1.0]
            figure = PaperFigure(figsize=(COLUMN, sum(tall)), layout="constrained")
            axes = figure.subplots(max(len(sections), 1), squeeze=False, gridspec_kw={"height_ratios": tall})[:, 0]
            for axis, section in zip(axes, sections, strict=False):
                axis.set_title(title(section, self._many_models), fontsize=8)
                draw(axis, section)
            if not sections:
                axes[0].axis("off")
                axes[0].text(0.5, 0.5, empty, ha="center", va="center")
        return figure

    def _colour(self, line: Line) -> str:
        return CONTROL if line.control else self._colours[line.name]

    def _methods(self, axis: Any, section: Section) -> None:
        lines = _scored(section)
        for place, line in enumerate(lines):
            colour, values = self._colour(line), list(line.values().values())
            dots = {"alpha": 0.3, "markersize": 3.2, "markeredgewidth": 0}
            axis.plot(values, np.full(len(values), place), "o", color=colour, **dots)
            if line.primary["lo"] is not None:
                axis.plot([line.primary["lo"], line.primary["hi"]], [place, place], color=colour, linewidth=1.4)
            axis.plot([line.mean], [place], "o", color=colour, markersize=4.5)
        axis.set_yticks(range(len(lines)), [name or words(section.model) for name in names(lines)])
        axis.set_ylim(len(lines) - 0.4, -0.6)
        axis.set_xlabel(f"{section.metric.replace('_', ' ')} ({section.direction} is better)")
        axis.grid(axis="x", color="#dddddd", linewidth=0.5)

    def _doses(self, axis: Any, section: Section) -> None:
        curve = dose_curve(section)
        assert curve is not None
        sure = [(dose, point) for dose, point in zip(curve.doses, curve.points, strict=True) if point["lo"] is not None]
        ends = [[point[end] for _, point in sure] for end in ("lo", "hi")]
        axis.fill_between([dose for dose, _ in sure], *ends, color="#dddddd", linewidth=0)
        axis.plot(curve.doses, curve.means, "k.-", linewidth=1.2, markersize=4)
        lines = [line for line in section.methods if line.mean is not None]
        for line, name in zip(lines, names(lines), strict=True):
            axis.axhline(line.mean, color=self._colour(line), linewidth=1, linestyle="--", label=name)
            dose = equivalent_dose(curve, line.mean or 0.0, section.direction)
            if dose is not None:
                axis.plot([dose], [line.mean], "o", color=self._colour(line), markerfacecolor="white", markersize=5)
        axis.set_xlabel(section.some.manifest["dose_name"] or "dose", wrap=True)
        axis.set_ylabel(section.metric.replace("_", " "))
        if lines:
            axis.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))

    def _cases(self, axis: Any, section: Section) -> None:
        lines = section.methods
        metric = lines[0].cell.case_metric
        table = [line.values(metric) for line in lines]
        for case in dict.fromkeys(case for values in table for case in values):
            axis.plot(range(len(lines)), [values.get(case, np.nan) for values in table], color="#999999", linewidth=0.4)
        for place, (values, line) in enumerate(zip(table, lines, strict=True)):
            axis.plot(np.full(len(values), place), list(values.values()), ".", color=self._colour(line), markersize=4)
        axis.set_xticks(range(len(lines)), names(lines), rotation=20, ha="right")
        axis.set_xlim(-0.4, len(lines) - 0.6)
        axis.set_ylabel(metric.replace("_", " "))


Draw = Callable[[Any, Section], None]


def _scored(section: Section) -> list[Line]:
    return [line for line in section.lines if line.mean is not None]


def case_figure(name: str, scores: str, frame: np.ndarray | None, truth: dict[str, Any], answer: Any) -> PaperFigure:
    """The frame of a case, its truth and the answer side by side."""
    pictures = [*([("image", frame)] if frame is not None else []), *_true(truth), *_answered(answer, frame)]
    with matplotlib.rc_context(_STYLE):
        figure = PaperFigure(figsize=(1.6 * max(len(pictures), 2), 2.1), layout="constrained")
        figure.suptitle(f"{name}\n{scores}", fontsize=8)
        places = figure.subplots(1, max(len(pictures), 1), squeeze=False)[0]
        for axis, (caption, picture) in zip(places, pictures, strict=True):
            image = picture.ndim == 3
            axis.imshow(np.clip(picture, 0, 1) if image else picture, aspect=None if image else "auto")
            axis.set_title(caption, fontsize=7)
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(False)
    return figure


def _true(truth: dict[str, Any]) -> list[tuple[str, np.ndarray]]:
    """Those arrays of the truth that can be shown as pictures."""
    found = []
    if "parts" in truth:
        found.append(("true parts", coloured_parts(truth["parts"])))
    for name in ("reflectance", "shading", "cells"):
        if isinstance(truth.get(name), np.ndarray):
            found.append((f"true {name}", _layer(truth[name])))
    if isinstance(truth.get("factors"), np.ndarray):
        found.append(("true factors of the first frames", truth["factors"][:64]))
    return found


def _answered(answer: Any, frame: np.ndarray | None) -> list[tuple[str, np.ndarray]]:
    if isinstance(answer, dict):
        return [(name, _layer(array)) for name, array in answer.items() if array.ndim == 3]
    if not isinstance(answer, np.ndarray) or answer.ndim < 2:
        return []
    if frame is None or answer.shape[:2] != frame.shape[:2]:
        return [("codes of the first frames", answer[:64])]
    return [("answer", diverging(answer, frame))]


def _layer(array: np.ndarray) -> np.ndarray:
    """A layer as a picture: its 99th percentile is white, gamma 2.2."""
    values = np.repeat(array[:, :, :1], 3, axis=2) if array.ndim == 3 and array.shape[2] == 1 else array
    if values.ndim == 2:
        return coloured_parts(values) if values.dtype.kind in "iu" else np.repeat(values[:, :, None], 3, axis=2)
    top = max(float(np.percentile(values, 99)), 1e-6)
    return np.clip(values / top, 0, 1) ** (1 / 2.2)
