"""The objectives of the learners as their papers write them: loops over images and latents, float64, no torch.

Higgins et al. 2017 (β-VAE), Chen et al. 2018 (β-TCVAE, §4.1 and appendix C), Kumar et al. 2018 (DIP-VAE, Eq. 6–8), Kim and
Mnih 2018 (FactorVAE, Eq. 2–3), Locatello et al. 2020 (labels).
"""

import math


def bernoulli(x, logits):
    """−Σ over pixels of x log p + (1 − x) log(1 − p), of one image."""
    total = 0.0
    for value, logit in zip(x, logits, strict=True):
        p = 1 / (1 + math.exp(-logit))
        total -= value * math.log(p) + (1 - value) * math.log(1 - p)
    return total


def kl_of(mean, log_variance):
    """The mean over images of KL(N(μ, σ²) ‖ N(0, 1))."""
    total = 0.0
    for mu, logs in zip(mean, log_variance, strict=True):
        for m, s in zip(mu, logs, strict=True):
            total += 0.5 * (m * m + math.exp(s) - s - 1)
    return total / len(mean)


def density(z, mean, log_variance):
    """N(z; mean, exp(log_variance))."""
    variance = math.exp(log_variance)
    return math.exp(-((z - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def weight(i, j, batch, count, estimate):
    """What image j weighs in the estimated density of code i."""
    if estimate == "weighted":
        return 1 / batch
    others = batch - 1
    if i == j:
        return 1 / count
    return (count - others) / (count * others) if j == (i + 1) % batch else 1 / others


def total_correlation(z, mean, log_variance, count, estimate):
    """The mean over codes of log q(z) − Σ_l log q(z_l)."""
    batch, latents, total = len(z), len(z[0]), 0.0
    for i in range(batch):
        joint, alone = 0.0, [0.0] * latents
        for j in range(batch):
            each = [density(z[i][k], mean[j][k], log_variance[j][k]) for k in range(latents)]
            w = weight(i, j, batch, count, estimate)
            joint += w * math.prod(each)
            alone = [a + w * e for a, e in zip(alone, each, strict=True)]
        total += math.log(joint) - sum(math.log(a) for a in alone)
    return total / batch


def covariance_penalty(mean, log_variance, kind, off, diagonal):
    """λ_od·Σ_{i≠j} C_ij² + λ_d·Σ_i (C_ii − 1)²."""
    batch, latents = len(mean), len(mean[0])
    centre = [sum(row[k] for row in mean) / batch for k in range(latents)]
    total = 0.0
    for a in range(latents):
        for b in range(latents):
            c = sum((row[a] - centre[a]) * (row[b] - centre[b]) for row in mean) / batch
            if a == b and kind == "ii":
                c += sum(math.exp(row[a]) for row in log_variance) / batch
            total += diagonal * (c - 1) ** 2 if a == b else off * c**2
    return total


def critic_terms(told, own, permuted):
    """mean of d_0 − d_1, and the critic's loss, of logits (n, 2)."""
    correlation = sum(a - b for a, b in told) / len(told)
    loss = 0.0
    for logits, right in ((own, 0), (permuted, 1)):
        for pair in logits:
            loss -= 0.5 * (pair[right] - math.log(sum(math.exp(v) for v in pair))) / len(logits)
    return correlation, loss


def label_terms(mean, targets):
    """Σ over images and factors of the cross-entropy of σ(μ_k) and the target."""
    return sum(bernoulli(t, mu[: len(t)]) for mu, t in zip(mean, targets, strict=True))
