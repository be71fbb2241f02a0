"""The dose study of `scripts/reproduce concepts`: which score follows a leak of growing size? Computed from rows alone.

For every scene Spearman's rank correlation ρ between the dose α and a score is computed; the score's sign is chosen so that
more is worse. A score that follows the dose has ρ = 1 on every scene; a score that is the same at all doses has ρ = 0. Doses
at which a score is undefined are left out; a scene with fewer than four others has no ρ. The pooled ρ is that of the score
of all scenes together (for the published CSM the ratio of averages); its interval is a bootstrap over scenes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from diorama.core.rows import Row
from diorama.core.scene import rng
from diorama.metrics.intervals import interval
from studies.page_kit import svg_line, svg_text, table, write_svg

#: Without a leak there is no residual, and CSM is undefined: α = 0 is shown, but left out of all correlations.
ALPHAS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
INTO = ("reflectance", "shading")
#: Doses that a scene needs to have a rank correlation.
LEAST = 4
Rows = Sequence[Row]


@dataclass(frozen=True)
class Reading:
    """How a score is computed from rows: its protocol, and a function `worse` of the values of its metrics; more is worse.

    With `ratio` it is pooled as a ratio of averages, as in the paper, and not as an average.
    """

    name: str
    protocol: str
    metrics: dict[str, tuple[str, ...]]
    worse: Callable[..., float]
    ratio: bool = False

    def pooled(self, raw: np.ndarray) -> np.ndarray:
        """The score of several scenes (scenes, doses, metrics) at every dose where at least half of them have one."""
        single = self.each(raw)
        shares = (~np.isnan(raw)).mean(axis=0).min(axis=1) if self.ratio else (~np.isnan(single)).mean(axis=0)
        many = shares >= 0.5
        scores = np.full(len(ALPHAS), np.nan)
        if self.ratio:
            above, below = np.nanmean(raw[:, many], axis=0).T
            scores[many] = np.where(below > 0, -above / np.maximum(below, 1e-12), np.nan)
        else:
            scores[many] = np.nanmean(single[:, many], axis=0)
        return scores

    def each(self, raw: np.ndarray) -> np.ndarray:
        """The score of every scene at every dose (scenes, doses); NaN where a metric is undefined."""
        return np.array([[self.worse(*v) if not np.isnan(v).any() else np.nan for v in scene] for scene in raw])


def _ratio(above: float, below: float) -> float:
    """The published CSM, negated; undefined if the denominator is 0."""
    return -above / below if below > 0 else np.nan


def _smooth(tests: int) -> Callable[[float, float], float]:
    """The corrected CSM, negated: a log ratio of smoothed counts of tests."""
    return lambda above, below: -float(np.log((above * tests + 0.5) / (below * tests + 0.5)))


def readings(published: str, corrected: str, tests: int, others: Sequence[str] = ()) -> list[Reading]:
    """All scores; of CSM the one that should detect the leak: CSM_R for a leak into reflectance, CSM_S into shading.

    `others` are further settings of the published CSM.
    """
    csm: dict[str, tuple[str, ...]] = {"reflectance": ("s_i", "r_i"), "shading": ("r_a", "s_a")}
    invariance: dict[str, tuple[str, ...]] = {into: (f"invariance_{into}",) for into in INTO}
    standard = (("MSE", "si_mse"), ("LMSE", "lmse"), ("DSSIM", "dssim"))
    return [
        Reading("CSM published", published, csm, _ratio, ratio=True),
        *(Reading(f"CSM {more}", more, csm, _ratio, ratio=True) for more in others),
        Reading("CSM corrected", corrected, csm, _smooth(tests)),
        Reading("invariance", "response_invariance", invariance, float),
        *(Reading(name, protocol, dict.fromkeys(INTO, (protocol,)), float) for name, protocol in standard),
    ]


def table_of(reading: Reading, rows: Mapping[float, Rows], into: str) -> np.ndarray:
    """The values of the reading's metrics (cases, doses, metrics); NaN where a metric is undefined."""
    names = reading.metrics[into]
    known = {a: {(r.case, r.metric): r.value for r in some if r.status == "ok"} for a, some in rows.items()}
    excluded = {r.case for some in rows.values() for r in some if r.metric == names[0] and r.status == "excluded"}
    cases = [c for c in dict.fromkeys(r.case for some in rows.values() for r in some) if c not in excluded]
    values = [[[known.get(a, {}).get((c, n), np.nan) for n in names] for a in ALPHAS] for c in cases]
    return np.array(values, float).reshape(len(cases), len(ALPHAS), len(names))


