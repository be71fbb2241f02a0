"""The queueing model of a run, its plot, and docs/scale.md filled with what was measured."""

import re
from pathlib import Path
from typing import Any

from benchmarks._scale_passes import BIRDS, EXPLAINERS, NETWORKS

ROOT = Path(__file__).resolve().parents[1]
WORKERS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]
#: Units of the run that the plot is of, and what a unit takes: measured here, and two longer ones.
UNITS, LONGER = 20_000, (10.0, 60.0)
#: Of a pass of ResNet-50 at 256 pixels, forward; a backward pass costs twice that. And what a GPU is taken to sustain.
GFLOP, TFLOPS = 10.7, 10.0


def waiting(workers: int, unit: float, driver: float) -> float:
    """The share of its time that a worker computes, where all share one driver: mean value analysis of a closed queue.

    A worker computes for `unit` seconds, then waits until the driver has served it, which takes `driver` seconds each.
    """
    queue = 0.0
    response = driver
    for n in range(1, workers + 1):
        response = driver * (1 + queue)
        queue = n * response / (unit + response)
    return unit / (unit + response)


def efficiency(workers: int, unit: float, driver: float, start: float, units: int) -> float:
    """The share of the paid time that is computing: waiting for the driver, starting, and the last units of a list."""
    busy = units * unit / workers / waiting(workers, unit, driver)
    return units * unit / workers / (start + busy + unit / 2 * (1 - 1 / workers))


def crossing(unit: float, driver: float, start: float, units: int, least: float = 0.9) -> int:
    """The largest number of workers with at least that efficiency, up to 100,000."""
    low, high = 1, 2
    while high < 100_000 and efficiency(high, unit, driver, start, units) >= least:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if efficiency(middle, unit, driver, start, units) >= least else (low, middle)
    return low


def limit(workers: int, unit: float, driver: float, start: float, units: int) -> str:
    """What takes most away at so many workers."""
    ideal = units * unit / workers
    lost = {
        "the driver": ideal / waiting(workers, unit, driver) - ideal,
        "the start of workers": start,
        "the last units": unit / 2,
    }
    return max(lost, key=lost.__getitem__)


def plot(curves: dict[str, list[float]]) -> str:
    """Efficiency against workers, on a logarithmic axis, as SVG."""
    from math import log10

    def x(workers: float) -> float:
        return 60 + 500 * (log10(workers) - log10(2)) / (3 - log10(2))

    def y(value: float) -> float:
        return 260 - 220 * value

    colours = ("#0b6e99", "#c2571a", "#4d7c0f")
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 310" font-family="sans-serif" font-size="12">']
    out.append('<rect width="680" height="310" fill="white"/>')
    for value in (0, 0.25, 0.5, 0.75, 0.9, 1):
        out.append(
            f'<path d="M60 {y(value):.1f}H560" stroke="#ddd"/><text x="28" y="{y(value) + 4:.1f}">{value:g}</text>'
        )
    for workers in WORKERS:
        out.append(f'<text x="{x(workers):.1f}" y="280" text-anchor="middle">{workers}</text>')
    for colour, (name, values) in zip(colours, curves.items(), strict=False):
        points = " ".join(f"{x(w):.1f},{y(v):.1f}" for w, v in zip(WORKERS, values, strict=True))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out.append(f'<text x="566" y="{y(values[-1]) + 4:.1f}" fill="{colour}">{name}</text>')
    out.append('<text x="310" y="302" text-anchor="middle">workers</text><text x="60" y="28">efficiency</text></svg>')
    return "\n".join(out) + "\n"


def write_page(figures: dict[str, float], about: dict[str, Any]) -> None:
    """Put the figures, the model and the plot into docs/scale.md, with what they were measured on."""
    driver = max(
        figures["driver_seconds_per_unit"], figures["ray_seconds_per_unit"] - figures["local_seconds_per_unit"]
    )
    start, units = figures["ray_1_first_row_seconds"], [figures["unit_seconds"], *LONGER]
    curves = {f"{u:.3g} s a unit": [efficiency(w, u, driver, start, UNITS) for w in WORKERS] for u in units}
    (ROOT / "docs" / "scale.svg").write_text(plot(curves))
    busy = about["load_before"] > 0.3 * about["cores"]
    where = (
        f"Measured {about['date']} on {about['cores']} cores ({about['processor']}), load before it"
        f" {about['load_before']:g}{': **not idle**, times say little' if busy else ''}."
    )
    text = "\n".join(
        [where, "", *_measured(figures), "", *_modelled(figures, driver, start, units), "", *_cost(figures)]
    )
    page = ROOT / "docs" / "scale.md"
    filled = re.sub(
        r"(<!-- measured -->\n).*(<!-- end -->)", lambda m: f"{m[1]}{text}\n{m[2]}", page.read_text(), flags=re.DOTALL
    )
    page.write_text(filled)


