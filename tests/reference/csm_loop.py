"""CSM as the paper words it, one image, one CAV and one pixel at a time. Slow; mean-difference CAVs only."""

import numpy as np


def cav(positives, negatives):
    """The direction from the mean of the others to the mean of the concept."""
    direction = np.zeros(len(positives[0]))
    for j in range(len(direction)):
        direction[j] = sum(float(x[j]) for x in positives) / len(positives)
        direction[j] -= sum(float(x[j]) for x in negatives) / len(negatives)
    return direction


def residual(answer, truth, mask, aligned):
    """The gradient of the mean squared error with respect to the answer, flattened; after the best scale if `aligned`."""
    answer, truth = answer.astype(float), truth.astype(float)
    if aligned:
        above = below = 0.0
        for y, x in zip(*np.nonzero(mask), strict=True):
            above += float((answer[y, x] * truth[y, x]).sum())
            below += float((answer[y, x] ** 2).sum())
        answer = answer * above / below
    gradient = np.zeros(answer.shape)
    for y, x in zip(*np.nonzero(mask), strict=True):
        gradient[y, x] = 2 / answer.size * (answer[y, x] - truth[y, x])
    return gradient.ravel()


def sensitivity(gradients, direction):
    """TCAV: the share of test images whose loss falls along the CAV."""
    falls = 0
    for gradient in gradients:
        along = sum(float(g) * float(v) for g, v in zip(gradient, direction, strict=True))
        falls += along < 0
    return falls / len(gradients)


def significant(scores, chance, images, level):
    """The sensitivity of the paper's text: the mean score of the CAV iterations that pass a t-test, one after another.

    A score is a share of test images; written out as ones and zeros it is held against those of all random CAVs.
    """
    from scipy.stats import ttest_ind

    randoms = []
    for share in chance:
        falls = round(share * images)
        randoms += [1] * falls + [0] * (images - falls)
    passed = []
    for share in scores:
        falls = round(share * images)
        if ttest_ind([1] * falls + [0] * (images - falls), randoms).pvalue < level:
            passed.append(share)
    return sum(passed) / len(passed), len(passed) / len(scores)
