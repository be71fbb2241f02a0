"""The intervals of all tables: those that `diorama.metrics` gives for plain arrays."""

from diorama.metrics.intervals import (
    LEAST,
    RESAMPLES,
    Interval,
    candidates,
    interval,
    moves_of,
    of_statistic,
    resamples,
    standard_error,
    studentised,
)

__all__ = [
    "LEAST",
    "RESAMPLES",
    "Interval",
    "candidates",
    "interval",
    "moves_of",
    "of_statistic",
    "resamples",
    "standard_error",
    "studentised",
]