def _measured(f: dict[str, float]) -> list[str]:
    return [
        f"{f['cases']:g} birds under Integrated Gradients and single deletion, {f['unit_seconds']:.3g} s a unit:",
        "",
        "| | seconds | to the first row |",
        "|---|---|---|",
        *(
            f"| {name} | {f[f'{key}_seconds']:.1f} | {f[f'{key}_first_row_seconds']:.1f} |"
            for name, key in (("local:1", "local_1"), ("local:2", "local_2"), ("Ray, 1", "ray_1"), ("Ray, 2", "ray_2"))
        ),
        f"| two independent processes | {f['two_independent_seconds']:.1f} | |",
        "",
        f"Two local workers reach {f['local_2_over_two_independent']:.2f} of two independent processes (wanted: .9) and take"
        f" {f['local_2_over_local_1_time']:.2f} of the time of one. Ray costs {f['ray_overhead_percent']:.1f} % once it has"
        " started (wanted: at most 5 %).",
        f"A unit without any work takes {1e3 * f['local_seconds_per_unit']:.0f} ms here and"
        f" {1e3 * f['ray_seconds_per_unit']:.0f} ms under Ray; the driver alone needs"
        f" {1e3 * f['driver_seconds_per_unit']:.0f} ms for a unit of four cells and eight cases"
        f" and writes {f['driver_rows_per_second']:,.0f} rows a second.",
    ]


def _modelled(f: dict[str, float], driver: float, start: float, units: list[float]) -> list[str]:
    lines = [
        "![Efficiency from 2 to 1,000 workers](scale.svg)",
        "",
        "| a unit takes | .9 is kept up to | then what limits is |",
    ]
    lines += ["|---|---|---|"]
    for unit in units:
        most = crossing(unit, driver, start, UNITS)
        shown = "100,000 workers" if most >= 99_999 else f"{most:,} workers"
        lines.append(f"| {unit:.3g} s | {shown} | {limit(most + 1, unit, driver, start, UNITS)} |")
    model = efficiency(2, f["unit_seconds"], driver, 0.0, round(f["cases"] / 8))
    return [
        *lines,
        "",
        f"A run of {UNITS:,} units, d = {1e3 * driver:.0f} ms, t = {start:.1f} s. Check: for two workers and the measured"
        f" run the model says {model:.3f} after the start; measured were {f['local_2_efficiency']:.3f} (local) and"
        f" {f['ray_2_efficiency']:.3f} (Ray).",
    ]


def _cost(f: dict[str, float]) -> list[str]:
    lines = ["| explainer | images forward a bird | backward | GPU-hours |", "|---|---|---|---|"]
    total = 0.0
    for name, (parameter, _, _, full) in EXPLAINERS.items():
        forward, backward = f[f"{name}_forward_per_bird"], f[f"{name}_backward_per_bird"]
        hours = BIRDS * NETWORKS * (forward + 2 * backward) * GFLOP / (1e3 * TFLOPS) / 3600
        total += hours
        size = f" ({full:,} {parameter})" if parameter else ""
        lines.append(f"| {name}{size} | {forward:,.0f} | {backward:,.0f} | {hours:,.1f} |")
    return [
        f"{BIRDS:,} birds and {NETWORKS} networks under FunnyBirds and single deletion. Passes were counted on birds_cnn at"
        f" two small settings and continued along the straight line; a GPU-hour assumes ResNet-50 at 256 pixels ({GFLOP}"
        f" GFLOP forward) and {TFLOPS:g} TFLOP/s sustained, which was not measured: there is no GPU here.",
        "",
        *lines,
        f"| all | | | {total:,.1f} |",
    ]
