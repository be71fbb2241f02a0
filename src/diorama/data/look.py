"""The effect of one change: the picture before and after, the difference, and a network's logits for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from diorama.adapt.live import component
from diorama.core import spec
from diorama.core.errors import InputError
from diorama.core.frame import Frame
from diorama.core.scene import Scene
from diorama.data.figures import Drawn, blank, short
from diorama.data.views import numbered, world

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The number of classes whose logits are drawn.
SHOWN = 6
BEFORE, AFTER = "#4c72b0", "#dd8452"


@dataclass(frozen=True, eq=False, repr=False)
class Look(Drawn):
    """One scene before and after a change; images are sRGB (h, w, 3), `difference` (h, w) the largest over channels.

    `logits_before` and `logits_after` (classes,) are None if no model was given.
    """

    world: str
    name: str
    changes: dict[str, Any]
    before: Frame
    after: Frame
    model: str = ""
    classes: tuple[str, ...] = ()
    logits_before: np.ndarray | None = None
    logits_after: np.ndarray | None = None

    @property
    def difference(self) -> np.ndarray:
        """How much each pixel changed, 0 to 1."""
        return np.abs(self.after.srgb() - self.before.srgb()).max(axis=2)

    def __repr__(self) -> str:
        changed = f"{(self.difference > 1 / 255).mean():.1%} of the pixels changed"
        return f"<look at {self.world}, scene {self.name}: {changes_text(self.changes)}; {changed}{self._logit_text()}>"

    def _logit_text(self) -> str:
        if self.logits_before is None or self.logits_after is None:
            return ""
        top = int(self.logits_before.argmax())
        fall = f"{self.logits_before[top]:.2f} → {self.logits_after[top]:.2f}"
        now = int(self.logits_after.argmax())
        moved = f", now class {self._class(now)}" if now != top else ""
        return f"; {self.model}: class {self._class(top)} {fall}{moved}"

    def _class(self, index: int) -> str:
        return self.classes[index] if index < len(self.classes) else str(index)

    def figure(self) -> Figure:
        """Before, after, difference and, with a model, the largest logits."""
        asked = self.logits_before is not None
        height, width = self.before.image.shape[:2]
        wide = 2.6 * width / height
        drawn = blank(3 * wide + (3.4 if asked else 0.3), 3.3)
        places = drawn.subplots(1, 4 if asked else 3, width_ratios=[wide] * 3 + [3.0] * asked)
        pictures = {"before": self.before.srgb(), changes_text(self.changes): self.after.srgb()}
        for axes, (title, image) in zip(places, pictures.items(), strict=False):
            axes.imshow(image, interpolation="nearest")
            _hide_ticks(axes, title)
        places[2].imshow(self.difference, cmap="magma", vmin=0, vmax=max(float(self.difference.max()), 1e-6))
        _hide_ticks(places[2], "difference")
        if asked:
            self._bars(places[3])
        return drawn

    def _bars(self, axes: Axes) -> None:
        """Draw the logits of the classes that are largest before or after."""
        one, two = np.asarray(self.logits_before), np.asarray(self.logits_after)
        shown = sorted(np.argsort(-np.maximum(one, two))[:SHOWN].tolist(), key=lambda i: one[i])
        place = np.arange(len(shown))
        axes.barh(place + 0.2, one[shown], 0.38, color=BEFORE, label="before")
        axes.barh(place - 0.2, two[shown], 0.38, color=AFTER, label="after")
        true = self.before.truth.get("label")
        axes.set_yticks(place, [self._class(i) + " (true)" * (i == true) for i in shown], fontsize=8)
        axes.axvline(0, color="0.3", linewidth=0.8)
        axes.set_title(f"logits of {short(self.model)}", fontsize=9)
        axes.tick_params(axis="x", labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylabel("class", fontsize=8)
        axes.legend(fontsize=7, frameon=False, loc="lower right")


def _hide_ticks(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])


def changes_text(changes: Mapping[str, Any]) -> str:
    """Changes as they are written on the command line.

    >>> changes_text({"beak": None, "light": 3})
    'beak=none, light=3'
    """
    return ", ".join(f"{name}={'none' if value is None else value}" for name, value in changes.items())


def look(on: Any, scene: int | Scene = 0, do: Any = None, model: Any = None, seed: int = 0) -> Look:
    """A scene before and after a change, with a model's logits: look("birds", 3, {"beak": None}, "birds_cnn").

    `on` is a world or its spec, `scene` the number of a scene of the seed, or a scene. `do` are the changes, as a
    dictionary or "beak=none, eye=2". `model` is a torch module, a model or a spec.
    """
    view = world(on)
    changes = spec.changes(do) if isinstance(do, str) else dict(do or {})
    if not changes:
        raise InputError(f"look: give a change, e.g. do={{{next(iter(view.factors), 'name')!r}: None}}")
    name, first = (scene.key[:8], scene) if isinstance(scene, Scene) else numbered(view, scene, seed)
    before, after = view.render([first, view.do(first, **changes)])
    if model is None:
        return Look(view.name, name, changes, before, after)
    asked = component("model", model)
    answers = [asked.object.logits(np.ascontiguousarray(frame.srgb())[None])[0] for frame in (before, after)]
    return Look(view.name, name, changes, before, after, asked.label, view.class_names, *map(np.asarray, answers))
