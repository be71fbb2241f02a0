"""Lists of units on a command line: `0-7,9`."""

from collections.abc import Iterable

from diorama.core.errors import InputError


def as_text(units: Iterable[int]) -> str:
    """A list of units as a short text.

    >>> as_text([0, 1, 2, 3, 7, 9, 10])
    '0-3,7,9-10'
    """
    spans: list[list[int]] = []
    for k in sorted(units):
        if spans and spans[-1][1] == k - 1:
            spans[-1][1] = k
        else:
            spans.append([k, k])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in spans)


def read(text: str, count: int) -> list[int]:
    """The units in a text, for a run of `count` units.

    >>> read("0-3,7", 8)
    [0, 1, 2, 3, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        ends = part.strip().split("-")
        if len(ends) > 2 or len(part) > 20 or not all(end.isdecimal() for end in ends):
            raise InputError(f"--units {text}: write numbers and spans, e.g. 0-7,9")
        first, last = int(ends[0]), int(ends[-1])
        if not first <= last < count:
            raise InputError(f"--units {text}: {part} is no span of the {count} units, 0 to {count - 1}")
        found += range(first, last + 1)
    return sorted(set(found))


def shard(text: str, count: int) -> list[int]:
    """The units of `I/N`: every N-th one, beginning with the I-th.

    >>> shard("1/3", 8)
    [1, 4, 7]
    """
    index, _, of = text.partition("/")
    if not (index.isdecimal() and of.isdecimal() and int(index) < int(of)):
        raise InputError(f"--shard {text}: write I/N with I from 0 to N-1, e.g. 0/4")
    return list(range(int(index), count, int(of)))
