"""Results on concept sensitivity, for `scripts/reproduce concepts`: every number of ours is read from rows, none is typed.

    python -m studies.concepts.page DATA --minutes 60 [--full] [--miw FOLDER] [--iiw FOLDER] [--saw FOLDER]

Runs are kept in build/reproduce/concepts and taken up again: a second call goes on where the first one ended, and with
`--minutes 0` only the page is written. Jobs stand in the order of what matters most. `--full` is the paper's scale.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.guard import attempt
from diorama.core.plan import Plan
from diorama.core.rows import Row
from diorama.core.spec import parse
from diorama.core.summary import Summary, summarise
from diorama.protocols.concepts.csm.summary import condense
from diorama.report.summary import read_results
from studies.concepts import doses
from studies.concepts import published as paper
from studies.concepts.figures import brightness, figure3, figure4, figure5, figure6, figure7, standard
from studies.page_kit import HOME, computed, filled, made, table, tell

BUILD, PAGE = HOME / "build" / "reproduce" / "concepts", HOME / "docs" / "results" / "concepts.md"
FIGURES = PAGE.with_suffix("")
#: Our networks and the family each is of.
FAMILY = {"iid_timelapse": "IIWW", "iid_translation": "USI3D", "iid_supervised": "CGIID"}
CLASSICAL = ("retinex_color(brightness=1.0, chroma=0.075)", "constant(layer=reflectance)", "constant(layer=shading)")
NAMES = {CLASSICAL[0]: "colour Retinex", CLASSICAL[1]: "R constant", CLASSICAL[2]: "S constant"}
ORDER = {"csm_s": ("USI3D", "IIWW", "CGIID"), "csm_r": ("CGIID", "IIWW", "USI3D")}
INVARIANCE, PUBLISHED, CORRECTED = "response_invariance", "published", "corrected"
#: Other choices of the published CSM for the dose study: logarithms as CGIntrinsics gives, the author's SVM and floor.
CHOICES = {"published, log": ", transform=log", "published, linear_svm, floor 0.01": ", trainer=linear_svm, floor=0.01"}
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)
#: Inner layers that all three networks have: the first of the decoder, its middle, and what `output` is made from.
LAYERS = ("decoder1", "decoder3", "decoder5")
NONE = Summary(None, None, None, 0, 0, 0, 0)
#: (protocol or variant, method) → rows
Found = dict[tuple[str, str], list[Row]]


@dataclass(frozen=True)
class Scale:
    """How large everything is: image side, base scenes per setting, images of a set, sets per setting, and so on."""

    size: int
    scenes: int
    images: int | None
    sets: int | None
    tests: int
    randoms: int
    runs: int

    def csm(self, variant: str, tests: int | None = None, randoms: int | None = None, more: str = "") -> str:
        """The protocol."""
        counts = f"tests={tests or self.tests}, randoms={randoms or self.randoms}"
        return f"csm(variant={variant}, {counts}, runs={self.runs}{more})"

    def world(self, more: str = "", size: int | None = None, scenes: int | None = None, images: int | None = 20) -> str:
        """The concept sets."""
        count = "" if (images or self.images) is None else f", images={images or self.images}"
        return f"concepts(scenes={scenes or self.scenes}{count}, size={size or self.size}{more})"


SMALL, FULL = Scale(64, 8, 20, 32, 120, 400, 100), Scale(256, 10, None, None, 120, 2000, 100)


@dataclass(frozen=True)
class Job:
    """A run: its folder and plan."""

    name: str
    plan: Plan

    @property
    def folder(self) -> Path:
        """Where its rows are."""
        return BUILD / self.name

    def compute(self) -> None:
        """Run what is missing."""
        computed(self.name, self.folder, self.plan)

    def rows(self) -> Found:
        """What has been computed, by protocol (of CSM the variant) and method."""
        if not (self.folder / "cells.json").is_file():
            return {}
        cells = read_results(self.folder).cells
        return {(_protocol(cell.manifest), str(cell.manifest["method"])): cell.rows for cell in cells}


def _protocol(manifest: dict[str, Any]) -> str:
    """The protocol's name; of CSM the variant and what else was chosen."""
    parsed = parse(manifest["protocol"])
    chosen = [str(parsed.params[name]) for name in ("transform", "trainer", "layer") if name in parsed.params]
    chosen += [f"floor {parsed.params['floor']}"] if "floor" in parsed.params else []
    return ", ".join([str(manifest["variant"]), *chosen]) if parsed.name == "csm" else parsed.name


