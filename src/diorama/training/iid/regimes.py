"""How each decomposition network learns: a module whose forward pass is the loss of a batch. Imports torch.

A batch is (n, 10, h, w): linear image (3), reflectance (3), shading (3) and the weight of each pixel. The supervised
regime learns from the layers of its images, the time-lapse regime from images alone, the translation regime from images
and layers of other scenes: domains without pairs.
"""

from itertools import pairwise

from torch import Tensor, cat, nn
from torch.func import functional_call

from diorama.methods.decompose.iid import networks as nets
from diorama.training.iid import losses


def _parts(batch: Tensor) -> tuple[Tensor, ...]:
    return batch.split((3, 3, 3, 1), 1)


def _log(x: Tensor) -> Tensor:
    return x.clamp(min=1e-3).log()


class Supervised(nn.Module):
    """CGIntrinsics: exact R and S of every image.

    si-MSE of R and S + 0.5·gradients of log R and log S at 4 scales + 2·reconstruction + ordinal (1) + smooth shading (1)
    + dense smoothness of reflectance (0.5). Weights of the first three are the original's; ordinal and SAW terms stand for
    human labels, which exact layers make redundant, so they weigh less than the original's 4 and 1.
    """

    def __init__(self) -> None:
        super().__init__()
        self.net = nets.Unet(coloured=False)

    def forward(self, batch: Tensor) -> Tensor:
        """The loss of images with their own layers."""
        image, reflectance, shading, valid = _parts(batch)
        outputs = self.net(image**nets.GAMMA)
        r, s = outputs["reflectance"], outputs["shading"]
        true_r, true_s = _log(reflectance.sum(1, keepdim=True)), _log(shading.mean(1, keepdim=True))
        total = losses.scale_invariant_mse(self.net.component("reflectance", r, image), reflectance, valid)
        total = total + losses.scale_invariant_mse(s.exp(), true_s.exp(), valid)
        total = total + 0.5 * losses.gradient_matching(r, true_r, valid)
        total = total + 0.5 * losses.gradient_matching(s, true_s, valid)
        total = total + 2 * losses.mean((_log(image.sum(1, keepdim=True)) - r - s).square(), valid)
        total = total + losses.ordinal(r, true_r, valid) + losses.smooth_shading(s, true_s, valid)
        return total + 0.5 * losses.smooth_reflectance(r, image, valid)


class Timelapse(nn.Module):
    """BigTime: scenes under changing light, no truth.

    2·reconstruction of every image by every other's reflectance + 2·consistency of reflectance + 4·spatio-temporal
    smoothness of reflectance + smoothness of shading + 0.1·mean (log S)²: the original's weights.
    """

    def __init__(self, views: int) -> None:
        super().__init__()
        self.net, self.views = nets.Unet(coloured=True), views

    def forward(self, batch: Tensor) -> Tensor:
        """The loss of sequences of `views` images that follow each other."""
        image, _, _, valid = _parts(batch)
        outputs = self.net(image**nets.GAMMA)
        maps = (outputs["reflectance"], outputs["shading"], image, valid)
        r, s, image, valid = (x.unflatten(0, (-1, self.views)) for x in maps)
        total = 2 * losses.mean_all_pairs(_log(image) - s, r, valid) + 2 * losses.mean_all_pairs(r, r, valid)
        total = total + 4 * losses.smooth_over_time(r, image, valid)
        total = total + losses.smooth_light(s.mean(2, keepdim=True), image, valid)
        return total + 0.1 * losses.mean(s.square(), valid)


