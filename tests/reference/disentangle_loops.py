"""Disentanglement scores as their papers and released codes say them: slow, one loop per index, nothing shared."""

from itertools import combinations

import numpy as np


def irs_matrix(codes, labels, quantile=0.99):
    """R of Suter et al. in disentanglement_lib's shape: masks over values, numpy percentiles."""
    reach = np.max(np.abs(codes - codes.mean(axis=0)), axis=0)
    matrix = np.zeros((codes.shape[1], labels.shape[1]))
    for i in range(labels.shape[1]):
        values = np.unique(labels[:, i])
        for v in values:
            group = codes[labels[:, i] == v]
            matrix[:, i] += np.percentile(np.abs(group - group.mean(axis=0)), quantile * 100, axis=0)
        matrix[:, i] /= len(values)
    return 1 - matrix / reach[:, None]


def irs(codes, labels, quantile=0.99):
    """The average of the best robustness of each latent, weighted by its reach."""
    reach = np.max(np.abs(codes - codes.mean(axis=0)), axis=0)
    return np.average(irs_matrix(codes, labels, quantile).max(axis=1), weights=reach)


def information(a, b):
    """I(a; b) in nats by counting pairs."""
    total = 0.0
    for x in set(a.tolist()):
        for y in set(b.tolist()):
            joint = np.mean((a == x) & (b == y))
            if joint:
                total += joint * np.log(joint / (np.mean(a == x) * np.mean(b == y)))
    return total


def discretised(column, bins=20):
    """disentanglement_lib's discretiser."""
    return np.digitize(column, np.histogram(column, bins)[1][:-1])


def information_matrix(codes, labels):
    """All pairs of discretised latents and factors."""
    binned = [discretised(c) for c in codes.T]
    return np.array([[information(z, g) for g in labels.T] for z in binned])


def mig(codes, labels):
    """Chen et al. 2018."""
    gaps = []
    for i, column in enumerate(information_matrix(codes, labels).T):
        first, second = sorted(column, reverse=True)[:2]
        gaps.append((first - second) / information(labels[:, i], labels[:, i]))
    return np.mean(gaps)


def modularity(codes, labels):
    """Ridgeway & Mozer 2018: distance to the ideal template of one factor per latent."""
    scores = []
    for row in information_matrix(codes, labels):
        template = np.zeros(len(row))
        template[row.argmax()] = row.max()
        scores.append(1 - np.sum((row - template) ** 2) / (row.max() ** 2 * (len(row) - 1)) if row.max() else 0)
    return np.mean(scores)


def released_slice(column, rho):
    """The released choice of latents where argpartition swaps the maximum into the last place and nothing else."""
    places = list(range(len(column)))
    best = int(np.argmax(column))
    places[best], places[-1] = places[-1], places[best]
    return set(places[::-rho][:rho])


def unconfoundedness(sets):
    """1 − mean Jaccard over pairs."""
    pairs = list(combinations(sets, 2))
    return 1 - sum(len(a & b) / len(a | b) for a, b in pairs) / len(pairs)


def top_sets(matrix, rho):
    """The ρ largest of every column."""
    return [set(sorted(range(len(c)), key=lambda j: -c[j])[:rho]) for c in matrix.T]


def uc_per_image(codes, labels, rho, quantile=0.99):
    """Eq. 1: every image's own sets, by the robustness in its own group of each factor."""
    reach = np.max(np.abs(codes - codes.mean(axis=0)), axis=0)
    total = 0.0
    for row in labels:
        columns = []
        for i, v in enumerate(row):
            group = codes[labels[:, i] == v]
            columns.append(1 - np.percentile(np.abs(group - group.mean(axis=0)), quantile * 100, axis=0) / reach)
        total += unconfoundedness(top_sets(np.array(columns).T, rho))
    return total / len(labels)


def farthest(codes):
    """The released search: for every entry the first entry of its column that is farthest from it."""
    found = np.empty_like(codes)
    for n in range(codes.shape[0]):
        for m in range(codes.shape[1]):
            found[n, m] = codes[np.argmax(np.abs(codes[:, m] - codes[n, m])), m]
    return found