def leaks() -> dict[tuple[float, str], str]:
    """Every planted leak."""
    return {(a, into): f"leak(alpha={a}, into={into})" for into in doses.INTO for a in doses.ALPHAS}


def networks() -> list[str]:
    """The bundled networks that can be made."""
    return [name for name in FAMILY if attempt(lambda name=name: _tried(name)).error is None]  # type: ignore[misc]


def _tried(name: str) -> Any:
    world = build("world", "test_scenes(size=32)").object
    return build("method", name).object.decompose(world.render([world.scene(0)[1]]))


def jobs(scale: Scale, data: Path, miw: str | None) -> dict[str, Job]:
    """Everything that is computed, what matters most first."""
    planted, methods = list(leaks().values()), [*networks(), *CLASSICAL]
    small = Scale(48, 10, 20, None, 60, 200, 25) if scale is SMALL else scale
    both = [small.csm(PUBLISHED), small.csm(CORRECTED)]
    count = 8 * small.scenes
    found = [
        Job("doses", Plan([small.world()], planted, [INVARIANCE, *both], cases=count)),
        Job(
            "doses_standard", Plan([f"test_scenes(size={small.size})"], planted, ["si_mse", "lmse", "dssim"], cases=40)
        ),
        Job(
            "doses_more",
            Plan([small.world()], planted, [small.csm(PUBLISHED, more=m) for m in CHOICES.values()], cases=count),
        ),
        Job(
            "scales",
            Plan([small.world()], [f"leak(alpha=0.4, scale={x})" for x in SCALES], [INVARIANCE, *both], cases=16),
        ),
    ]
    protocols = [scale.csm(PUBLISHED), scale.csm(CORRECTED), INVARIANCE]
    for setting in paper.SETTINGS:
        world = scale.world(f", setting={setting}", images=scale.images)
        found.append(Job(f"table1/{setting}", Plan([world], methods, protocols, cases=scale.sets)))
    found.append(
        Job("standard", Plan([f"test_scenes(size={scale.size})"], methods, ["si_mse", "lmse", "dssim"], cases=40))
    )
    if networks():
        world = scale.world(", setting=rgb-simple, change=albedo", images=scale.images)
        more = Scale(**{**vars(scale), "runs": 100})
        inner = [scale.csm(v, more=f", layer={x}") for x in LAYERS for v in (PUBLISHED, CORRECTED)]
        found.append(Job("layers", Plan([scale.world(images=scale.images)], networks(), inner, cases=scale.sets)))
        found.append(Job("figure7", Plan([world], networks(), [more.csm(PUBLISHED)], cases=4)))
    for name, world in natural(data, miw, scale).items():
        found.append(Job(f"natural/{name}", Plan([world], methods, [scale.csm(PUBLISHED), INVARIANCE])))
    return {job.name: job for job in found}


def natural(data: Path, miw: str | None, scale: Scale) -> dict[str, str]:
    """Photographs of one scene under several lights, where they are there."""
    found = {}
    if miw:
        found["miw"] = f"natural_concepts(root={miw}, kind=multi_illumination, size={scale.size})"
    if (data / "photometric_stereo").is_dir():
        found["stereo"] = (
            f"natural_concepts(root={data / 'photometric_stereo'}, kind=stereo, min_images=12, size={scale.size})"
        )
    if (data / "mit_intrinsic").is_dir():
        found["mit"] = f"natural_concepts(root={data / 'mit_intrinsic'}, kind=mit, min_images=10, size={scale.size})"
    return found


# Tables


def ratios(rows: Sequence[Row], variant: str) -> dict[str, Summary]:
    """Both ratios of some sets."""
    found = condense(rows, "ratio_of_averages" if variant == PUBLISHED else None).derived
    return {name.removeprefix("log_"): summary for name, summary in found.items()}


def _shown(summary: Summary | None, places: int = 2) -> str:
    if summary is None or summary.mean is None:
        return "–"
    text = f"{summary.mean:.{places}f}"
    text += "" if summary.lo is None else f" [{summary.lo:.{places}f}, {summary.hi:.{places}f}]"
    return text.replace("-", "−")


def _named(method: str) -> str:
    return f"{method} ({FAMILY[method]}-like)" if method in FAMILY else NAMES.get(method, method)


