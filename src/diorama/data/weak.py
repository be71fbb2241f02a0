"""Weak supervision from a table of factors: queries, a small labelled share, pairs that share factors.

CANDLE is published with these (Reddy, Godfrey L and Balasubramanian 2022); they work on the factors of any world. A record
is a dictionary of factors by name, as `frame.truth["factors"]` is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from diorama.core.errors import InputError, did_you_mean
from diorama.core.scene import rng

Record = Mapping[str, Any]


def query(records: Sequence[Record], **values: Any) -> list[int]:
    """The indices of the records that have the given values; a tuple of values means any of them.

    >>> query([{"color": "red", "size": 2.0}, {"color": "blue", "size": 2.0}], color=("blue", "green"), size=2.0)
    [1]
    """
    for name in values:
        _check(records, name)
    wanted = {name: v if isinstance(v, tuple) else (v,) for name, v in values.items()}
    return [i for i, record in enumerate(records) if all(record[name] in v for name, v in wanted.items())]


def labelled(count: int, share: float = 0.1, seed: int = 0) -> np.ndarray:
    """The sorted indices of the ⌈share·count⌉ images whose labels may be used.

    >>> len(labelled(4050))
    405
    """
    if not 0 < share <= 1:
        raise InputError(f"share={share!r}: give the share of labelled images, above 0 and at most 1")
    return np.sort(rng(seed, "labelled").permutation(count)[: int(np.ceil(round(share * count, 9)))])


def sharing(records: Sequence[Record], shared: Sequence[str], count: int, seed: int = 0) -> np.ndarray:
    """`count` random pairs (count, 2) of different records with the same values of the `shared` factors.

    >>> pairs = sharing([{"color": c} for c in ("red", "red", "blue")], ["color"], 5)
    >>> sorted(set(pairs.ravel().tolist()))
    [0, 1]
    """
    for name in shared:
        _check(records, name)
    values = [tuple(record[name] for name in shared) for record in records]
    group = np.array(list(map({v: i for i, v in enumerate(dict.fromkeys(values))}.__getitem__, values)), int)
    order = np.argsort(group, kind="stable")
    _, start, size = np.unique(group[order], return_index=True, return_counts=True)
    if not (size > 1).any():
        raise InputError(f"no two images share {', '.join(shared)}; name fewer factors")
    # so that all pairs are equally likely: groups in proportion to their number of ordered pairs
    chance = np.where(size > 1, size * (size - 1), 0).astype(float)
    generator = rng(seed, "sharing", *shared)
    chosen = generator.choice(len(size), size=count, p=chance / chance.sum())
    first = generator.integers(size[chosen])
    second = (first + 1 + generator.integers(size[chosen] - 1)) % size[chosen]
    return np.stack([order[start[chosen] + first], order[start[chosen] + second]], axis=1)


def _check(records: Sequence[Record], name: str) -> None:
    if records and name not in records[0]:
        raise InputError(f"there is no factor {name!r}; {did_you_mean(name, list(records[0]))}")