def cg(judge, codes, labels, sets):
    """Eqs. 3 and 4, three decodes per factor: | mean |p0 − p1| − mean |p0 − p2| |, and the released mean of the | |."""
    far, eq3, eq4 = farthest(codes), 0.0, 0.0
    for i, own in enumerate(sets):
        moved, rest = codes.copy(), codes.copy()
        for m in range(codes.shape[1]):
            (moved if m in own else rest)[:, m] = far[:, m]
        p0, p1, p2 = (
            np.array([p[v] for p, v in zip(judge(z)[i], labels[:, i], strict=True)]) for z in (codes, moved, rest)
        )
        eq3 += abs(np.mean(np.abs(p0 - p1)) - np.mean(np.abs(p0 - p2)))
        eq4 += np.mean(np.abs(np.abs(p0 - p1) - np.abs(p0 - p2)))
    return eq3 / len(sets), eq4 / len(sets)


def dci(importance):
    """D and C of an importance matrix (latents, factors)."""

    def kept(p):
        p = p / p.sum()
        return 1 + sum(x * np.log(x) for x in p if x > 0) / np.log(len(p))

    d = sum(kept(row) * row.sum() for row in importance if row.sum()) / importance.sum()
    c = sum(kept(column) * column.sum() for column in importance.T if column.sum()) / importance.sum()
    return d, c


def held_pairs(labels, k, pairs, rng):
    """Pairs of rows as disentanglement_lib draws them: any row, and one with the same value of factor k."""
    found = []
    for _ in range(pairs):
        first = int(rng.integers(len(labels)))
        found.append((first, int(rng.choice(np.flatnonzero(labels[:, k] == labels[first, k])))))
    return found


def beta_vae(codes, labels, rng, points, pairs=64):
    """Higgins et al. 2017 in disentanglement_lib's shape: a point is mean |z − z'| over pairs that share factor k."""
    from sklearn.linear_model import LogisticRegression

    def batch(count):
        held = [int(rng.integers(labels.shape[1])) for _ in range(count)]
        return [
            np.mean([np.abs(codes[a] - codes[b]) for a, b in held_pairs(labels, k, pairs, rng)], axis=0) for k in held
        ], held

    (x, y), (x_test, y_test) = (batch(count) for count in points)
    return LogisticRegression(max_iter=1000).fit(x, y).score(x_test, y_test)


def factor_vae(codes, labels, rng, points, images=64):
    """Kim & Mnih 2018: one value of factor k in a point; the least relative variance votes; the majority predicts."""
    total = codes.var(axis=0, ddof=1)

    def votes(count):
        table = np.zeros((codes.shape[1], labels.shape[1]), int)
        for _ in range(count):
            k = int(rng.integers(labels.shape[1]))
            value = labels[int(rng.integers(len(labels))), k]
            rows = rng.choice(np.flatnonzero(labels[:, k] == value), images)
            table[int(np.argmin(codes[rows].var(axis=0, ddof=1) / total)), k] += 1
        return table

    train, test = (votes(count) for count in points)
    return sum(test[m, train[m].argmax()] for m in range(len(test))) / test.sum()


def sap(codes, labels, train, test):
    """Kumar et al. 2018, discrete: scikit-learn's machine on every latent alone, the gap of the best two accuracies."""
    from sklearn.svm import LinearSVC

    gaps = []
    for column in labels.T:
        right = []
        for z in codes.T:
            machine = LinearSVC(C=0.01, class_weight="balanced", tol=1e-8, max_iter=20_000)
            machine.fit(z[train, None], column[train])
            right.append(np.mean(machine.predict(z[test, None]) == column[test]))
        first, second = sorted(right, reverse=True)[:2]
        gaps.append(first - second)
    return np.mean(gaps)


def explicitness(codes, labels, train, test):
    """Ridgeway & Mozer 2018: the mean one-vs-rest area under the curve of logistic regression on standardised codes."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    x = (codes - codes[train].mean(axis=0)) / codes[train].std(axis=0)
    areas = []
    for column in labels.T:
        p = LogisticRegression(max_iter=2000, tol=1e-8).fit(x[train], column[train]).predict_proba(x[test])
        areas.append(np.mean([roc_auc_score(column[test] == c, p[:, c]) for c in range(p.shape[1])]))
    return np.mean(areas)


def extra_trees(codes, labels, train, test, rng):
    """Importances (latents, factors) and the mean accuracy on held-out rows of one scikit-learn forest per factor."""
    from sklearn.ensemble import ExtraTreesClassifier

    columns, right = [], []
    for column in labels.T:
        seed = int(rng.integers(2**31))
        forest = ExtraTreesClassifier(100, max_features=None, min_samples_leaf=5, random_state=seed)
        forest.fit(codes[train], column[train])
        columns.append(forest.feature_importances_)
        right.append(forest.score(codes[test], column[test]))
    return np.array(columns).T, np.mean(right)