class Translation(nn.Module):
    """USI3D: images, reflectances and shadings of different scenes; what is shared is content, what differs is style.

    Each domain has encoders of content and style and a decoder. 10·reconstruction within a domain + content of R̂ and Ŝ
    is that of the image (1) + 10·|I − k·R̂·Ŝ| + least-squares adversaries for R̂ and Ŝ (2) + 0.01·KL of styles to N(0, 1).
    R̂·Ŝ is taken of values in [0, 1] (the released code multiplies values in [−1, 1]); k is the best factor for each image,
    since all three are divided by their own brightest value. Discriminators learn in the same step: R̂ and Ŝ are detached in
    their loss, and the weights of the discriminators are detached in the networks' loss.
    """

    def __init__(self) -> None:
        super().__init__()
        self.net = nets.Translator()
        self.contents = nn.ModuleDict({b: nets.Content() for b in nets.BRANCHES})
        self.styles = nn.ModuleDict({b: nets.style_encoder() for b in nets.BRANCHES})
        self.image, self.merge = nets.Decoder(), nets.mlp(2 * nets.STYLE, nets.STYLE)
        self.judges = nn.ModuleDict({b: Discriminators() for b in nets.BRANCHES})

    def forward(self, batch: Tensor) -> Tensor:
        """The loss of images and of unpaired layers, each divided by its brightest value."""
        image, reflectance, shading, _ = _parts(batch)
        x, real = image**nets.GAMMA, {"reflectance": reflectance**nets.GAMMA, "shading": shading**nets.GAMMA}
        content, style = self.net.content(x), self.net.style(x)
        split = self.net.split(style)
        outputs = {b: nets.unit(out) for b, out in self.net.decoded(content, split).items()}
        total = 10 * (x - fitted(outputs["reflectance"] * outputs["shading"], x)).abs().mean()
        total = total + 10 * (nets.unit(self.image(content, self.merge(split))) - x).abs().mean() + _prior(style)
        for branch in nets.BRANCHES:
            total = total + self._domain(branch, real[branch])
            total = total + 2 * adversary(self.judges[branch], real[branch], outputs[branch])
            again = self.contents[branch](outputs[branch])
            total = total + sum((a - b).abs().mean() for a, b in zip(again, content, strict=True)) / 3
        return total

    def _domain(self, branch: str, real: Tensor) -> Tensor:
        """A real layer through its own encoders and the decoder that images share."""
        style = self.styles[branch](real)
        again = nets.unit(self.net.decoders[branch](self.contents[branch](real), style))
        return 10 * (again - real).abs().mean() + _prior(style)


def _prior(style: Tensor) -> Tensor:
    """0.01·KL of a Gaussian with the batch's mean and variance to N(0, 1)."""
    mean, variance = style.mean(0), style.var(0, correction=0).clamp(min=1e-4)
    return 0.005 * (mean.square() + variance - variance.log() - 1).sum()


def fitted(answer: Tensor, truth: Tensor) -> Tensor:
    """Each image of the answer times the factor that brings it nearest to the truth in the mean square."""
    flat = (1, 2, 3)
    factor = (answer * truth).sum(flat) / answer.square().sum(flat).clamp(min=1e-6)
    return factor[:, None, None, None] * answer


class Discriminators(nn.Module):
    """One discriminator for an image and one for it at half size (USI3D has three): logits for small and large patches."""

    def __init__(self) -> None:
        super().__init__()
        self.fine, self.coarse = discriminator(), discriminator()

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, h, w) → (n, patches)."""
        return cat([self.fine(x).flatten(1), self.coarse(nn.functional.avg_pool2d(x, 2)).flatten(1)], 1)


def discriminator() -> nn.Sequential:
    """Three 4×4 convolutions of stride 2: one logit for every patch."""
    widths = (3, 16, 32, 64)
    parts: list[nn.Module] = []
    for a, b in pairwise(widths):
        parts += [nn.Conv2d(a, b, 4, 2, 1), nn.LeakyReLU(0.2)]
    return nn.Sequential(*parts, nn.Conv2d(widths[-1], 1, 1))


def adversary(judge: nn.Module, real: Tensor, made: Tensor) -> Tensor:
    """LSGAN: (D(real) − 1)² + D(made)² for the discriminators, (D(made) − 1)² for the generator (Mao et al. 2017)."""
    own = (judge(real) - 1).square().mean() + judge(made.detach()).square().mean()
    frozen = {k: v.detach() for k, v in judge.named_parameters()}
    return own + (functional_call(judge, frozen, (made,)) - 1).square().mean()


REGIMES = {"iid_supervised": Supervised, "iid_timelapse": Timelapse, "iid_translation": Translation}
