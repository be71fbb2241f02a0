"""AdaBoost of stumps, marginals of a random field and a mixture of experts, one item at a time; slow on purpose."""

import itertools
import math

import numpy as np


def boost(x, y, weights, rounds, cuts):
    """Every feature, every cut, both signs, in turn; returns the margin of the training samples."""
    n, features = x.shape
    w = [weight / sum(weights) for weight in weights]
    margin = [0.0] * n
    for _ in range(rounds):
        best = (1.0, None)
        for f in range(features):
            for cut in cuts[f]:
                for sign in (1, -1):
                    said = [sign if x[i, f] > cut else -sign for i in range(n)]
                    error = sum(w[i] for i in range(n) if said[i] != (1 if y[i] else -1))
                    if error < best[0] - 1e-12:
                        best = (error, said)
        error, said = best
        alpha = 0.5 * math.log((1 - error) / error)
        for i in range(n):
            margin[i] += alpha * said[i]
            w[i] *= math.exp(-alpha * said[i] * (1 if y[i] else -1))
        w = [weight / sum(w) for weight in w]
    return margin


def marginals(evidence, pairs, coupling):
    """The log-odds of every node by summing over all labellings."""
    nodes = len(evidence)
    on, off = np.zeros(nodes), np.zeros(nodes)
    for labels in itertools.product((0, 1), repeat=nodes):
        p = math.exp(sum(e for e, label in zip(evidence, labels, strict=True) if label))
        for (a, b), k in zip(pairs, coupling, strict=True):
            beta = (1 + k) / 2
            p *= beta if labels[a] == labels[b] else 1 - beta
        for i, label in enumerate(labels):
            (on if label else off)[i] += p
    return np.log(on / off)


def experts(patch, look, prototypes, functions, width):
    """ŝ of one patch."""
    w = [math.exp(-sum((look - q) ** 2) / width) for q in prototypes]
    return sum(wi * float(f @ patch) for wi, f in zip(w, functions, strict=True)) / sum(w)
