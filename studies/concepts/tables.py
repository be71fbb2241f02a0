"""The tables of the page on concept sensitivity, and the sentences that summarise them, made from rows alone."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from diorama.core.rows import Row
from diorama.core.spec import parse
from diorama.core.summary import Summary, summarise
from diorama.protocols.concepts.csm.summary import condense
from studies.concepts import published as paper
from studies.page_kit import table, with_interval

#: Our networks and their families.
FAMILY = {"iid_timelapse": "IIWW", "iid_translation": "USI3D", "iid_supervised": "CGIID"}
CLASSICAL = ("retinex_color(brightness=1.0, chroma=0.075)", "constant(layer=reflectance)", "constant(layer=shading)")
NAMES = {CLASSICAL[0]: "colour Retinex", CLASSICAL[1]: "R constant", CLASSICAL[2]: "S constant"}
ORDER = {"csm_s": ("USI3D", "IIWW", "CGIID"), "csm_r": ("CGIID", "IIWW", "USI3D")}
INVARIANCE, PUBLISHED, CORRECTED = "response_invariance", "published", "corrected"
#: Further settings of the published CSM for the dose study: CGIntrinsics' logarithms, the author's SVM and floor.
CHOICES = {"published, log": ", transform=log", "published, linear_svm, floor 0.01": ", trainer=linear_svm, floor=0.01"}
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: Inner layers that all three networks have: the first, the middle and the last of the decoder.
LAYERS = ("decoder1", "decoder3", "decoder5")
NONE = Summary(None, None, None, 0, 0, 0, 0)
#: (protocol or variant, method) → rows
Found = dict[tuple[str, str], list[Row]]
_table = partial(table, text=99)
HEAD = [f"{score} {setting}" for score in ("CSM_S", "CSM_R") for setting in (*paper.SETTINGS, "overall")]


def ratios(rows: Sequence[Row], variant: str) -> dict[str, Summary]:
    """CSM_R and CSM_S over the rows of some sets; logarithms if `corrected`."""
    derived = condense(rows, "ratio_of_averages" if variant == PUBLISHED else None).derived
    return {name.removeprefix("log_"): summary for name, summary in derived.items()}


def _shown(summary: Summary | None, places: int = 2) -> str:
    known = summary or NONE
    return with_interval(known.mean, known.lo, known.hi, places).replace("-", "−")


def _named(method: str) -> str:
    return f"{method} ({FAMILY[method]}-like)" if method in FAMILY else NAMES.get(method, method)


def by_setting(found: dict[str, Found], variant: str, only: str = "") -> dict[str, dict[tuple[str, str], Summary]]:
    """(score, setting or overall) of every method, over the sets whose name contains `only`."""
    methods = list(dict.fromkeys(m for rows in found.values() for v, m in rows if v == variant))
    made: dict[str, dict[tuple[str, str], Summary]] = {}
    for method in methods:
        parts = {s: [r for r in rows.get((variant, method), []) if only in r.case] for s, rows in found.items()}
        parts["overall"] = [row for some in parts.values() for row in some]
        made[method] = {
            (score, s): summary for s, some in parts.items() if some for score, summary in ratios(some, variant).items()
        }
    return made


def table1(found: dict[str, Found], variant: str, extra: dict[str, tuple[str, str]]) -> str:
    """CSM by setting with WHDR and SAW AP; under `published` the paper's rows beside ours."""
    rows = []
    for method, cells in by_setting(found, variant).items():
        scores = [_shown(cells.get((s, k))) for s in ("csm_s", "csm_r") for k in (*paper.SETTINGS, "overall")]
        rows.append([_named(method), *scores, *(extra.get(method, ("–", "–")) if variant == PUBLISHED else ())])
    if variant == PUBLISHED:
        for name, (s, r, whdr, saw) in paper.TABLE1.items():
            rows.append([f"*{name}, the paper*", *(f"{v:g}" for v in (*s, *r, whdr, saw))])
    if variant == CORRECTED:
        return _table(["method", *(f"ln {name}" for name in HEAD)], rows)
    return _table(["method", *HEAD, "WHDR %", "SAW AP %"], rows)


def table2(found: dict[str, Found]) -> str:
    """CSM by temperature."""
    rows = []
    for t in paper.TEMPERATURES:
        for method, cells in by_setting(found, PUBLISHED, f"temp{t}").items():
            if method in FAMILY:
                scores = [_shown(cells.get((s, k))) for s in ("csm_s", "csm_r") for k in (*paper.SETTINGS, "overall")]
                rows.append([str(t), _named(method), *scores])
        for (at, name), (s, r) in paper.TABLE2.items():
            rows += [[str(t), f"*{name}, the paper*", *(f"{v:g}" for v in (*s, *r))]] if at == t else []
    return _table(["T", "method", *HEAD], rows)


