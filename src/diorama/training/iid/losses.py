"""Losses of the three decomposition networks, after CGIntrinsics, BigTime and USI3D. Imports torch.

Maps are (n, c, h, w), `valid` (n, 1, h, w) is the weight of each pixel; r and s are logarithms of reflectance and shading.
Every loss is a weighted mean, so that its size does not depend on that of the images.
"""

import torch
from torch import Tensor

Offset = tuple[int, int]
NEAR: tuple[Offset, ...] = ((0, 1), (1, 0))
#: Pairs of pixels for terms over all pairs: straight and diagonal in turn, at growing distance.
FAR: tuple[Offset, ...] = ((0, 1), (1, 0), (2, 2), (2, -2), (0, 6), (6, 0), (10, 10), (10, -10))


def pair(x: Tensor, offset: Offset) -> tuple[Tensor, Tensor]:
    """x at all pixels p that have a pixel q = p + offset, and x at q.

    >>> [part.flatten().tolist() for part in pair(torch.arange(6).view(2, 3), (1, -1))]
    [[1, 2], [3, 4]]
    """
    (dy, dx), (h, w) = offset, x.shape[-2:]
    left, right = max(0, -dx), w - max(0, dx)
    return x[..., : h - dy, left:right], x[..., dy:, left + dx : right + dx]


def mean(values: Tensor, weights: Tensor) -> Tensor:
    """Σ w·v / Σ w, with w broadcast to v; 0 where all weights are 0."""
    wide = weights.expand_as(values)
    return (values * wide).sum() / wide.sum().clamp(min=1e-6)


def scale_invariant_mse(answer: Tensor, truth: Tensor, valid: Tensor) -> Tensor:
    """mean (α·a − t)², α = ⟨a, t⟩/⟨a, a⟩ for every image over all channels (Li and Snavely 2018, eq. 2)."""
    flat = (1, 2, 3)
    alpha = (valid * answer * truth).sum(flat) / (valid * answer * answer).sum(flat).clamp(min=1e-8)
    return mean((alpha[:, None, None, None] * answer - truth).square(), valid)


def gradient_matching(answer: Tensor, truth: Tensor, valid: Tensor, scales: int = 4) -> Tensor:
    """Σ over scales of mean |∇x d| + |∇y d|, d = answer − truth (logarithms), every second pixel at the next scale."""
    total = answer.new_zeros(())
    for step in (2**i for i in range(scales)):
        d, v = (part[:, :, ::step, ::step] for part in (answer - truth, valid))
        pairs = ((pair(d, offset), pair(v, offset)) for offset in NEAR)
        total = total + sum(mean((a - b).abs(), x * y) for (a, b), (x, y) in pairs)
    return total


def ordinal(r: Tensor, truth: Tensor, valid: Tensor, step: float = 0.12) -> Tensor:
    """Which of two pixels is darker (IIW): (Δr)² where the true |Δ| < step, max(0, step − sign·Δr)² elsewhere.

    step = log(1.12): what people call equal (Bell et al. 2014, as ranked in CGIntrinsics, eq. 9).
    """
    total = r.new_zeros(())
    for offset in FAR:
        (a, b), (c, d), (v, u) = (pair(x, offset) for x in (r, truth, valid))
        difference, true = a - b, c - d
        unequal = (step - true.sign() * difference).clamp(min=0).square()
        total = total + mean(torch.where(true.abs() < step, difference.square(), unequal), v * u)
    return total / len(FAR)


def smooth_shading(s: Tensor, truth: Tensor, valid: Tensor, flat: float = 0.02) -> Tensor:
    """(Δs)² between neighbours where the true shading is smooth (SAW): |Δ| < flat in logarithms."""
    total = s.new_zeros(())
    for offset in NEAR:
        (a, b), (c, d), (v, u) = (pair(x, offset) for x in (s, truth, valid))
        total = total + mean((a - b).square(), v * u * ((c - d).abs() < flat))
    return total


def appearance(image: Tensor, floor: float = 1e-3) -> Tensor:
    """The features that pixels are compared by: chromaticity / 0.025 and log intensity / 0.5, (n, 4, h, w)."""
    lifted = image.clamp(min=floor)
    total = lifted.sum(1, keepdim=True)
    return torch.cat([lifted / total / 0.025, total.log() / 0.5], 1)


