"""docs/results/speed.md and its plots, from what the benchmarks kept in benchmarks/results/*.json."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks._plot import logarithmic
from benchmarks._print import kept
from benchmarks._transfers import table as transfers

DOCS = Path(__file__).resolve().parents[1] / "docs" / "results"
#: The benchmarks that the page is made of.
NAMES = ("passes", "growth", "funnybirds", "disentangle", "intrinsic", "commands")
NETWORKS = {
    "birds_cnn": "birds_cnn, 128",
    "birds_resnet": "birds_resnet, 128",
    "birds_vgg": "birds_vgg, 128",
    "resnet50": "ResNet-50, 224",
    "lite0": "EfficientNet-Lite0, 224",
}
Figures = dict[str, float]

#: What was wanted: of which benchmark, in words, the figure, and whether it is to be at least or at most what.
WANTED: tuple[tuple[str, str, str, str, float], ...] = (
    (
        "passes",
        "best engine against eager torch in its own layout, forward, geometric mean",
        "mean_forward_best_ratio",
        "≥",
        1.5,
    ),
    ("passes", "folded torch against eager torch in its own layout, forward", "mean_forward_folded_ratio", "≥", 1.15),
    (
        "passes",
        "folded torch against eager torch in its own layout, with the gradient",
        "mean_gradient_folded_ratio",
        "≥",
        1.15,
    ),
    ("funnybirds", "evaluation of FunnyBirds against the reference loop as its users have it", "speedup", "≥", 15),
    ("funnybirds", "a run over its bare torch passes", "ours_over_passes", "≤", 1.05),
    ("commands", "48 birds on all cores over one worker (two cores)", "birds_48_all_over_one", "≤", 0.57),
    ("commands", "`diorama demo` on all cores over one worker (two cores)", "demo_all_over_one", "≤", 0.57),
    ("commands", "`diorama run` on a complete folder, s", "known_run_seconds", "≤", 1.5),
    ("commands", "`diorama report`, s", "known_report_seconds", "≤", 1.0),
    ("commands", "`diorama ls`, s", "known_ls_seconds", "≤", 0.3),
    ("commands", "`diorama show rise`, s", "known_show_seconds", "≤", 0.3),
    ("disentangle", "eleven disentanglement scores of 10,000 codes, s", "suite_s", "≤", 5),
    ("disentangle", "their nulls and intervals, s", "nulls_and_intervals_s", "≤", 20),
    ("intrinsic", "the MIT table on two cores, s", "mit_table_seconds", "≤", 8),
    ("growth", "time against cases, network: exponent", "cnn_cases_time_exponent", "≤", 1.05),
    ("growth", "time against cases, decomposition: exponent", "layers_cases_time_exponent", "≤", 1.05),
    ("growth", "memory against cases, network: exponent", "cnn_cases_memory_exponent", "≤", 0.05),
    ("growth", "memory against cases, decomposition: exponent", "layers_cases_memory_exponent", "≤", 0.05),
    ("growth", "planning against cells: exponent", "cells_time_exponent", "≤", 1.1),
    ("growth", "planning of 400 cells, s", "cells_400_s", "≤", 3),
)


def write_page() -> Path:
    """Write the page and its plots; what was not measured is said in its place."""
    found = {name: kept(name) for name in NAMES}
    figures = {name: one["figures"] for name, one in found.items() if one}
    parts = ["# Speed", _about(found), _claims(figures), *_sections(figures), transfers()]
    path = DOCS / "speed.md"
    path.write_text("\n\n".join(parts) + "\n")
    return path


def _about(found: dict[str, dict[str, Any] | None]) -> str:
    lines = ["Written by `scripts/bench speed` from `benchmarks/results/*.json`; ratios compare sides of one run."]
    for about in dict.fromkeys(_machine(one["about"]) for one in found.values() if one):
        names = ", ".join(name for name, one in found.items() if one and _machine(one["about"]) == about)
        lines.append(f"Measured {about}: {names}.")
    busy = [f"{name} ({one['about']['load_before']:g})" for name, one in found.items() if one and _busy(one["about"])]
    if busy:
        lines.append(f"**The machine was not idle** (load before it) for {', '.join(busy)}: times there say little.")
    return "\n".join(lines)


def _machine(about: dict[str, Any]) -> str:
    return f"{about['date']} on {about['cores']} cores ({about['processor']}), Python {about['python']}"


def _busy(about: dict[str, Any]) -> bool:
    return about["load_before"] > 0.3 * about["cores"]


def _claims(figures: dict[str, Figures]) -> str:
    rows = []
    for name, words, key, sign, bound in WANTED:
        value = figures.get(name, {}).get(key)
        met = value is not None and (value >= bound if sign == "≥" else value <= bound)
        shown = "not measured" if value is None else f"{value:.3g}"
        rows.append((words, f"{sign} {bound:g}", shown, "" if value is None else "yes" if met else "**no**"))
    return _table(("what", "wanted", "measured", "met"), rows)


def _sections(figures: dict[str, Figures]) -> list[str]:
    made: dict[str, Callable[[Figures], str]] = {"passes": _passes, "funnybirds": _funnybirds, "growth": _growth}
    made["disentangle"] = _disentangle
    return [section(figures[name]) for name, section in made.items() if name in figures]


def _passes(f: Figures) -> str:
    sides = {"eager": "eager", "eager_ours": "eager, our layout", "folded": "folded"}
    engines = {"onnxruntime": "onnxruntime", "openvino": "openvino"}
    apart = max(value for key, value in f.items() if key.endswith("_apart"))
    return "\n\n".join(
        [
            "## Passes\n\nImages per second in batches of eight on one thread. Engines compute logits only where a plan"
            " names them (`--engine`); folded torch is the default.",
            _rates(f, "forward", sides | engines, "best"),
            _rates(f, "gradient", sides, "folded"),
            _layouts(f),
            f"The largest difference of a logit from eager torch's is {apart:.1e} of the largest logit.",
        ]
    )


def _rates(f: Figures, what: str, sides: dict[str, str], best: str) -> str:
    """Images per second of every network and side, and the geometric means of what they are over eager torch."""
    rows = [
        (label, *(f"{f[f'{name}_{what}_{side}']:.0f}" for side in sides), f"{f[f'{name}_{what}_{best}_ratio']:.2f}")
        for name, label in NETWORKS.items()
    ]
    means = [f"{f[f'mean_{what}_{side}_ratio']:.2f}" for side in (*list(sides)[1:], best)]
    rows.append(("geometric mean over eager", "1", *means))
    return _table(("with the gradient" if what == "gradient" else what, *sides.values(), f"{best} over eager"), rows)


def _layouts(f: Figures) -> str:
    """Against which torch the ratios are, and what they are against the other."""
    ours = {what: f[f"mean_{what}_ratio_ours"] for what in ("forward_best", "forward_folded", "gradient_folded")}
    return (
        "What was wanted is measured against eager torch as its users have it: weights and images in torch's own layout,"
        " the module as its maker hands it over. Our layout (channels last) is part of what is gained. Against the same"
        f" module in our layout there remain {ours['forward_best']:.2f} for the best engine, {ours['forward_folded']:.2f}"
        f" for folded torch forward and {ours['gradient_folded']:.2f} with the gradient."
    )


def _funnybirds(f: Figures) -> str:
    rows = [("reference loop as its users have it", f"{f['loop_seconds']:.2f}", "1")]
    for engine in ("torch", "onnxruntime", "openvino"):
        name = "ours, folded torch" if engine == "torch" else f"ours, {engine} for logits"
        rows.append((name, f"{f[f'ours_{engine}_seconds']:.2f}", f"{f[f'speedup_{engine}']:.1f}"))
    words = (
        "## FunnyBirds\n\nSeconds per bird, six methods (Input×Gradient, Integrated Gradients, Grad-CAM, RISE with 200"
        " masks, LIME with 200 samples, LRP) on birds_cnn at 128 pixels; frames are rendered beforehand on both sides."
    )
    return f"{words}\n\n" + _table(("", "s a bird", "speed-up"), rows) + _same_methods(f)


def _same_methods(f: Figures) -> str:
    """What the loop is, and how far ahead of it we are where both sides explain alike."""
    if "speedup_same_methods" not in f:
        return ""
    return (
        "\n\nThe loop has torch's own layout of the network and the explanations of captum, lime and zennit. With our"
        f" explanations and layout instead it takes {f['same_methods_loop_seconds']:.2f} s a bird, and the fastest of ours"
        f" is {f['speedup_same_methods']:.1f} times as fast as that."
    )


def _growth(f: Figures) -> str:
    from benchmarks.growth import CASES, CELLS, METHODS, SIZES

    kinds = (("cases", CASES), ("methods", METHODS), ("size", SIZES))
    for unit, words in (("s", "seconds"), ("mb", "megabytes")):
        for what, sizes in kinds:
            lines = {run: [f[f"{run}_{what}_{n}_{unit}"] for n in sizes] for run in ("cnn", "layers")}
            name = "side in pixels" if what == "size" else what
            (DOCS / "speed").mkdir(exist_ok=True)
            (DOCS / "speed" / f"{what}_{unit}.svg").write_text(logarithmic(sizes, lines, name, words))
    (DOCS / "speed" / "cells_s.svg").write_text(
        logarithmic(CELLS, {"planning": [f[f"cells_{n}_s"] for n in CELLS]}, "cells", "seconds")
    )
    rows = [
        (
            label,
            what,
            *(f"{f[f'{run}_{what}_{kind}_exponent']:.2f}" for kind in ("time", "memory")),
            _range(f, run, what),
        )
        for run, label in (("cnn", "birds through a network"), ("layers", "decompositions"))
        for what, _ in kinds
    ]
    rows.append(("planning", "cells", f"{f['cells_time_exponent']:.2f}", "", f"{f['cells_400_s']:.2f} s for 400"))
    plots = "\n".join(
        f"![{words} against {what}](speed/{what}_{unit}.svg)"
        for what in ("cases", "methods", "size")
        for unit, words in (("s", "seconds"), ("mb", "megabytes"))
    )
    return "\n\n".join(
        [
            "## Growth\n\nA run of birds through a network (`cnn`) and one of decompositions (`layers`), one process;"
            " exponents of time and of the largest resident memory. Against size the exponent is by pixels.",
            _table(("run", "against", "time", "memory", "memory, MB"), rows),
            plots,
            "![seconds of planning against cells](speed/cells_s.svg)",
        ]
    )


def _range(f: Figures, run: str, what: str) -> str:
    values = [value for key, value in f.items() if key.startswith(f"{run}_{what}_") and key.endswith("_mb")]
    return f"{min(values):.0f} to {max(values):.0f}"


def _disentangle(f: Figures) -> str:
    names = [key[:-2] for key in f if key.endswith("_s") and not key.endswith("_cpu_s")]
    scores = [name for name in names if f"{name}_cpu_s" in f and name not in ("suite", "nulls_and_intervals")]
    rows = [(name, f"{f[f'{name}_s']:.3f}") for name in [*scores, "suite", "nulls_and_intervals"]]
    return "## Disentanglement scores\n\n10,000 codes of 10 latents and 5 factors, seconds.\n\n" + _table(
        ("score", "s"), rows
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
