"""FunnyBirds' scores as formulas on arrays: CSDC, PC, DC, D, SD, TS, BI, the choice of a threshold, the composites.

A set of parts is a number whose bit i says that part i belongs to it; a table of logits has one line per set of parts
that the image keeps, so that every question about removed parts is a look-up (Hesse, Schaub-Meyer, Roth 2023, §4).
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

#: The 80 thresholds t at which a part may count as important.
THRESHOLDS = np.linspace(0.01, 0.50, 80)
#: A removal that changes the logit by less than this share of it is irrelevant.
SHARE = 0.05
Variants = Mapping[str, int]


def minimal_sets(classes: Sequence[Variants], index: int) -> list[int]:
    """The minimal sufficient part sets of a class: shared with no other class, and no smaller one inside.

    >>> minimal_sets([{"beak": 0, "eye": 1}, {"beak": 0, "eye": 2}], 0)
    [2]
    """
    shared = {agreement(classes[index], other) for i, other in enumerate(classes) if i != index}
    sets = sorted(range(2 ** len(classes[index])), key=lambda s: (s.bit_count(), _members(s)))
    minimal: list[int] = []
    for s in sets:
        if all(s & ~o for o in shared) and not any(s & m == m for m in minimal):
            minimal.append(s)
    return minimal


def _members(s: int) -> tuple[int, ...]:
    """The parts of a set, ascending."""
    return tuple(i for i in range(s.bit_length()) if s >> i & 1)


def agreement(a: Variants, b: Variants) -> int:
    """The set of parts in which two classes look the same.

    >>> agreement({"beak": 1, "eye": 0}, {"beak": 1, "eye": 2})
    1
    """
    return sum(1 << i for i, part in enumerate(a) if a[part] == b[part])


def target_pair(classes: Sequence[Variants], index: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The first two classes that each share exactly two parts with a class, no part with both; and those part sets.

    >>> birds = [{"a": 0, "b": 0, "c": 0, "d": 0}, {"a": 0, "b": 0, "c": 1, "d": 1}, {"a": 1, "b": 1, "c": 0, "d": 0}]
    >>> target_pair(birds, 0)
    ((1, 2), (3, 12))
    """
    shared = {i: agreement(classes[index], other) for i, other in enumerate(classes) if i != index}
    near = [i for i, parts in shared.items() if parts.bit_count() == 2]
    for c1, c2 in combinations(near, 2):
        if not shared[c1] & shared[c2]:
            return (c1, c2), (shared[c1], shared[c2])
    return None


def as_sets(important: np.ndarray) -> np.ndarray:
    """Rows of flags (…, parts) as numbers.

    >>> as_sets(np.array([[True, False, True]]))
    array([5])
    """
    return important @ (1 << np.arange(important.shape[-1]))


def csdc(found: np.ndarray, minimal: Sequence[int]) -> np.ndarray:
    """max over minimal sufficient sets S of |S ∩ P| / |S|, for every set P in `found`; 0 where there is no S.

    >>> csdc(np.array([0, 1, 3]), [3]).tolist()
    [0.0, 0.5, 1.0]
    """
    shares = [_sizes(found & s) / s.bit_count() for s in minimal]
    return np.max(shares, axis=0) if shares else np.zeros(len(found))


def _sizes(sets: np.ndarray) -> np.ndarray:
    return (sets[:, None] >> np.arange(32) & 1).sum(axis=1)


def preservation(logits: np.ndarray, found: np.ndarray) -> np.ndarray:
    """PC: 1 where the class predicted from the parts in P alone is the one predicted from all parts."""
    predicted = logits.argmax(axis=1)
    return (predicted[found] == predicted[-1]).astype(float)


def deletion(logits: np.ndarray, found: np.ndarray) -> np.ndarray:
    """DC: 1 where the class predicted without the parts in P is another one."""
    predicted = logits.argmax(axis=1)
    return (predicted[len(logits) - 1 - found] != predicted[-1]).astype(float)