_table = partial(table, numbers="---")
HEAD = [f"{score} {setting}" for score in ("CSM_S", "CSM_R") for setting in (*paper.SETTINGS, "overall")]


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
    """The four sensitivities, how many sets have them, and what the CAVs are worth."""
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
    head = [
        "R_Δa",
        "S_Δa",
        "R_Δi",
        "S_Δi",
        "accuracy R",
        "accuracy S",
        "stability R",
        "stability S",
        "cos Δa·Δi",
        "cos scenes",
    ]
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
    """How the published score orders the networks at each layer."""
    said = []
    for layer in LAYERS:
        found = {
            f: ratios(rows.get((f"{PUBLISHED}, {layer}", m), []), PUBLISHED)[score].mean for m, f in FAMILY.items()
        }
        if None in found.values():
            continue
        order = sorted(found, key=lambda name: -found[name])  # type: ignore[operator]
        same = " (the paper's)" if tuple(order) == wanted else ""
        said.append(f"{' > '.join(order)}{same} at `{layer}`")
    return f"- {score.upper()}: {'; '.join(said) or 'no layer at which all three have a value'}."


def table3(found: dict[str, Found]) -> str:
    """Natural Δi sets."""
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
    metrics = [f"{p}_{b}" for p in ("si_mse", "lmse", "dssim") for b in ("reflectance", "shading")]
    made = []
    for method in dict.fromkeys(m for _, m in rows):
        every = [row for (_, name), some in rows.items() if name == method for row in some]
        made.append([_named(method), *(_shown(summarise(r for r in every if r.metric == m), 4) for m in metrics)])
    return _table(["method", "si-MSE R", "si-MSE S", "LMSE R", "LMSE S", "DSSIM R", "DSSIM S"], made)


def table4(values: dict[tuple[str, str], list[float]]) -> str:
    """Standard metrics on two images that differ in their paint only."""
    rows = [[image, _named(m), *(f"{v:.3f}" for v in v8), "–", "–"] for (image, m), v8 in values.items()]
    rows += [[image, f"*{name}, the paper*", *(f"{v:g}" for v in v8)] for (image, name), v8 in paper.TABLE4.items()]
    scores = [f"{metric} {b}" for metric in ("MSE", "LMSE", "DSSIM", "LPIPS") for b in "RS"]
    return _table(["image", "method", *scores], rows)


def scale_table(rows: Found) -> str:
    """The same answers on five scales."""
    made = []
    for x in SCALES:
        method = next((m for _, m in rows if parse(m).params.get("scale") == x), None)
        if method is None:
            continue
        still = [r for r in rows.get((INVARIANCE, method), []) if r.metric == "invariance_reflectance"]
        both = [ratios(rows[v, method], v) for v in (PUBLISHED, CORRECTED) if (v, method) in rows]
        made.append([f"{x:g}", *(_shown(r[s]) for r in both for s in ("csm_r", "csm_s")), _shown(summarise(still), 3)])
    head = [
        "R̂ times",
        "CSM_R published",
        "CSM_S published",
        "ln CSM_R corrected",
        "ln CSM_S corrected",
        "invariance of R̂",
    ]
    return _table(head, made)


# Statements


def ordering(found: dict[str, Found]) -> str:
    """Whether the paper's order of the three families comes out, by both variants."""
    lines = []
    for variant in (PUBLISHED, CORRECTED):
        cells = by_setting(found, variant)
        for score, wanted in ORDER.items():
            known = {
                FAMILY[m]: c[score, "overall"] for m, c in cells.items() if m in FAMILY and (score, "overall") in c
            }
            known = {name: s for name, s in known.items() if s.mean is not None}
            name = score.upper().replace("CSM_", "CSM_") if variant == PUBLISHED else f"ln {score.upper()}"
            if len(known) < 3:
                lines.append(f"- {name} ({variant}): not all three networks have a value, so there is no order.")
                continue
            order = sorted(known, key=lambda n: -known[n].mean)  # type: ignore[operator]
            said = " > ".join(f"{n}-like {_shown(known[n])}" for n in order)
            verdict = (
                "the paper's order is reproduced" if tuple(order) == wanted else "the paper's order is not reproduced"
            )
            lines.append(
                f"- {name} ({variant}): {said}; the paper has {' > '.join(wanted)}: **{verdict}**{_apart(order, known)}."
            )
    return "\n".join(lines)


