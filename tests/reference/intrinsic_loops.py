"""The metrics of intrinsic images written the slow way, shaped like the papers and released scripts."""

import math
from itertools import pairwise

import numpy as np


def barron_loop(truth, estimate, mask, k=20):
    h, w = truth.shape
    error = energy = 0.0
    for y0 in (0, k // 2 - 1):
        for x0 in (0, k // 2 - 1):
            for y in range(y0, h, k):
                for x in range(x0, w, k):
                    inside = mask[y : y + k, x : x + k]
                    c, e = truth[y : y + k, x : x + k][inside], estimate[y : y + k, x : x + k][inside]
                    alpha = (c * e).sum() / (e * e).sum() if (e * e).sum() > 0 else 0.0
                    error += ((c - alpha * e) ** 2).sum()
                    energy += (c * c).sum()
    return error / energy if energy > 0 else float("nan")


def fan_loop(truth, estimate):
    """The released local error: gray (h, w) or colour (h, w, 3), one scale for all channels of a window."""
    h, w = truth.shape[:2]
    k = math.floor(0.1 * max(h, w) + 0.5)
    step = math.floor(k / 2 + 0.5)
    found = []
    for i in range(1, h - step + 1, step):  # one-based, as written
        for j in range(1, w - step + 1, step):
            c = truth[i - 1 : min(h, i + k - 1), j - 1 : min(w, j + k - 1)]
            e = estimate[i - 1 : min(h, i + k - 1), j - 1 : min(w, j + k - 1)]
            alpha = (c * e).sum() / (e * e).sum() if (e * e).sum() > 0 else 0.0
            found.append(((np.minimum(alpha * e, 1) - c) ** 2).mean())
    return sum(found) / len(found)


def ssim_loop(a, b, window=11, sigma=1.5):
    """One window after another."""
    x = np.arange(window) - window // 2
    g = np.exp(-(x[:, None] ** 2 + x[None, :] ** 2) / (2 * sigma**2))
    g /= g.sum()
    total = []
    for channel in range(a.shape[2]):
        for y in range(a.shape[0] - window + 1):
            for z in range(a.shape[1] - window + 1):
                p, q = (i[y : y + window, z : z + window, channel] for i in (a, b))
                mp, mq = (g * p).sum(), (g * q).sum()
                vp, vq, cov = (g * p * p).sum() - mp**2, (g * q * q).sum() - mq**2, (g * p * q).sum() - mp * mq
                top = (2 * mp * mq + 0.01**2) * (2 * cov + 0.03**2)
                total.append(top / ((mp**2 + mq**2 + 0.01**2) * (vp + vq + 0.03**2)))
    return np.mean(total)


def whdr_loop(reflectance, points, comparisons, delta=0.1):
    """Comparison by comparison, from the raw file."""
    rows, columns = reflectance.shape[:2]
    by_id = {p["id"]: p for p in points}
    wrong = total = 0.0
    for c in comparisons:
        if c["darker"] not in ("1", "2", "E") or c.get("compare_what") == "S":
            continue
        weight = c["darker_score"]
        if weight is None or weight <= 0:
            continue
        p1, p2 = by_id[c["point1"]], by_id[c["point2"]]
        if not p1["opaque"] or not p2["opaque"]:
            continue
        l1, l2 = (max(1e-10, float(np.mean(reflectance[int(p["y"] * rows), int(p["x"] * columns)]))) for p in (p1, p2))
        said = "1" if l2 / l1 > 1 + delta else "2" if l1 / l2 > 1 + delta else "E"
        total += weight
        wrong += weight * (said != c["darker"])
    return wrong / total if total else None


def _sobel(gray):
    h, w = gray.shape
    g = np.pad(gray, 1, mode="symmetric")
    out = np.zeros((h, w))
    for y in range(h):
        for x in range(w):
            p = g[y : y + 3, x : x + 3]
            gx = (p[:, 2] - p[:, 0]) @ [1, 2, 1]
            gy = (p[2] - p[0]) @ [1, 2, 1]
            out[y, x] = math.hypot(gx, gy)
    return out


def _widest(gray):
    """10×10: five before, four after, edges repeated by reflection."""
    g = np.pad(gray, ((5, 4), (5, 4)), mode="symmetric")
    return np.array([[g[y : y + 10, x : x + 10].max() for x in range(gray.shape[1])] for y in range(gray.shape[0])])


def _components(smooth):
    """4-connected components by flooding."""
    number, found = np.zeros(smooth.shape, int), 0
    for start in zip(*np.nonzero(smooth), strict=True):
        if number[start]:
            continue
        found += 1
        todo = [start]
        while todo:
            y, x = todo.pop()
            if 0 <= y < smooth.shape[0] and 0 <= x < smooth.shape[1] and smooth[y, x] and not number[y, x]:
                number[y, x] = found
                todo += [(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)]
    return number, found


def saw_li_loop(photos, mode=0):
    """AP of Li & Snavely over (shading, labels, gray sRGB image) triples, threshold by threshold."""
    thresholds = [math.log(1.001 + i * (1.5 - 1.001) / 199) for i in range(200)]
    thresholds += [math.log(1.501 + i * (64 - 1.501) / 199) for i in range(200)]
    prepared = []
    for shading, labels, image in photos:
        sharp = _sobel(np.log(np.maximum(shading, 1e-4)))
        number, found = _components(labels == 2)
        edges, weight = _sobel(image), np.ones(labels.shape)
        for i in range(1, found + 1):
            weight[number == i] = edges[number == i].mean()
        prepared.append((sharp, _widest(sharp), labels, weight))
    recalls, precisions = [0.0], []
    for t in thresholds:
        matrix = np.zeros((3, 2))
        for sharp, wide, labels, weight in prepared:
            for label in (0, 1, 2):
                value = (sharp if label == 2 else wide)[labels == label]
                w = weight[labels == label] if mode and label == 2 else np.ones(len(value))
                for column, chosen in ((0, value >= t), (1, value < t)):
                    matrix[label, column] += int(w[chosen].sum() + 1e-9)
        for label in range(3):
            matrix[label] *= (1, 1, 2)[label] / (matrix[label].sum() + 1e-5)
        precisions.append(matrix[2, 1] / (matrix[:, 1].sum() + 1e-5))
        recalls.append(matrix[2, 1] / (matrix[2].sum() + 1e-5))
    precisions = [precisions[0], *precisions, 0.5]
    recalls.append(1.0)
    return sum((recalls[i + 1] - recalls[i]) * (precisions[i + 1] + precisions[i]) / 2 for i in range(len(recalls) - 1))


def saw_kovacs_loop(photos):
    """Area under Kovacs' curve over (linear shading, labels) pairs."""
    half = [0.5 * 10 ** (-4 + 4 * i / 99) for i in range(100)]
    thresholds = half + [1 - t for t in reversed(half)]
    maps = [(_widest(_sobel(shading)), labels) for shading, labels in photos]
    points = []
    for t in thresholds:
        matrix = np.zeros((3, 2))
        for wide, labels in maps:
            for label in (0, 1, 2):
                value = wide[labels == label]
                matrix[label] += [(value >= t).sum(), (value < t).sum()]
        for label in range(3):
            if matrix[label].sum():
                matrix[label] *= (1, 1, 2)[label] / matrix[label].sum()
        if matrix[:, 1].sum():
            points.append((matrix[2, 1] / matrix[2].sum(), matrix[2, 1] / matrix[:, 1].sum()))
    points = [(0.0, points[0][1]), *points]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(points))


def alexnet_conv(x, kernel, bias, stride, padding):
    """(h, w, in) with (out, in, k, k), pixel by pixel."""
    x = np.pad(x, ((padding, padding), (padding, padding), (0, 0)))
    k = kernel.shape[2]
    h, w = (x.shape[0] - k) // stride + 1, (x.shape[1] - k) // stride + 1
    out = np.zeros((h, w, len(kernel)))
    flat = kernel.transpose(2, 3, 1, 0).reshape(-1, len(kernel))
    for y in range(h):
        for z in range(w):
            out[y, z] = x[y * stride : y * stride + k, z * stride : z * stride + k].reshape(-1) @ flat + bias
    return np.maximum(out, 0)


def lpips_loop(a, b, weights):
    """LPIPS-Alex with plain convolutions."""

    def features(image):
        x = (2 * image - 1 - np.array([-0.030, -0.088, -0.188])) / np.array([0.458, 0.448, 0.450])
        for i, (stride, padding) in enumerate(((4, 2), (1, 2), (1, 1), (1, 1), (1, 1))):
            if i in (1, 2):
                h, w = (x.shape[0] - 3) // 2 + 1, (x.shape[1] - 3) // 2 + 1
                x = np.array([[x[2 * y : 2 * y + 3, 2 * z : 2 * z + 3].max(axis=(0, 1)) for z in range(w)]
                              for y in range(h)])  # fmt: skip
            x = alexnet_conv(x, weights[f"conv{i}.weight"], weights[f"conv{i}.bias"], stride, padding)
            yield x / (np.linalg.norm(x, axis=2, keepdims=True) + 1e-10)

    pairs = zip(features(a), features(b), strict=True)
    return sum(((p - q) ** 2 @ weights[f"lin{i}.weight"]).mean() for i, (p, q) in enumerate(pairs))
