"""TCAV as Kim et al. 2018 describe it: one classifier per random set, one image at a time, no Gram matrix."""

import numpy as np


def tcav(gradients, positives, negative_sets, classifier, sign):
    """The score of each random set: train, take the direction, count images one by one. Label 0 is the concept."""
    scores = []
    for negatives in negative_sets:
        x = np.concatenate([positives, negatives])
        y = np.concatenate([np.zeros(len(positives)), np.ones(len(negatives))])
        direction = -np.ravel(classifier().fit(x, y).coef_)
        rises = 0
        for gradient in gradients:
            derivative = float(np.dot(gradient, direction))
            rises += derivative > 0 if sign > 0 else derivative < 0
        scores.append(rises / len(gradients))
    return np.array(scores)