def relevant(whole: float, without: np.ndarray) -> np.ndarray:
    """Which removals lower the logit, by at least 5 % of its size.

    >>> relevant(10.0, np.array([9.9, 9.0, 12.0])).tolist()
    [False, True, False]
    """
    return (whole > without) & (np.abs(whole - without) >= SHARE * abs(whole))


def independent_eq2(whole: float, without: np.ndarray) -> np.ndarray:
    """Eq. 2 of the supplement: 0.05·f > f − f_without, with no absolute value; differs from the code where f < 0.

    >>> independent_eq2(-10.0, np.array([-10.0, -9.0])).tolist()
    [False, True]
    """
    return SHARE * whole > whole - without


def distraction(important: np.ndarray, irrelevant: np.ndarray) -> np.ndarray:
    """D: 1 − |P ∩ Irr| / |Irr| for flags (thresholds, elements) and (elements,); Irr must not be empty."""
    return 1 - important[:, irrelevant].mean(axis=1)


def rank_agreement(drops: np.ndarray, importance: np.ndarray) -> float:
    """SD: ½ + ½·ρ with Spearman's ρ; NaN where either side is constant.

    >>> rank_agreement(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.5, 0.9]))
    1.0
    """
    a, b = _centred_ranks(drops), _centred_ranks(importance)
    scale = np.sqrt((a @ a) * (b @ b))
    return float(0.5 + 0.5 * (a @ b) / scale) if scale else float("nan")


def _centred_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks minus their mean; tied values share their mean rank."""
    below = (values[:, None] > values).sum(axis=1) + 0.5 * (values[:, None] == values).sum(axis=1)
    return below - below.mean()


def premise(logits: np.ndarray, pair: tuple[int, int], shared: tuple[int, int]) -> bool:
    """Whether TS may be asked: f_c1 falls more without O1 than without O2, and f_c2 the other way round."""
    (c1, c2), (o1, o2) = pair, shared
    without1, without2 = logits[len(logits) - 1 - o1], logits[len(logits) - 1 - o2]
    return bool(without1[c1] < without2[c1] and without2[c2] < without1[c2])


def target_sensitivity(first: np.ndarray, second: np.ndarray, shared: tuple[int, int], tie: float) -> float:
    """TS: the mean of [PI_c1(O1) > PI_c2(O1)] and [PI_c1(O2) < PI_c2(O2)]; a tie counts `tie`.

    >>> target_sensitivity(np.array([2.0, 0.0]), np.array([1.0, 0.0]), (1, 2), 0.5)
    0.75
    """
    gaps = [float((first - second)[list(_members(s))].sum()) for s in shared]
    return sum(tie if g == 0 else float(g > 0) for g in (gaps[0], -gaps[1])) / 2


def objective(csdc: np.ndarray, pc: np.ndarray, dc: np.ndarray, d: np.ndarray) -> np.ndarray:
    """(CSDC + PC + DC)/3 + D, which the chosen threshold maximises; scores that do not exist (NaN) are left out."""
    check = np.stack([csdc, pc, dc])
    known = ~np.isnan(check)
    mean = np.where(known, check, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return mean + np.where(np.isnan(d), 0, d)


def composites(csdc: float, pc: float, dc: float, d: float, sd: float, ts: float) -> dict[str, float]:
    """Com = ((CSDC + PC + DC)/3 + D)/2, Cor = SD, Con = TS, mX = mean(Com, Cor, Con).

    >>> {k: round(float(v), 3) for k, v in composites(0.92, 0.92, 0.92, 0.97, 0.67, 0.92).items()}  # VGG16, IG
    {'com': 0.945, 'cor': 0.67, 'con': 0.92, 'mx': 0.845}
    """
    com = ((csdc + pc + dc) / 3 + d) / 2
    return {"com": com, "cor": sd, "con": ts, "mx": (com + sd + ts) / 3}
