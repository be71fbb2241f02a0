"""LMSE: local mean squared error of shading and reflectance, parameters chosen leave-one-out (Grosse et al. 2009).

asks              How well {do} {methods} separate paint from light?
lmse              ↓ squared error of reflectance and shading in small windows, each with its best scale, as a share of
                  their energy: 0 perfect
lmse_reflectance  ↓ the same of the reflectance alone
lmse_shading      ↓ the same of the shading alone
ln_lmse           ↓ natural logarithm of lmse, from which papers make geometric means
reconstruction    ↓ how far reflectance times shading is from the image at the best scale: a check of consistency, not of
                  truth
truth_residual    · how far the true reflectance times shading is from the image: the reconstruction of a perfect answer
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from diorama.core.answers import Layers
from diorama.core.bench import Bench
from diorama.core.cases import Case, Score
from diorama.core.contracts import Bounds, World
from diorama.core.errors import InputError
from diorama.core.frame import Frame, channel_mean, residual
from diorama.metrics.lmse import lmse, lmse_barron, lmse_fan
from diorama.protocols.layers import judging


@dataclass(frozen=True, slots=True)
class Lmse(judging.OnBothLayers):
    """½·LMSE(shading) + ½·LMSE(reflectance) by one of three rules that share the name.

    preset  grosse (grosse2009): gray (channel means), masked, errors over energy. barron (barron2015): the same on
            zero-padded tilings, the half offset at index 9; papers give geometric means, so `ln_lmse` is scored too.
            fan (fan2018; also Narihira 2015 and MPI Sintel), as the released script: in colour (gray where truth or
            answer is gray), one scale per window for all channels, the mean of their squared errors, neither mask nor
            energy
    k       side of the windows in pixels, one every k/2; None for the preset's: 20, with fan 10 % of the longest side

    The script of `fan` does not decode files; here all layers are linear. On one set of answers the three rules
    differ eightfold. Parameters are tuned for each case: the grid point with the smallest sum over the other cases.
    Also scored: `reconstruction`, min over k of ‖I − k·R·S − C‖/‖I‖ of the answer, and `truth_residual`, the same of
    the world's own truth.
    """

    cite = ("grosse2009", "barron2015", "narihira2015", "fan2018")
    ranges: ClassVar[dict[str, Bounds]] = {"ln_lmse": (None, 0.0)}
    #: Gehler et al., NIPS 2011, Table 1 (leave-one-out on the 16 objects), taken from other papers and not verified by us;
    #: the 2009 paper prints no numbers. Its Tappen rows use the authors' implementations, ours were written from the papers.
    gehler2011: ClassVar[dict[tuple[str, str], float]] = {
        ("mit_intrinsic", "decompose/baseline"): 0.0726,
        ("mit_intrinsic", "decompose/retinex_gray"): 0.0407,
        ("mit_intrinsic", "decompose/retinex_color"): 0.0295,
        ("mit_intrinsic", "decompose/weiss"): 0.0215,
        ("mit_intrinsic", "decompose/weiss_retinex"): 0.0164,
        ("mit_intrinsic", "decompose/tappen05"): 0.0562,
        ("mit_intrinsic", "decompose/tappen06"): 0.0390,
    }

    preset: Literal["grosse", "grosse2009", "barron", "barron2015", "fan", "fan2018"] = "grosse"
    k: int | None = None

    def __post_init__(self) -> None:
        if self.k is not None and (self.k < 2 or (self.k % 2 and self.rule != "fan")):
            raise InputError(f"lmse: k={self.k} is not a window; give an even number of pixels, or leave it out")

    @property
    def rule(self) -> str:
        """The preset without its year."""
        return self.preset.rstrip("0123456789")

    @property
    def published(self) -> dict[tuple[str, str], float]:
        """Known means under exactly this protocol."""
        return self.gehler2011 if self.rule == "grosse" and self.k in (None, 20) else {}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of a case, the score first."""
        logarithm = () if self.rule == "grosse" else ("ln_lmse",)
        return ("lmse", "lmse_reflectance", "lmse_shading", *logarithm, "reconstruction", "truth_residual")

    def settings(self, world: World) -> dict[str, str]:
        """What is printed with every number."""
        k = self.k or 20
        window = {
            "grosse": f"{k} pixels every {k // 2}, energy-normalised",
            "barron": f"{k} pixels, four zero-padded tilings offset by {k // 2 - 1}, energy-normalised",
            "fan": f"{self.k or '10 % of the longest side'} every half window, mean of squared errors clipped at 1",
        }
        mask = {
            "fan": f"{judging.mask_of(world)}, set to zero outside and counted" if "mask" in world.truth else "none"
        }
        geometric = "arithmetic over cases; papers give the geometric one, exp of the mean of ln_lmse"
        quoted = {"published": "Gehler et al. 2011, Table 1 (unverified)"}
        return judging.usual(world) | {
            "encoding": "linear, colour where both sides have it" if self.rule == "fan" else "linear, gray",
            "scale": "one per window",
            "window": window[self.rule],
            "mask": mask.get(self.rule, judging.mask_of(world)),
            **({} if self.rule == "grosse" else {"mean": geometric}),
            **(quoted if self.published and world.as_published else {}),
        }

    def both(self, frame: Frame, layers: Layers) -> tuple[float, float]:
        """LMSE of reflectance and of shading."""
        if self.rule == "fan":
            reflectance, shading = (lmse_fan(*pair, self.k) for pair in judging.colour_pairs(frame, layers))
            return reflectance, shading
        k, (true_reflectance, true_shading) = self.k or 20, judging.true_gray(frame)
        pairs = ((true_reflectance, layers.reflectance), (true_shading, layers.shading))
        if self.rule == "barron":
            reflectance, shading = (lmse_barron(c, channel_mean(e), frame.mask, k) for c, e in pairs)
        else:
            reflectance, shading = (lmse(c, channel_mean(e), frame.mask, k, k // 2) for c, e in pairs)
        return reflectance, shading

    def score(self, bench: Bench, case: Case) -> Iterator[Score]:
        """LMSE by the preset's rule, then the residuals of the answer and of the truth."""
        yield from judging.OnBothLayers.score(self, bench, case)
        frame = bench.frame(case.scene)
        yield Score("reconstruction", residual(explained(frame, bench.layers(case.scene))))
        if bench.point == 0:
            yield Score("truth_residual", residual(frame))


def explained(frame: Frame, layers: Layers) -> Frame:
    """The frame with the answer in place of its truth, so that `residual` is that of the answer."""
    truth = {"mask": frame.mask, "reflectance": layers.reflectance, "shading": layers.shading}
    if layers.specular is not None:
        truth["specular"] = layers.specular
    return Frame(frame.scene, frame.image, frame.encoding, truth)
