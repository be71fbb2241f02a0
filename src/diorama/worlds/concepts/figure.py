"""Figure 3 of Gupta et al. (2022): images of each kind of concept set beside the path of the lamp, seen from above (SVG)."""

import base64
from html import escape
from typing import Any

import numpy as np

from diorama.core.scene import Scene
from diorama.io.images import encode_webp, quantise
from diorama.worlds.concepts.scenes import LAMPS, SWEEP
from diorama.worlds.tabletop.stage import lamp_position

_TILE, _GAP, _HEAD, _PLAN, _COLUMNS = 88, 4, 34, 330, 8
_WARM, _SOFT, _DARK = "#d9822b", "#6b7280", "#1f2937"
_SIGN = {"albedo": "Δa: the paint changes", "light": "Δi: the lamp moves"}


def figure3(world: Any) -> str:
    """An SVG with a set of each kind as rows of images, and the lamps of the first scene."""
    shown = _one_of_each(world)
    rows = [_row(world, scene, i) for i, scene in enumerate(shown)]
    staged = [scene for scene in shown if "lights" in scene.params]
    height = max(len(rows) * (_TILE + _HEAD) + 10, _PLAN + 60 if staged else 0)
    left = _PLAN + 20 if staged else 0
    width = left + _COLUMNS * (_TILE + _GAP) + 10
    plan = _plan(staged[0]) if staged else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif"'
        f' role="img"><title>Concept sets and the path of the lamp</title><rect width="{width}" height="{height}"'
        f' fill="#fff"/>{plan}<g transform="translate({left} 0)">{"".join(rows)}</g></svg>'
    )


def _one_of_each(world: Any) -> list[Scene]:
    """A set of each setting and change; each setting shows another base scene if there are enough."""
    kinds: dict[tuple[str, str], list[Scene]] = {}
    for i in range(len(world)):
        scene = world.scene(i)[1]
        kinds.setdefault((scene.params["setting"], scene.params["change"]), []).append(scene)
    settings = list(dict.fromkeys(setting for setting, _ in kinds))
    return [sets[settings.index(setting) % len(sets)] for (setting, _), sets in kinds.items()]


def _row(world: Any, concept: Scene, index: int) -> str:
    members = world.members(concept)
    shown = [members[i] for i in np.unique(np.linspace(0, len(members) - 1, _COLUMNS).round().astype(int))]
    top, p = index * (_TILE + _HEAD) + 24, concept.params
    said = escape(f"{p['setting']}, {_SIGN[p['change']]}, {len(members)} images")
    tiles = [_tile(frame.srgb(), i * (_TILE + _GAP), top + 4) for i, frame in enumerate(world.render(shown))]
    name = f'<tspan fill="{_SOFT}" font-weight="400"> · {escape(p["name"])}</tspan>'
    return (
        f'<text x="0" y="{top - 4}" font-size="12" font-weight="600" fill="{_DARK}">{said}{name}</text>{"".join(tiles)}'
    )


def _tile(image: np.ndarray, x: int, y: int) -> str:
    data = base64.b64encode(encode_webp(quantise(image, 8), 88)).decode()
    return f'<image x="{x}" y="{y}" width="{_TILE}" height="{_TILE}" href="data:image/webp;base64,{data}"/>'


def _plan(scene: Scene) -> str:
    """Table, objects, camera and lamps from above; 1 m is a fixed length, the camera looks up the page."""
    p = scene.params
    unit, cx, cy = 29.0, _PLAN / 2, 110.0

    def at(x: float, y: float) -> str:
        return f"{cx + unit * x:.1f} {cy - unit * y:.1f}"

    def lamp(angle: float) -> np.ndarray:
        return lamp_position({**p, "light": 0, "light_angle": angle})

    def dot(place: Any, radius: float, style: str) -> str:
        x, y = place[:2]
        return f'<circle cx="{cx + unit * x:.1f}" cy="{cy - unit * y:.1f}" r="{radius:.1f}" {style}/>'

    def label(place: Any, said: str) -> str:
        return f'<text transform="translate({at(*place)})" font-size="11" fill="{_SOFT}" text-anchor="middle">{said}</text>'

    eye = p["camera"]["distance"] * np.cos(np.radians(p["camera"]["elevation"]))
    solids = [dot(t["position"], unit * 0.5 * t["scale"], 'fill="#9ca3af"') for t in p["objects"]]
    sweep = [dot(lamp(a), 3.2, f'fill="{_WARM}"') for a in SWEEP]
    fixed = [dot(lamp(a), 7, f'fill="none" stroke="{_DARK}" stroke-width="1.5"') for a in LAMPS]
    ends = "".join(label(1.26 * lamp(a)[:2], f"{a:+.0f}°".replace("-", "−")) for a in (SWEEP[0], SWEEP[-1]))
    far = -1.12 * float(lamp(0)[1])
    camera = f'<path d="M{at(0, -eye + 0.35)} L{at(-0.3, -eye - 0.3)} L{at(0.3, -eye - 0.3)} Z" fill="{_DARK}"/>'
    view = f'<path d="M{at(0, -eye)} L{at(-1.7, 1.5)} M{at(0, -eye)} L{at(1.7, 1.5)}" stroke="#d1d5db" fill="none"/>'
    back = f'<path d="M{at(-5.4, 1.8)} L{at(5.4, 1.8)}" stroke="#d1d5db" stroke-width="5"/>'
    lines = (
        f"● Δi: {len(SWEEP)} places, every 2°, without 0°",
        f"○ Δa: four fixed lamps, at {', '.join(f'{a:+.0f}°'.replace('-', '−') for a in LAMPS)}",
        f"{p['power']:.0f} W, half side {p['radius']:g} m, {np.linalg.norm(lamp(0)):.2f} m away, {lamp(0)[2]:.1f} m high",
    )
    under = cy + unit * max(eye + 0.9, far + 0.6)
    said = f'<text x="8" y="20" font-size="12" font-weight="600" fill="{_DARK}">The path of the lamp, from above</text>'
    for i, line in enumerate(lines, 1):
        said += f'<text x="8" y="{under + 18 * i:.0f}" font-size="11" fill="{_SOFT}">{line}</text>'
    return said + back + view + "".join(solids + sweep + fixed) + camera + ends + label((0, -eye - 0.95), "camera")
