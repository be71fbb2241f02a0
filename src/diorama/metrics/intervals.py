"""Intervals that need no resampling."""


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95 % interval of a share right/count (Wilson 1927).

    >>> [round(v, 4) for v in wilson(1900, 2000)]
    [0.9396, 0.9587]
    """
    z, rate = 1.959964, right / count
    centre = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * (rate * (1 - rate) / count + z * z / (4 * count * count)) ** 0.5
    return centre - half, centre + half
