"""Response invariance: how far reflectance follows the light and shading the paint in concept sets; no truth, no CAV.

asks                    {Do} {methods} keep light out of the paint and paint out of the light?
invariance_reflectance  ↓ how far reflectance follows a change of light alone: 0 ignores it, 1 follows it like the
                        image
invariance_shading      ↓ how far shading follows a change of paint alone
texture_reflectance     · texture that the reflectance keeps; 0 unmasks a constant answer
texture_shading         · texture that the shading keeps; 0 unmasks a constant answer
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bench import Bench
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import Bounds, World
from diorama.core.errors import Undefined
from diorama.core.frame import Frame, channel_mean
from diorama.core.scene import Scene
from diorama.metrics.invariance import centred_log, invariance, texture
from diorama.protocols.concepts.concept_sets import BRANCHES, OnSets, change_of, image_case, not_in_set, set_members
from diorama.protocols.layers import judging

#: The layer that should not change in a set where the light, or the paint, changes.
STILL = {"light": "reflectance", "albedo": "shading"}


@dataclass(frozen=True, slots=True)
class ResponseInvariance(OnSets):
    """Variance over a set's images of centred log R̂ (Δi sets) or log Ŝ (Δa sets), divided by that of log I.

    0 ignores the change, 1 follows it like the image; a planted leak α scores about α² (highlights aside). The scale of an
    image does not matter. A constant answer is perfectly invariant and has no `texture`, the variance over pixels of the
    mean answer over that of the image.
    Saved predictions are read as `<set>/<image>.npz` or `<set>/<image>/reflectance.png`, images numbered 000, 001 ….
    """

    cite = ("gupta2022",)
    metrics: ClassVar[tuple[str, ...]] = (
        *("invariance_reflectance", "invariance_shading", "texture_reflectance", "texture_shading"),
    )
    ranges: ClassVar[dict[str, Bounds]] = {"texture_reflectance": (0.0, None), "texture_shading": (0.0, None)}

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        return judging.usual(world) | {
            "encoding": "natural log of the linear channel mean, at least 1e-3 of the image's mean",
            "scale": "every image its own",
            "views": "all images of a concept set",
            "mean": "arithmetic over sets",
        }

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The change of the layer that should stay as it is, over the images of one set."""
        still, members = STILL[change_of(case)], set_members(bench, case)
        frames = bench.frames(members)
        mask = np.logical_and.reduce([frame.mask for frame in frames])
        images = np.array([centred_log(channel_mean(frame.linear()), mask) for frame in frames])
        answers = np.array([centred_log(layer, mask) for layer in _answers(bench, case, members, still)])
        value, detail = invariance(answers, images), texture(answers, images)
        if np.isnan(value + detail):
            raise Undefined("the images of the set do not change, or are constant")
        for branch in BRANCHES:
            for name, result in (("invariance", value), ("texture", detail)):
                metric = f"{name}_{branch}"
                yield Score(metric, result) if branch == still else not_in_set(metric, case)

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """The first, middle and last image of the set, and the layer that should not change."""
        still, members = STILL[change_of(case)], set_members(bench, case)
        panels = []
        for i in (0, len(members) // 2, len(members) - 1):
            frame: Frame = bench.frame(members[i])
            layer = channel_mean(getattr(_one(bench, case, members, i), still))
            panels += [Panel(f"image {i}", frame.srgb()), Panel(still, judging.as_shown(judging.exposed(layer, frame)))]
        return panels


def _one(bench: Bench, case: Case, members: list[Scene], i: int) -> Layers:
    return replace(bench, case=image_case(case, i)).layers(members[i])


def _answers(bench: Bench, case: Case, members: list[Scene], still: str) -> Iterator[np.ndarray]:
    return (channel_mean(getattr(_one(bench, case, members, i), still)) for i in range(len(members)))