def sensitivities(found: dict[str, Found], variant: str) -> str:
    """The four sensitivities, the number of sets that have them, and accuracy, stability and cosines of the CAVs."""
    rows = []
    for method in dict.fromkeys(m for some in found.values() for v, m in some if v == variant):
        mine = [row for some in found.values() for row in some.get((variant, method), [])]
        cells = []
        for metric in ("r_a", "s_a", "r_i", "s_i"):
            of = summarise(row for row in mine if row.metric == metric)
            cells.append(f"{_shown(of)} ({of.n_ok} of {of.n_ok + of.n_undefined})")
        for metric in ("accuracy_r", "accuracy_s", "stability_r", "stability_s", "cos_concepts", "cos_scenes"):
            of = summarise(row for row in mine if row.metric == metric)
            cells.append("–" if of.mean is None else f"{of.mean:.2f}".replace("-", "−"))
        rows.append([_named(method), *cells])
    head = ["R_Δa", "S_Δa", "R_Δi", "S_Δi", "accuracy R", "accuracy S", "stability R", "stability S"]
    head += ["cos Δa·Δi", "cos scenes"]
    return _table(["method", *head], rows)


def invariances(found: dict[str, Found]) -> str:
    """Response invariance of every method over the same sets."""
    rows = []
    for method in dict.fromkeys(m for some in found.values() for v, m in some if v == INVARIANCE):
        mine = [row for some in found.values() for row in some.get((INVARIANCE, method), [])]
        metrics = ("invariance_reflectance", "texture_reflectance", "invariance_shading", "texture_shading")
        rows.append([_named(method), *(_shown(summarise(r for r in mine if r.metric == m), 3) for m in metrics)])
    return _table(["method", "R̂ over Δi ↓", "texture of R̂", "Ŝ over Δa ↓", "texture of Ŝ"], rows)


def by_layer(rows: Found) -> str:
    """Both variants at inner layers, and whether `published` keeps the paper's order there."""
    made = []
    for layer in LAYERS:
        for method in FAMILY:
            cells = []
            for variant in (PUBLISHED, CORRECTED):
                mine = rows.get((f"{variant}, {layer}", method), [])
                found = ratios(mine, variant) if mine else {}
                ok = summarise(row for row in mine if row.metric in ("r_a", "s_a", "r_i", "s_i"))
                cells += [_shown(found.get(score)) for score in ORDER] + [f"{ok.n_ok} of {ok.n_ok + ok.n_undefined}"]
            made.append([layer, _named(method), *cells])
    table = _table(["layer", "method", "CSM_S", "CSM_R", "defined", "ln CSM_S", "ln CSM_R", "defined"], made)
    return "\n".join([table, "", *(_orders(rows, score, wanted) for score, wanted in ORDER.items())])


def _orders(rows: Found, score: str, wanted: tuple[str, ...]) -> str:
    """A sentence with the order of the networks by the published score at each layer."""
    orders = []
    for layer in LAYERS:
        at = f"{PUBLISHED}, {layer}"
        found = {f: ratios(rows.get((at, m), []), PUBLISHED)[score].mean for m, f in FAMILY.items()}
        if None in found.values():
            continue
        order = sorted(found, key=lambda name: -found[name])  # type: ignore[operator]
        same = " (the paper's)" if tuple(order) == wanted else ""
        orders.append(f"{' > '.join(order)}{same} at `{layer}`")
    return f"- {score.upper()}: {'; '.join(orders) or 'no layer at which all three have a value'}."


def table3(found: dict[str, Found]) -> str:
    """CSM and invariance on natural Δi sets."""
    rows = []
    for name, some in found.items():
        for (protocol, method), mine in some.items():
            if protocol == PUBLISHED:
                cells = [summarise(r for r in mine if r.metric == m) for m in ("r_i", "s_i")]
                still = [r for r in some.get((INVARIANCE, method), []) if r.metric == "invariance_reflectance"]
                sets = len({r.case for r in mine})
                scores = [*map(_shown, cells), _shown(ratios(mine, PUBLISHED)["csm_r"]), _shown(summarise(still), 3)]
                rows.append([name, f"{sets}", _named(method), *scores])
    for name, (wild, stereo, _) in paper.TABLE3.items():
        rows += [[where, "", f"*{name}, the paper*", *(f"{v:g}" for v in values), ""]
                 for where, values in (("MIW", wild), ("PS", stereo))]  # fmt: skip
    return _table(["sets", "number", "method", "R_Δi ↓", "S_Δi ↑", "CSM_R ↑", "invariance of R̂ ↓"], rows)


def standards(rows: Found) -> str:
    """The usual scores on the test scenes."""
    names = {"si_mse": "si-MSE", "lmse": "LMSE", "dssim": "DSSIM", "lpips": "LPIPS"}
    metrics = [f"{p}_{b}" for p in names for b in ("reflectance", "shading")]
    made = []
    for method in dict.fromkeys(m for _, m in rows):
        every = [row for (_, name), some in rows.items() if name == method for row in some]
        made.append([_named(method), *(_shown(summarise(r for r in every if r.metric == m), 4) for m in metrics)])
    return _table(["method", *(f"{name} {b}" for name in names.values() for b in "RS")], made)