def correlation(values: np.ndarray) -> float:
    """Spearman's ρ between α > 0 and a score; 0 if the score is the same at all doses, NaN if it has too few values."""
    leaking, doses = values[1:], np.array(ALPHAS[1:])
    known = ~np.isnan(leaking)
    if known.sum() < LEAST:
        return np.nan
    if np.ptp(leaking[known]) < 1e-12:
        return 0.0
    return float(spearmanr(doses[known], leaking[known]).statistic)


@dataclass(frozen=True)
class Followed:
    """How a score follows the dose: ρ of every scene that has one, the scores (scenes, doses), the pooled ρ as text."""

    name: str
    rho: np.ndarray
    scenes: int
    values: np.ndarray
    pooled: str

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval of the mean ρ, cut at −1 and 1; None if there is none."""
        bounds = interval(self.rho)
        return None if bounds.lo is None or bounds.hi is None else (max(bounds.lo, -1.0), min(bounds.hi, 1.0))

    @property
    def text(self) -> str:
        """The mean of ρ and its interval."""
        if self.ends is None:
            return "undefined"
        return "{:+.2f} [{:+.2f}, {:+.2f}]".format(self.rho.mean(), *self.ends).replace("-", "−")

    @property
    def verdict(self) -> str:
        """In a word, how surely a scene's score follows the dose."""
        if self.ends is None:
            return "undefined"
        lo, hi = self.ends
        if lo >= 0.9:
            return "follows"
        return "mostly" if lo > 0.5 else "against it" if hi < 0 else "weakly" if lo > 0 else "no"


def follow(reading: Reading, rows: Mapping[float, Rows], into: str) -> Followed:
    """How one score follows one kind of leak."""
    raw = table_of(reading, rows, into)
    values = reading.each(raw).reshape(len(raw), len(ALPHAS))
    rho = np.array([correlation(v) for v in values])
    return Followed(reading.name, rho[~np.isnan(rho)], len(rho), values, _pooled(reading, raw))


def _pooled(reading: Reading, raw: np.ndarray) -> str:
    if not len(raw):
        return "undefined"
    drawn = rng("bootstrap", "doses", len(raw)).integers(0, len(raw), (200, len(raw)))
    rho, draws = correlation(reading.pooled(raw)), np.array([correlation(reading.pooled(raw[d])) for d in drawn])
    if np.isnan(rho) or np.isnan(draws).mean() > 0.5:
        return "undefined"
    lo, hi = np.quantile(draws[~np.isnan(draws)], [0.025, 0.975])
    return f"{rho:+.2f} [{lo:+.2f}, {hi:+.2f}]".replace("-", "−")


def report(found: dict[str, list[Followed]]) -> str:
    """The table of rank correlations."""
    rows = []
    for into, several in found.items():
        other = {"reflectance": "shading", "shading": "albedo"}[into]
        for f in several:
            share = f"{(f.rho >= 0.9).mean():.0%}" if len(f.rho) else "–"
            scenes = f"{len(f.rho)} of {f.scenes}"
            rows.append([f"{other} into {into}", f.name, scenes, f.text, share, f.pooled, f.verdict])
    heads = ["leak", "score", "scenes with ρ", "mean ρ with the dose", "scenes with ρ ≥ 0.9", "pooled ρ", "follows it?"]
    return table(heads, rows, text=2)


