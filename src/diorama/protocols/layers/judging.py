"""What protocols that judge reflectance and shading share: the true answer, a leak of growing dose, pictures."""

from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from diorama.core.answers import Layers
from diorama.core.bench import Bench
from diorama.core.cases import Case, Panel, Score
from diorama.core.contracts import Direction, Protocol, World
from diorama.core.controls import DOSES
from diorama.core.errors import Undefined
from diorama.core.frame import Frame, channel_mean, linear_to_srgb
from diorama.core.scene import Scene

#: ln of a score of 0 would be infinite: scores are raised to this before the logarithm.
LN_FLOOR = 1e-12
#: The meaning of the doses.
LEAK = "share of the true shading leaked into the true reflectance"


class OnLayers(Protocol):
    """A protocol that judges reflectance and shading: the true answer, a leak of growing dose, pictures."""

    __slots__ = ()

    track = "decompose"
    direction: Direction = "lower"
    doses: tuple[float, ...] = DOSES
    dose_name = LEAK
    example = "diorama run -w mondrian -m retinex_gray -p {}"

    def oracle(self, bench: Bench, scene: Scene, target: int | None) -> Layers:
        """The world's truth."""
        truth = bench.frame(scene).truth
        if truth.get("reflectance") is None or truth.get("shading") is None:
            raise Undefined("the world has no true layers")
        return Layers(truth["reflectance"], truth["shading"], truth.get("specular"))

    def dosed(self, bench: Bench, scene: Scene, target: int | None, dose: float) -> Layers:
        """The true reflectance times the true shading to the power of the dose; the shading is divided by the same."""
        true = self.oracle(bench, scene, target)
        leak = np.maximum(channel_mean(true.shading)[:, :, None], 1e-6) ** np.float32(dose)
        return Layers(true.reflectance * leak, true.shading / leak)

    def pictures(self, bench: Bench, case: Case) -> list[Panel]:
        """The frame, the true layers, the answer's layers, and where they differ."""
        return comparison(bench.frame(case.scene), bench.layers(case.scene))


class OnBothLayers(OnLayers):
    """A protocol that scores each layer by one number (`both`); methods are ranked by the mean of the two."""

    __slots__ = ()

    needs = ("reflectance", "shading")

    @abstractmethod
    def both(self, frame: Frame, layers: Layers) -> tuple[float, float]:
        """The score of reflectance and of shading; NaN where there is none."""

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """The mean of both layers, then reflectance and shading; ln of the mean where the protocol names it."""
        name, *others = self.metrics
        reflectance, shading = self.both(bench.frame(case.scene), bench.layers(case.scene))
        if np.isnan(reflectance + shading):
            raise Undefined("the truth is zero everywhere on the mask, or the image is smaller than one window")
        mean = (reflectance + shading) / 2
        yield Score(name, mean)
        yield Score(f"{name}_reflectance", reflectance)
        yield Score(f"{name}_shading", shading)
        if f"ln_{name}" in others:
            yield Score(f"ln_{name}", float(np.log(max(mean, LN_FLOOR))))

    def objective(self, layers: Layers, frame: Frame) -> float:
        """The score of one answer, for methods that are fitted; lower is better."""
        return sum(self.both(frame, layers)) / 2 * (1 if self.direction == "lower" else -1)


@lru_cache(maxsize=4)
def true_gray(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The true reflectance and shading of a frame as channel means, (h, w)."""
    return channel_mean(frame.truth["reflectance"]), channel_mean(frame.truth["shading"])


def gray_pairs(frame: Frame, layers: Layers) -> list[tuple[np.ndarray, np.ndarray]]:
    """(truth, estimate) of reflectance and of shading as channel means (h, w), zero off the mask."""
    estimates = channel_mean(layers.reflectance), channel_mean(layers.shading)
    masked = [np.where(frame.mask, x, 0.0) for x in (*true_gray(frame), *estimates)]
    return [(masked[0], masked[2]), (masked[1], masked[3])]


def colour_pairs(frame: Frame, layers: Layers) -> list[tuple[np.ndarray, np.ndarray]]:
    """(truth, estimate) of both layers (h, w, 1 or 3), zero off the mask; gray where either side is gray."""
    pairs = []
    for name in ("reflectance", "shading"):
        both = [np.where(frame.mask[:, :, None], x, 0.0) for x in (frame.truth[name], getattr(layers, name))]
        if both[0].shape != both[1].shape:
            both = [channel_mean(x)[:, :, None] for x in both]
        pairs.append((both[0], both[1]))
    return pairs


def usual(world: World) -> dict[str, str]:
    """The default entries of `settings`."""
    return {
        "encoding": "linear",
        "scale": "none",
        "window": "the whole image",
        "mask": mask_of(world),
        "mean": "arithmetic over cases",
        "tuning": "leave one out",
    }


def counted_mask(world: World) -> str:
    """The entry of `settings` about the mask where pixels off it are black and count."""
    return f"{mask_of(world)}, black outside and counted" if "mask" in world.truth else "none"


def mask_of(world: World) -> str:
    """The entry of `settings` about the mask."""
    return "the world's" if "mask" in world.truth else "none"


def comparison(frame: Frame, layers: Layers) -> list[Panel]:
    """The image, then truth, answer and error of each layer; the answer alone for a layer without truth."""
    panels = [Panel("image", frame.srgb())]
    for name in ("reflectance", "shading"):
        answer = channel_mean(getattr(layers, name))
        if frame.truth.get(name) is None:
            panels.append(Panel(name, as_shown(_aligned(answer, answer, frame.mask)[1])))
            continue
        truth, answer = _aligned(channel_mean(frame.truth[name]), answer, frame.mask)
        error = np.abs(truth - answer)[:, :, None] * np.array([1.0, 0.45, 0.1])
        panels += [
            Panel(f"true {name}", as_shown(truth)),
            Panel(name, as_shown(answer)),
            Panel("error", np.clip(error * 3, 0, 1)),
        ]
    return panels


def _aligned(truth: np.ndarray, answer: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both layers divided by the truth's 99th percentile, after scaling the answer to the truth by least squares."""
    scale = (truth * answer)[mask].sum() / max((answer * answer)[mask].sum(), 1e-12)
    top = max(np.quantile(truth[mask], 0.99), 1e-12)
    return np.where(mask, truth / top, 0), np.where(mask, answer * scale / top, 0)


def exposed(layer: np.ndarray, frame: Frame) -> np.ndarray:
    """A gray layer (h, w) over its 99th percentile on the frame's mask, zero off it."""
    return np.where(frame.mask, layer / max(float(np.quantile(layer[frame.mask], 0.99)), 1e-12), 0)


def as_shown(layer: np.ndarray) -> np.ndarray:
    """A gray layer (h, w) as a picture."""
    return linear_to_srgb(np.repeat(layer[:, :, None], 3, axis=2))
