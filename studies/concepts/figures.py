"""Figures of `scripts/reproduce concepts`: concept sets and the lamp's path, answers for single images, CAV runs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from diorama.core.answers import Layers
from diorama.core.cases import Panel
from diorama.core.catalogue import build
from diorama.core.frame import Frame, linear_to_srgb
from diorama.core.rows import Row
from diorama.metrics.errors import scale
from diorama.protocols.layers.judging import colour_pairs
from diorama.worlds.concepts import figure
from studies.figures import sheet
from studies.page_kit import perceptual, svg_line, svg_text, write_svg

_COLOURS = ("#0072b2", "#d55e00", "#009e73")


def figure3(path: Path, size: int) -> None:
    """Draw a set of each kind and the path of the lamp."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(figure.figure3(build("world", f"concepts(scenes=2, images=24, size={size})").object) + "\n")


def changed(setting: str, size: int) -> dict[str, Frame]:
    """One scene (A0I0), the same scene repainted (A1I0), and the same scene lit from elsewhere (A0I1)."""
    world = build("world", f"concepts(change=light, setting={setting}, scenes=1, images=10, size={size})").object
    sets = [world.scene(i)[1] for i in range(len(world))]
    first = next(s for s in sets if s.params["variant"] == 0 and s.params["temperature"] == 6500)
    other = next(s for s in sets if s.params["variant"] == 1 and s.params["temperature"] == 6500)
    shown = (world.members(first)[2], world.members(other)[2], world.members(first)[8])
    return dict(zip(("A0I0", "A1I0", "A0I1"), world.render(shown), strict=True))


def figure4(path: Path, networks: Sequence[str]) -> None:
    """Draw A0I0, A1I0 and A0I1 of a simple and a complex scene with the true layers and each network's layers."""
    frames = [item for setting in ("rgb-simple", "textured-complex") for item in changed(setting, 64).items()]
    sheet(path, [(name, _answers(frame, networks)) for name, frame in frames], 120)


def figure5(path: Path, networks: Sequence[str]) -> None:
    """Draw two test scenes under two lights each."""
    world = build("world", "test_scenes(size=64)").object
    frames = world.render([world.scene(i)[1] for i in (0, 40, 5, 45)])
    rows = [(f"scene {i // 2}, {'AB'[i % 2]}", _answers(frame, networks)) for i, frame in enumerate(frames)]
    sheet(path, rows, 120)


def figure6(path: Path, networks: Sequence[str], worlds: dict[str, str]) -> None:
    """Draw a natural set of each kind under two lights; these are photographs, so the sheet is not for docs."""
    rows = []
    for name, text in worlds.items():
        world = build("world", text).object
        members = world.members(world.scene(min(3, len(world) - 1))[1])
        for i in (0, len(members) // 2):
            rows.append((f"{name} {i}", _answers(world.render([members[i]])[0], networks)))
    if rows:
        sheet(path, rows, 120)


def _answers(frame: Frame, networks: Sequence[str]) -> list[Panel]:
    panels = [Panel("image", frame.srgb())]
    if frame.truth.get("reflectance") is not None:
        truth = frame.truth
        panels += [Panel("true R", _as_srgb(truth["reflectance"])), Panel("true S", _as_srgb(truth["shading"]))]
    for name in networks:
        layers: Layers = build("method", name).object.decompose([frame])
        short = name.removeprefix("iid_")
        panels += [Panel(f"R {short}", _as_srgb(layers.reflectance)), Panel(f"S {short}", _as_srgb(layers.shading))]
    return panels


def _as_srgb(layer: np.ndarray) -> np.ndarray:
    top = max(float(np.quantile(layer, 0.99)), 1e-12)
    return linear_to_srgb(np.broadcast_to(layer / top, (*layer.shape[:2], 3)).astype(np.float32))


def standard(networks: Sequence[str], size: int) -> dict[tuple[str, str], list[float]]:
    """si-MSE, LMSE, DSSIM and, if installed, LPIPS of R and S on A0I0 and A1I0 of a textured complex scene."""
    scores, protocols = {}, [build("protocol", spec).object for spec in ("si_mse", "lmse", "dssim", *perceptual())]
    for image, frame in list(changed("textured-complex", size).items())[:2]:
        for name in networks:
            layers = build("method", name).object.decompose([frame])
            scores[image, name] = [v for protocol in protocols for v in protocol.both(frame, layers)]
    return scores


def figure7(path: Path, rows: dict[tuple[str, str], list[Row]], family: dict[str, str]) -> None:
    """Draw the mean sensitivity to Δa after 1, 2, … CAV runs: a panel for each network, sets thin, their mean thick."""
    wide, high, left, gap, top = 250, 160, 46, 30, 66
    parts = [svg_text(12, 22, "Sensitivity to Δa (RGB, simple) against the number of CAV runs", 15, weight="bold")]
    parts += [
        svg_text(12 + 150 * k, 42, f"— {name}", 12, _COLOURS[k]) for k, name in enumerate(("reflectance", "shading"))
    ]
    shown = [(m, some) for (variant, m), some in rows.items() if variant == "published"]
    for i, (method, some) in enumerate(shown):
        x0 = left + i * (wide + gap)
        parts.append(svg_text(x0, top, f"{method} ({family[method]}-like)", 12, weight="bold"))
        for v in (0.0, 0.5, 1.0):
            y = top + 12 + high * (1 - v)
            parts.append(f'<line x1="{x0}" x2="{x0 + wide}" y1="{y}" y2="{y}" stroke="#e3e6e9"/>')
            parts.append(svg_text(x0 - 6, y + 4, f"{v:g}", 11, "#555", "end"))
        for k, metric in enumerate(("runs_r", "runs_s")):
            runs = np.array([row.value for row in some if row.metric == metric and row.status == "ok"])
            if len(runs):
                means = np.cumsum(runs, axis=1) / np.arange(1, runs.shape[1] + 1)
                parts += [_path(line, x0, top + 12, wide, high, _COLOURS[k], 0.8, 0.4) for line in means]
                parts.append(_path(means.mean(axis=0), x0, top + 12, wide, high, _COLOURS[k], 2.5, 1.0))
        parts.append(svg_text(x0, top + high + 30, "1", 11, "#555"))
        parts.append(svg_text(x0 + wide, top + high + 30, "100 CAV runs", 11, "#555", "end"))
    width, height = left + max(len(shown), 1) * (wide + gap), top + high + 46
    write_svg(path, "Sensitivity against CAV runs", width, height, parts)


def _path(
    values: np.ndarray, x0: float, y0: float, wide: float, high: float, ink: str, thick: float, opacity: float
) -> str:
    step = wide / max(len(values) - 1, 1)
    return svg_line(((x0 + i * step, y0 + high * (1 - v)) for i, v in enumerate(values)), ink, thick, opacity)


def brightness(networks: Sequence[str], size: int, count: int = 20) -> dict[str, tuple[float, float]]:
    """By which factor R̂ and Ŝ are too bright: the geometric mean over test scenes of 1/λ, where λ·R̂ is nearest to R."""
    world = build("world", f"test_scenes(size={size})").object
    frames = world.render([world.scene(i)[1] for i in range(count)])
    factors = {}
    for name in networks:
        method, logs = build("method", name).object, []
        for frame in frames:
            pairs = colour_pairs(frame, method.decompose([frame]))
            logs.append([-np.log(max(float(scale(truth, answer, frame.mask)), 1e-12)) for truth, answer in pairs])
        reflectance, shading = np.exp(np.mean(logs, axis=0))
        factors[name] = (float(reflectance), float(shading))
    return factors