_WIDE, _HIGH, _LEFT, _GAP, _TOP = 168, 130, 92, 18, 74
_GOOD, _BAD, _SOFT = "#0072b2", "#d55e00", "#9aa4ae"


def figure(found: dict[str, list[Followed]], path: Path) -> None:
    """Draw small multiples: a row for each leak, a panel for each score; scenes thin, their median thick, α = 0 marked.

    Every scene's line is scaled to 0 … 1, so that a score which follows the dose rises to the right.
    """
    columns = max(map(len, found.values()))
    legend = (
        "The score of each scene (more is worse), scaled from its lowest value (0) to its highest (1)."
        " Thin: scenes. Thick: their median."
    )
    head = "Which score follows a planted leak? A score that does rises from left to right."
    parts = [svg_text(12, 22, head, 15, weight="bold"), svg_text(12, 42, legend, 12)]
    for row, (into, several) in enumerate(found.items()):
        y = _TOP + 18 + row * (_HIGH + 84)
        other = {"reflectance": "shading", "shading": "albedo"}[into]
        for i, word in enumerate((other, "leaks into", into)):
            parts.append(svg_text(12, y + 50 + 16 * i, word, 12, weight="bold"))
        for column, one in enumerate(several):
            parts += _panel(one, _LEFT + column * (_WIDE + _GAP), y)
    width, height = _LEFT + columns * (_WIDE + _GAP) + 8, _TOP + len(found) * (_HIGH + 84) + 6
    write_svg(path, "Scores against the dose of a planted leak", width, height, parts)


def _panel(one: Followed, x0: float, y0: float) -> list[str]:
    ink = _GOOD if one.verdict in ("follows", "mostly") else _BAD
    parts = [svg_text(x0, y0 - 20, one.name, 13, weight="bold"), svg_text(x0, y0 - 5, f"ρ {one.text}", 11, ink)]
    for v in (0.0, 0.5, 1.0):
        y = y0 + _HIGH * (1 - v)
        parts.append(f'<line x1="{x0}" x2="{x0 + _WIDE}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e3e6e9"/>')
    scaled = np.array([_unit(v) for v in one.values if _unit(v) is not None])
    for line in scaled:
        parts.append(_line(line, x0, y0, _SOFT, 0.8, 0.45))
    if len(scaled):
        known = (~np.isnan(scaled)).mean(axis=0) >= 0.5
        middle = np.full(len(ALPHAS), np.nan)
        middle[known] = np.nanmedian(scaled[:, known], axis=0)
        parts.append(_line(middle, x0, y0, ink, 3.0, 1.0))
    if np.isnan(one.values[:, 0]).all():
        parts.append(f'<text x="{x0}" y="{y0 + _HIGH + 31}" font-size="11" fill="#555">✕ undefined at the truth</text>')
    else:
        parts.append(f'<circle cx="{x0}" cy="{y0 + _HIGH}" r="4.5" fill="#fff" stroke="{ink}" stroke-width="2"/>')
    for a, label in ((0.0, "truth"), (0.5, "α = 0.5"), (1.0, "1")):
        anchor = "start" if a == 0 else "end" if a == 1 else "middle"
        parts.append(svg_text(x0 + a * _WIDE, y0 + _HIGH + 16, label, 11, "#444", anchor))
    return parts


def _unit(values: np.ndarray) -> np.ndarray | None:
    """A scene's values scaled to 0 … 1; all ½ if they are equal, None if there are too few."""
    if (~np.isnan(values[1:])).sum() < LEAST:
        return None
    low, high = np.nanmin(values), np.nanmax(values)
    return np.where(np.isnan(values), np.nan, 0.5 if high - low < 1e-12 else (values - low) / max(high - low, 1e-12))


def _line(values: np.ndarray, x0: float, y0: float, ink: str, thick: float, alpha: float) -> str:
    known = ((a, v) for a, v in zip(ALPHAS, values, strict=True) if not np.isnan(v))
    return svg_line(((x0 + a * _WIDE, y0 + _HIGH * (1 - v)) for a, v in known), ink, thick, alpha)