def bright(found: dict[str, Found], factors: dict[str, tuple[float, float]]) -> str:
    """How bright each network's answers are, and whether that alone gives the order of the published CSM."""
    overall = {m: cells for m, cells in by_setting(found, PUBLISHED).items() if m in factors}
    rows = []
    for m, (r, s) in factors.items():
        scores = [_shown(overall.get(m, {}).get((score, "overall"))) for score in ORDER]
        rows.append([_named(m), f"{r:.2f}", f"{s:.2f}", f"{r / s:.2f}", *scores])
    table = _table(["method", "R̂ too bright, times", "Ŝ too bright, times", "quotient", "CSM_S", "CSM_R"], rows)
    known = [
        m for m in factors if all((overall.get(m, {}).get((k, "overall")) or NONE).mean is not None for k in ORDER)
    ]
    if len(known) < 3:
        return table
    by_scale = sorted(known, key=lambda m: -factors[m][0] / factors[m][1])
    same = [score.upper() for score, sign in (("csm_s", 1), ("csm_r", -1))
            if by_scale == sorted(known, key=lambda m: -sign * overall[m][score, "overall"].mean)]  # type: ignore[operator]  # fmt: skip
    said = " and ".join(same) or "neither score"
    return f"{table}\n\nOrdered by this quotient, the networks stand as they do by {said} (CSM_R from the lowest)."


def _apart(order: list[str], known: dict[str, Summary]) -> str:
    """Which neighbours' intervals overlap."""
    close = [f"{a} and {b}" for a, b in pairwise(order)
             if None in (known[a].lo, known[b].hi) or known[a].lo <= known[b].hi]  # type: ignore[operator]  # fmt: skip
    return f" (the intervals of {' and of '.join(close)} overlap)" if close else " (no intervals overlap)"


def planted(found: dict[str, Job], tests: int) -> dict[str, list[doses.Followed]]:
    """How every score follows both kinds of leak."""
    rows = {key: some for name, job in found.items() if name.startswith("doses") for key, some in job.rows().items()}
    at = {text: key for key, text in leaks().items()}
    made: dict[str, list[doses.Followed]] = {}
    for into in doses.INTO:
        for reading in doses.readings(PUBLISHED, CORRECTED, tests, tuple(CHOICES)):
            mine = {
                at[m][0]: some
                for (p, m), some in rows.items()
                if p == reading.protocol and at.get(m, (0, ""))[1] == into
            }
            if mine:
                made.setdefault(into, []).append(doses.follow(reading, mine, into))
    return made


def page(scale: Scale, found: dict[str, Job], more: dict[str, Any]) -> str:
    """The page of results."""
    sets = {name.removeprefix("table1/"): job.rows() for name, job in found.items() if name.startswith("table1/")}
    wild = {name.removeprefix("natural/"): job.rows() for name, job in found.items() if name.startswith("natural/")}
    followed = planted(found, _tests(found["doses"]))
    if followed:
        shown = {
            k: [f for f in several if f.name.removeprefix("CSM ") not in CHOICES] for k, several in followed.items()
        }
        doses.figure(shown, FIGURES / "doses.svg")
    lacking = [name for name in FAMILY if name not in networks()]
    parts = {
        "MADE": made(("numpy", "scipy", "scikit-learn", "torch"), "seed 0"),
        "LACKING": f"Without weights when this was written: {', '.join(lacking)}." if lacking else "",
        "SCALE": _scale(scale, found),
        "DOSES": "\n".join(doses.report(followed)),
        "FOLLOWS": follows(followed),
        "SCALES": scale_table(found["scales"].rows()),
        "ORDERING": ordering(sets),
        "BRIGHTNESS": bright(sets, more["brightness"]),
        "TABLE1": table1(sets, PUBLISHED, more["extra"]),
        "TABLE1C": table1(sets, CORRECTED, {}),
        "SENSITIVITIES": sensitivities(sets, PUBLISHED),
        "SENSITIVITIESC": sensitivities(sets, CORRECTED),
        "INVARIANCE": invariances(sets),
        "LAYERS": by_layer(found["layers"].rows()) if "layers" in found else "",
        "TABLE2": table2(sets),
        "TABLE3": table3(wild),
        "TABLE4": table4(more["table4"]),
        "STANDARD": standards(found["standard"].rows()),
    }
    return filled(Path(__file__).with_name("page.md"), parts)


