"""Pictures of trained learners: what every latent does, and counterfactuals of three frames."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from diorama.core.cases import Panel
from diorama.core.catalogue import build
from diorama.core.frame import Frame
from diorama.metrics.cg import farthest
from diorama.metrics.irs import irs
from diorama.metrics.uc import top
from studies.disentangle.trainings import checkpoint
from studies.figures import sheet

#: Frames that say how far each latent goes.
PICTURED = 300


def pictures(names: list[str], world: str, folder: Path, called: Callable[[str], str]) -> list[str]:
    """A sheet of traversals and one of counterfactuals for every learner; gives Markdown that shows them.

    `world` is what learners of candle are shown; those of sprites are shown sprites.
    """
    shown = {group: _frames(world if group == "candle" else group) for group in {n.partition("/")[0] for n in names}}
    return [_drawn(name, *shown[name.partition("/")[0]], folder, called) for name in names]


def _frames(spec: str) -> tuple[list[Any], np.ndarray, list[str]]:
    """Frames, their factors as places among the levels, and the names of the factors."""
    world: Any = build("world", spec).object
    step = max(world.length // PICTURED, 1) if spec == "sprites" else 1  # sprites are in the order of their factors
    frames = world.render([world.scene_at(0, i * step)[1] for i in range(PICTURED)])
    levels = world.levels
    factors = [[list(v).index(f.truth["factors"][k]) for k, v in levels.items()] for f in frames]
    return frames, np.array(factors), [*levels]


def _drawn(
    name: str, frames: list[Any], factors: np.ndarray, levels: list[str], folder: Path, called: Callable[[str], str]
) -> str:
    vae: Any = build("method", f"burgess_vae(checkpoint={checkpoint(name)})").object
    codes = np.concatenate([vae.encode(frames[i : i + 100]) for i in range(0, len(frames), 100)])
    widest, file = np.argsort(-codes.std(axis=0))[:6], name.replace("/", "_")
    sheet(folder / f"traversal_{file}.png", [(f"z{m}", moved(vae, codes, int(m))) for m in widest], 64)
    chosen, far = top(np.nan_to_num(irs(codes, factors, rule="all").matrix), 1), farthest(codes)
    first = np.unique(factors[:, 0], return_index=True)[1]  # a frame of each scene, or of each shape
    rows = [("", counterfactual(vae, frames[n], codes[n], far[n], chosen, levels)) for n in first]
    sheet(folder / f"counterfactual_{file}.png", rows, 88)
    group, _, learner = name.partition("/")
    title = called(learner)
    both = [f"![{what}s of {title}]({folder.name}/{what}_{file}.png)" for what in ("traversal", "counterfactual")]
    return "\n\n".join([f"**{title}**, {group}", *both])


def counterfactual(
    vae: Any, frame: Frame, code: np.ndarray, far: np.ndarray, chosen: np.ndarray, factors: list[str]
) -> list[Panel]:
    """A frame, its reconstruction, and one picture for each factor, whose `chosen` latents are those of the code `far`."""
    codes = [code, *(np.where(chosen[:, i], far, code) for i in range(len(factors)))]
    captions = ["decoded", *(f"{factor} moved" for factor in factors)]
    decoded = zip(captions, vae.decode(np.stack(codes)), strict=True)
    return [Panel("frame", frame.srgb()), *(Panel(caption, image) for caption, image in decoded)]


def moved(vae: Any, codes: np.ndarray, latent: int) -> list[Panel]:
    """One latent of the first code from its 2nd to its 98th percentile."""
    steps = np.quantile(codes[:, latent], np.linspace(0.02, 0.98, 7))
    changed = np.repeat(codes[:1], len(steps), axis=0)
    changed[:, latent] = steps
    return [Panel(f"{s:+.1f}", image) for s, image in zip(steps, vae.decode(changed), strict=True)]
