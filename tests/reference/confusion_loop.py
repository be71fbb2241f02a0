"""The Attribution Confusion Matrix as the paper writes it: pixel by pixel, four sums and four quotients."""

import math


def confusion_loop(heat, labels, target, grid):
    """TP, FP, TN, FN of one map; cell by cell, pixel by pixel, added without rounding."""
    sums = {name: [] for name in ("tp", "fp", "tn", "fn")}
    height, width = heat.shape
    for y in range(height):
        for x in range(width):
            cell = _place(y, height, grid) * grid + _place(x, width, grid)
            a, own = float(heat[y, x]), labels[cell] == target
            if a > 0:
                sums["tp" if own else "fp"].append(a)
            elif a < 0:
                sums["fn" if own else "tn"].append(-a)
    return [math.fsum(values) for values in sums.values()]


def _place(i, side, grid):
    return max(k for k in range(grid) if i >= k * side // grid)


def rates_loop(tp, fp, tn, fn):
    """The rates by their textbook formulas; None where a denominator is zero."""

    def over(a, b):
        return a / b if b else None

    recall, specificity = over(tp, tp + fn), over(tn, tn + fp)
    product = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return {
        "precision": over(tp, tp + fp),
        "accuracy": over(tp + tn, tp + fp + tn + fn),
        "recall": recall,
        "f1": over(2 * tp, 2 * tp + fp + fn),
        "specificity": specificity,
        "npv": over(tn, tn + fn),
        "balanced_accuracy": None if recall is None or specificity is None else (recall + specificity) / 2,
        "mcc": over(tp * tn - fp * fn, math.sqrt(product)),
    }
