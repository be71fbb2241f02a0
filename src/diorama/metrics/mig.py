"""Mutual information gap and its relatives: MIG (Chen et al. 2018), MIG-sup (Li et al. 2020), DMIG (Watcharasupat 2021).

All are computed from one matrix I(z_l; g_i) of codes in 20 bins of equal width. With more than 20 factor values even
codes = factors stay below 1 (0.896 on the grid of dSprites). With few rows every I is too large, the small ones most: codes
that carry nothing get too high values (see the null); where one latent leads, the gap and so MIG are too low (0.60 at 300
rows, 0.67 at 1,000, 0.70 at 10,000 on a code of three factors). More draws of few rows do not help: all are biased alike.
"""

import numpy as np

from diorama.metrics.codes import Measured, Rule, binned, entropy, gap, mutual_information, sample


def mig(codes: np.ndarray, factors: np.ndarray, rule: Rule = "varies", bins: int = 20) -> Measured:
    """MIG = mean over factors of (I(z_(1); g) − I(z_(2); g)) / H(g), beside `mig_sup` and `dmig`.

    MIG-sup = mean over latents of the gap along factors of I(z; g)/H(g): a latent that carries two factors is punished.
    DMIG divides a factor's gap by H(g | g') where the second latent is the first one of another factor g': with dependent
    factors the gap cannot reach H(g). Per factor: MIG. The matrix is I in nats.

    >>> g = np.array([[i, j] for i in range(4) for j in range(4)])
    >>> {name: round(value, 6) for name, value in mig(g, g).values.items()}
    {'mig': 1.0, 'mig_sup': 1.0, 'dmig': 1.0}
    """
    part = sample(codes, factors, rule)
    if part.empty:
        return part.nothing("mig", "mig_sup", "dmig")
    information = mutual_information(binned(part.codes, bins), part.labels)
    bits = entropy(part.labels)
    per_factor = gap(information, axis=0) / bits
    single = part.labels.shape[1] < 2
    values = {
        "mig": float(per_factor.mean()),
        "mig_sup": float("nan") if single else float(gap(information / bits, axis=1).mean()),
        "dmig": _dmig(information, part.labels, bits),
    }
    return part.measured(values, information, per_factor)


def excess(factors: np.ndarray, bins: int = 20) -> np.ndarray:
    """By how much I(z; g)/H(g) is too large where z says nothing of g, for every factor that varies.

    (bins − 1)(values − 1) / 2N·H(g): the first order of the bias of counted information (Miller 1955).

    >>> excess(np.arange(300)[:, None] % 3).round(3)
    array([0.058])
    """
    part = sample(factors, factors)
    values = part.labels.max(axis=0) + 1
    return (bins - 1) * (values - 1) / (2 * len(part.labels) * entropy(part.labels))


def _dmig(information: np.ndarray, labels: np.ndarray, bits: np.ndarray) -> float:
    """The mean of gap / ceiling over the factors whose ceiling is not 0."""
    order = np.argsort(-information, axis=0, kind="stable")
    gaps, ceilings = gap(information, axis=0), bits.copy()
    shared = mutual_information(labels, labels)
    for i in range(len(bits)):
        rivals = [j for j in range(len(bits)) if j != i and len(order) > 1 and order[0, j] == order[1, i]]
        if rivals:
            ceilings[i] = bits[i] - shared[i, max(rivals, key=lambda j: information[order[1, i], j])]
    known = ceilings > 1e-9
    return float((gaps[known] / ceilings[known]).mean()) if known.any() else float("nan")
