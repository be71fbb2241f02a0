"""Losses of decomposition networks as their papers write them: loops over images and pixels, float64."""

import numpy as np


def all_pairs(x, y, p, q):
    """Σ_i Σ_j p_i² q_j² (x_i − y_j)² over images (m, …) of one sequence (BigTime, eq. 4 of the supplement)."""
    return sum(float((p[i] ** 2 * q[j] ** 2 * (x[i] - y[j]) ** 2).sum()) for i in range(len(x)) for j in range(len(y)))


def scale_invariant_mse(answer, truth, valid):
    """mean over valid pixels of all images of (α·a − t)², α by least squares for each image."""
    errors = []
    for a, t, v in zip(answer, truth, valid, strict=True):
        inside = np.broadcast_to(v > 0, a.shape)
        alpha = np.linalg.lstsq(a[inside][:, None], t[inside], rcond=None)[0][0]
        errors += list((alpha * a[inside] - t[inside]) ** 2)
    return float(np.mean(errors))


def _neighbours(valid, offset):
    """Pairs ((y, x), (y', x')) of valid pixels of an (h, w) image that lie `offset` apart."""
    h, w = valid.shape
    for y in range(h):
        for x in range(w):
            far = y + offset[0], x + offset[1]
            if 0 <= far[0] < h and 0 <= far[1] < w and valid[y, x] and valid[far]:
                yield (y, x), far


def gradient_matching(answer, truth, valid, scales=4):
    """Σ over scales of mean |∇x d| + mean |∇y d| of logarithms (n, h, w)."""
    total = 0.0
    for step in (2**i for i in range(scales)):
        for offset in ((0, 1), (1, 0)):
            found = []
            for a, t, v in zip(answer, truth, valid, strict=True):
                d = (a - t)[::step, ::step]
                found += [abs(d[p] - d[q]) for p, q in _neighbours(v[::step, ::step], offset)]
            total += np.mean(found) if found else 0.0
    return total


def ordinal(r, truth, valid, offsets, step=0.12):
    """Mean over offsets of the mean penalty of pairs: equal pairs stay equal, the darker one stays darker by `step`."""
    means = []
    for offset in offsets:
        found = []
        for a, t, v in zip(r, truth, valid, strict=True):
            for p, q in _neighbours(v, offset):
                told, true = a[p] - a[q], t[p] - t[q]
                equal = abs(true) < step
                found.append(told**2 if equal else max(0.0, step - np.sign(true) * told) ** 2)
        means.append(np.mean(found) if found else 0.0)
    return float(np.mean(means))


def affinity(image, p, q):
    """exp(−½‖f_p − f_q‖²) of two pixels of a linear (h, w, 3) image."""
    a, b = (np.maximum(image[k], 1e-3) for k in (p, q))
    colour = ((a / a.sum() - b / b.sum()) / 0.025) ** 2
    light = ((np.log(a.sum()) - np.log(b.sum())) / 0.5) ** 2
    place = ((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2) / 16**2
    return np.exp(-0.5 * (colour.sum() + light + place))


def smooth_over_time(r, image, valid, offsets):
    """Σ_pq w_pq Σ_ij (r_i(p) − r_j(q))² over Σ_pq w_pq·m², one sequence r (m, h, w), image (m, h, w, 3)."""
    middle = np.sort(image, axis=0)[(len(image) - 1) // 2]  # torch's median: the lower of two middle values
    total = weight = 0.0
    for offset in offsets:
        for p, q in _neighbours(valid, offset):
            w = affinity(middle, p, q)
            total += w * sum((r[i][p] - r[j][q]) ** 2 for i in range(len(r)) for j in range(len(r)))
            weight += w * len(r) ** 2
    return total / weight


def smooth_light(s, image, valid, trust=30.0, scales=4):
    """Σ_l 1/l Σ_offsets mean over images and pairs of v_pq (Δs)², one sequence s (m, h, w)."""
    light, total = np.log(np.maximum(image, 1e-3).mean(axis=3)), 0.0
    for level in range(1, scales + 1):
        step = 2 ** (level - 1)
        small, logs, inside = light[:, ::step, ::step], s[:, ::step, ::step], valid[::step, ::step]
        for offset in ((0, 1), (1, 0)):
            found = []
            for p, q in _neighbours(inside, offset):
                edges = small[(slice(None), *p)] - small[(slice(None), *q)]
                middle = np.sort(edges)[(len(edges) - 1) // 2]
                for i, edge in enumerate(edges):
                    found.append(np.exp(-trust * (edge - middle) ** 2) * (logs[i][p] - logs[i][q]) ** 2)
            total += (np.mean(found) if found else 0.0) / level
    return total