def table4(values: dict[tuple[str, str], list[float]]) -> str:
    """Standard metrics on two images that differ only in their paint."""
    rows = [[image, _named(m), *(f"{v:.3f}" for v in v8), *["–"] * (8 - len(v8))] for (image, m), v8 in values.items()]
    rows += [[image, f"*{name}, the paper*", *(f"{v:g}" for v in v8)] for (image, name), v8 in paper.TABLE4.items()]
    scores = [f"{metric} {b}" for metric in ("MSE", "LMSE", "DSSIM", "LPIPS") for b in "RS"]
    return _table(["image", "method", *scores], rows)


def scale_table(rows: Found) -> str:
    """CSM and invariance of the same answers on five scales."""
    made = []
    for x in SCALES:
        method = next((m for _, m in rows if parse(m).params.get("scale") == x), None)
        if method is None:
            continue
        still = [r for r in rows.get((INVARIANCE, method), []) if r.metric == "invariance_reflectance"]
        both = [ratios(rows[v, method], v) for v in (PUBLISHED, CORRECTED) if (v, method) in rows]
        made.append([f"{x:g}", *(_shown(r[s]) for r in both for s in ("csm_r", "csm_s")), _shown(summarise(still), 3)])
    scores = ("CSM_R", "CSM_S")
    head = ["R̂ times", *(f"{score} published" for score in scores), *(f"ln {score} corrected" for score in scores)]
    head.append("invariance of R̂")
    return _table(head, made)


def ordering(found: dict[str, Found]) -> str:
    """Sentences that compare the order of our networks with the paper's, for both variants."""
    lines = []
    for variant in (PUBLISHED, CORRECTED):
        cells = by_setting(found, variant)
        for score, wanted in ORDER.items():
            overall = {FAMILY[m]: found.get((score, "overall"), NONE) for m, found in cells.items() if m in FAMILY}
            known = {name: s for name, s in overall.items() if s.mean is not None}
            name = score.upper() if variant == PUBLISHED else f"ln {score.upper()}"
            if len(known) < 3:
                lines.append(f"- {name} ({variant}): not all three networks have a value, so there is no order.")
                continue
            order = sorted(known, key=lambda n: -known[n].mean)  # type: ignore[operator]
            ours = " > ".join(f"{n}-like {_shown(known[n])}" for n in order)
            verdict = _verdict(tuple(order) == wanted, list(known.values()))
            paper_has = f"the paper has {' > '.join(wanted)}: **{verdict}**{_overlaps(order, known)}"
            lines.append(f"- {name} ({variant}): {ours}; {paper_has}.")
    return "\n".join(lines)


def _verdict(same: bool, known: Sequence[Summary]) -> str:
    if any(summary.lo is None for summary in known):
        return f"{'the same' if same else 'another'} order, on too few sets for an interval"
    return f"the paper's order is {'reproduced' if same else 'not reproduced'}"


def bright(found: dict[str, Found], factors: dict[str, tuple[float, float]]) -> str:
    """How much too bright each network's answers are, and whether that alone gives the order of the published CSM."""
    overall = {m: cells for m, cells in by_setting(found, PUBLISHED).items() if m in factors}
    rows = []
    for m, (r, s) in factors.items():
        scores = [_shown(overall.get(m, {}).get((score, "overall"))) for score in ORDER]
        rows.append([_named(m), f"{r:.2f}", f"{s:.2f}", f"{r / s:.2f}", *scores])
    table = _table(["method", "R̂ too bright, times", "Ŝ too bright, times", "quotient", "CSM_S", "CSM_R"], rows)
    at = [(score, "overall") for score in ORDER]
    known = [m for m in factors if all(overall.get(m, {}).get(k, NONE).mean is not None for k in at)]
    if len(known) < 3:
        return table
    by_scale = sorted(known, key=lambda m: -factors[m][0] / factors[m][1])
    same = [score.upper() for score, sign in (("csm_s", 1), ("csm_r", -1))
            if by_scale == sorted(known, key=lambda m: -sign * overall[m][score, "overall"].mean)]  # type: ignore[operator]  # fmt: skip
    agreeing = " and ".join(same) or "none"
    return f"{table}\n\nScores that order the networks as this quotient does (CSM_R from the lowest): {agreeing}."


def _overlaps(order: list[str], known: dict[str, Summary]) -> str:
    """The neighbours in the order whose intervals overlap."""
    if any(known[name].lo is None for name in order):
        return ""
    close = [f"{a} and {b}" for a, b in pairwise(order)
             if None in (known[a].lo, known[b].hi) or known[a].lo <= known[b].hi]  # type: ignore[operator]  # fmt: skip
    return f" (the intervals of {' and of '.join(close)} overlap)" if close else " (no intervals overlap)"