def follows(found: dict[str, list[doses.Followed]]) -> str:
    """The answer in a sentence."""
    names: dict[str, list[str]] = {}
    for into, several in found.items():
        for f in several:
            names.setdefault(f"{f.verdict}", []).append(f"{f.name} ({into})")
    order = ("follows", "mostly", "weakly", "no", "against it", "undefined")
    return "\n".join(f"- **{v}**: {', '.join(names[v])}" for v in order if v in names)


def _tests(job: Job) -> int:
    values = [r.value for rows in job.rows().values() for r in rows if r.metric == "tests"]
    return min((int(v) for v in values if isinstance(v, int | float)), default=1)


def _scale(scale: Scale, found: dict[str, Job]) -> str:
    """What was scaled down."""
    if scale is FULL:
        return "This is the paper's scale (`--full`)."
    lines = ["| | here | the paper (`--full`) |", "|---|---|---|"]
    rows = {name: ("all" if value is None else str(value), "all" if full is None else str(full))
            for (name, value), full in zip(vars(scale).items(), vars(FULL).values(), strict=True)}  # fmt: skip
    words = {"size": "pixels", "scenes": "base scenes per setting", "images": "images of a set", "tests": "test images",
             "sets": "sets per setting", "randoms": "negatives", "runs": "CAV runs"}  # fmt: skip
    lines += [f"| {words[name]} | {small} | {full} |" for name, (small, full) in rows.items()]
    small = found["doses"].plan
    return (
        "\n".join(lines)
        + f"\n\nThe dose study: `{small.worlds[0]}`, the first {small.cases} sets, `{small.protocols[1]}`."
    )


def extra_columns(options: argparse.Namespace, minutes_left: float) -> dict[str, tuple[str, str]]:
    """WHDR and SAW AP of every method, where the photos are there."""
    found: dict[str, list[str]] = {}
    for k, (root, world, protocol, metric) in enumerate(
        ((options.iiw, "iiw", "whdr", "whdr"), (options.saw, "saw", "saw_ap", "saw_ap"))
    ):
        if not root:
            continue
        job = Job(protocol, Plan([f"{world}(root={root})"], [*networks(), *CLASSICAL], [protocol]))
        if minutes_left > 0:
            job.compute()
        for (_, method), rows in job.rows().items():
            of = summarise(r for r in rows if r.metric == metric)
            found.setdefault(method, ["–", "–"])[k] = "–" if of.mean is None else f"{100 * of.mean:.1f}"
    return {method: (cells[0], cells[1]) for method, cells in found.items()}


def _ready(all_jobs: dict[str, Job], end: float) -> Iterator[Job]:
    for job in all_jobs.values():
        if time.monotonic() > end:
            tell(f"no time is left for {job.name} and what follows")
            return
        yield job


def main() -> None:
    """Compute while the minutes last, then write the page and its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with photometric_stereo and mit_intrinsic")
    parser.add_argument("--minutes", type=float, default=60.0, help="no job is begun after so many")
    parser.add_argument("--full", action="store_true", help="the paper's scale: days, and some 8 GB of memory")
    parser.add_argument("--only", default="", help="only jobs whose name begins so")
    parser.add_argument("--miw", help="Multi-Illumination in the Wild")
    parser.add_argument("--iiw", help="Intrinsic Images in the Wild, for WHDR")
    parser.add_argument("--saw", help="Shading Annotations in the Wild, for SAW AP")
    options = parser.parse_args()
    end, scale = time.monotonic() + 60 * options.minutes, FULL if options.full else SMALL
    found = jobs(scale, options.data.resolve(), options.miw)
    for job in _ready({n: j for n, j in found.items() if n.startswith(options.only)}, end):
        try:
            job.compute()
        except InputError as error:
            tell(f"{job.name}: {error}")
    used = networks()
    more = {"extra": extra_columns(options, end - time.monotonic()), "table4": standard(used, scale.size)}
    more["brightness"] = brightness(used, scale.size)
    figure3(FIGURES / "figure3.svg", scale.size)
    if used:
        figure4(FIGURES / "figure4.png", used)
        figure5(FIGURES / "figure5.png", used)
        figure6(BUILD / "figure6.png", used, natural(options.data.resolve(), options.miw, scale))
        figure7(FIGURES / "figure7.svg", found["figure7"].rows(), FAMILY)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(scale, found, more), encoding="utf-8")
    print(PAGE.relative_to(HOME))


if __name__ == "__main__":
    main()