def affinity(seen: Tensor, offset: Offset) -> Tensor:
    """exp(−½‖f_p − f_q‖²) of pixels p, q = p + offset, with f their `appearance` and their place / 16 pixels."""
    a, b = pair(seen, offset)
    far = (offset[0] ** 2 + offset[1] ** 2) / 256
    return torch.exp(-0.5 * ((a - b).square().sum(1, keepdim=True) + far))


def smooth_reflectance(r: Tensor, image: Tensor, valid: Tensor) -> Tensor:
    """Σ w_pq (r_p − r_q)² / Σ w_pq over pairs at growing distance: dense smoothness on a stencil."""
    features, total, weight = appearance(image), r.new_zeros(()), r.new_full((), 1e-6)
    for offset in FAR:
        (a, b), (v, u) = pair(r, offset), pair(valid, offset)
        w = affinity(features, offset) * v * u
        total, weight = total + (w * (a - b).square()).sum(), weight + w.sum() * r.shape[1]
    return total / weight


def all_pairs(x: Tensor, y: Tensor, p: Tensor, q: Tensor) -> Tensor:
    """Σ_i Σ_j p_i²·q_j²·(x_i − y_j)² over the images i, j of sequences (n, m, …), without the double sum.

    = Σq²·Σp²x² + Σp²·Σq²y² − 2·Σp²x·Σq²y (BigTime, supplement: all-pairs weighted least squares); O(m) in time.
    """
    p2, q2 = p.square(), q.square()
    own = q2.sum(1) * (p2 * x.square()).sum(1) + p2.sum(1) * (q2 * y.square()).sum(1)
    return (own - 2 * (p2 * x).sum(1) * (q2 * y).sum(1)).sum()


def mean_all_pairs(x: Tensor, y: Tensor, valid: Tensor) -> Tensor:
    """`all_pairs` over Σ_i Σ_j of the weights; `valid` (n, m, 1, h, w)."""
    wide = valid.expand_as(x)
    return all_pairs(x, y, wide, wide) / (wide.sum(1).square().sum()).clamp(min=1e-6)


def smooth_over_time(r: Tensor, image: Tensor, valid: Tensor) -> Tensor:
    """Dense spatio-temporal smoothness: Σ_pq w_pq Σ_ij (r_i(p) − r_j(q))², w from the median image of the sequence.

    r, image and valid are (n, m, c, h, w); pixel pairs lie on the stencil of `smooth_reflectance`.
    """
    features = appearance(image.median(1).values)
    total, weight = r.new_zeros(()), r.new_full((), 1e-6)
    for offset in FAR:
        (a, b), (v, u) = pair(r, offset), pair(valid, offset)
        w = affinity(features, offset)[:, None].sqrt() * v * u
        wide = w.expand_as(a)
        total = total + all_pairs(a, b, wide, torch.ones_like(wide))
        weight = weight + wide.square().sum() * r.shape[1]
    return total / weight


def smooth_light(s: Tensor, image: Tensor, valid: Tensor, trust: float = 30.0, scales: int = 4) -> Tensor:
    """Shading is smooth where an image's edge is the sequence's median edge, which is then paint (Weiss 2001).

    Σ over scales l of 1/l · mean of v_pq (Δs)², v_pq = exp(−trust·(J_pq − median over time of J_pq)²), J = Δ log I;
    s (n, m, 1, h, w), image (n, m, 3, h, w); every second pixel at the next scale.
    """
    light, total = image.clamp(min=1e-3).mean(2, keepdim=True).log(), s.new_zeros(())
    for level in range(1, scales + 1):
        step = 2 ** (level - 1)
        parts = [x[..., ::step, ::step] for x in (light, s, valid)]
        for offset in NEAR:
            (a, b), (c, d), (v, u) = (pair(x, offset) for x in parts)
            edge = a - b
            same = torch.exp(-trust * (edge - edge.median(1, keepdim=True).values).square())
            total = total + (same * v * u * (c - d).square()).sum() / (v * u).sum().clamp(min=1e-6) / level
    return total
