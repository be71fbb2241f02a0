"""95 % intervals: how often they cover, that p agrees with them, and the same numbers from a slow reference."""

import numpy as np
import pytest
from scipy.stats import t as student

from diorama.core.rows import Row
from diorama.core.summary import summarise
from diorama.metrics.intervals import (
    RESAMPLES,
    candidates,
    interval,
    moves_of,
    of_statistic,
    resamples,
    standard_error,
)
from diorama.protocols.concepts.csm.summary import ratio_ends
from diorama.report.paired import paired

DRAWN = {
    "normal": (lambda rng, shape: rng.normal(0.3, 2.0, shape), 0.3),
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), float(np.exp(0.5))),
}


def coverage(kind: str, n: int, trials: int = 1500) -> float:
    draw, truth = DRAWN[kind]
    samples = draw(np.random.default_rng(n), (trials, n))
    inside = 0
    for some in np.array_split(samples, 5):
        found = np.sort(candidates(some), axis=0)
        inside += int(((found[124] <= truth) & (truth <= found[4874])).sum())
    return inside / trials


@pytest.mark.parametrize(
    ("kind", "n", "least"),
    [("normal", 3, 0.93), ("normal", 5, 0.93), ("normal", 10, 0.93), ("lognormal", 5, 0.86), ("lognormal", 10, 0.89)],
)
def test_intervals_cover_as_often_as_they_say(kind: str, n: int, least: float) -> None:
    assert coverage(kind, n) >= least


def slow(values: np.ndarray) -> tuple[float, float, float]:
    """The textbook's loop over the same resamples: t of each, then the mean minus the 97.5 % and 2.5 % points of t."""
    n, mean, error = len(values), values.mean(), values.std(ddof=1) / np.sqrt(len(values))
    found = []
    for counts in np.concatenate(list(resamples(n))):
        drawn = np.repeat(values, counts.astype(int))
        found.append((drawn.mean() - mean) / (drawn.std(ddof=1) / np.sqrt(n)))
    t = np.sort(found)
    beyond = min((t >= mean / error).sum(), (t <= mean / error).sum())
    return mean - t[4874] * error, mean - t[124] * error, 2 * (1 + beyond) / (RESAMPLES + 1)


def test_the_interval_is_the_textbooks_bootstrap_t() -> None:
    values = np.random.default_rng(4).gamma(2.0, size=14) - 1.0
    found = interval(values)
    assert (found.lo, found.hi, found.p) == pytest.approx(slow(values), rel=1e-9)


def test_resamples_draw_n_cases_evenly_and_the_same_ones_again() -> None:
    for n in (3, 7, 1000):  # a thousand cases come in blocks
        whole = np.concatenate(list(resamples(n)))
        assert whole.shape == (RESAMPLES, n) and (whole.sum(axis=1) == n).all()
        assert abs(whole.mean(axis=0) - 1).max() < 0.08
        assert (whole == np.concatenate(list(resamples(n)))).all()


def test_equal_values_have_no_width_and_fewer_than_three_no_interval() -> None:
    assert interval(np.full(5, 0.1)).lo == pytest.approx(0.1) == interval(np.full(5, 0.1)).hi
    assert interval(np.zeros(4)).p == 1.0
    for few in ([], [1.0], [1.0, 2.0]):
        assert interval(np.array(few)).lo is None and interval(np.array(few)).p is None


def test_p_and_interval_cannot_disagree() -> None:
    rng = np.random.default_rng(0)
    for n in (3, 4, 5, 8, 20):
        for shift in np.linspace(-2, 2, 60):
            found = interval(rng.normal(shift, 1, n) ** 3)
            assert found.lo is not None and found.hi is not None and found.p is not None
            assert (found.p <= 0.05) == (found.lo > 0 or found.hi < 0), (n, shift, found)


def test_four_differences_of_one_sign_get_one_opinion_and_a_second_that_is_named() -> None:
    found = paired(dict.fromkeys("abcd", 0.0), {"a": 1.0, "b": 1.3, "c": 0.8, "d": 1.1}, "lower")
    assert found.lo is not None and found.lo > 0 and found.p is not None and found.p <= 0.05
    assert found.p_sign_flip == 0.125


@pytest.mark.parametrize("values", [[0.0, 1e-9, 1.0], [0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0 + 1e-15]])
def test_resamples_with_little_or_no_spread_do_not_explode(values: list[float]) -> None:
    sample = np.array(values)
    found, error = interval(sample), sample.std(ddof=1) / np.sqrt(len(sample))
    assert found.lo is not None and found.hi is not None
    assert found.lo <= sample.mean() <= found.hi
    most = student.ppf(0.9995, len(sample) - 1) * error
    assert found.hi - found.lo <= 2 * most * (1 + 1e-9)


def rows(values: list[float]) -> list[Row]:
    return [Row("c", str(i), "m", v) for i, v in enumerate(values)]


def test_intervals_stay_inside_the_range_of_the_score() -> None:
    found = summarise(rows([0.99, 1.0, 0.95, 0.6]), (0.0, 1.0))
    assert found.hi == 1.0 and found.lo is not None and 0 <= found.lo < found.mean  # type: ignore[operator]
    beyond = summarise(rows([0.99, 1.2, 0.95, 0.6]), (0.0, 1.0))
    assert beyond.hi is not None and beyond.hi > 1.0  # a value beyond the range says that the range does not hold


def test_a_statistic_that_is_a_mean_gets_the_interval_of_the_mean() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=12)
    weights = np.concatenate(list(resamples(12)))
    means = weights @ values / 12
    errors = standard_error(weights, moves_of(np.broadcast_to(values, weights.shape), means, weights))
    error = values.std(ddof=1) / np.sqrt(12)
    found = of_statistic(values.mean(), error, means - values.mean(), errors, 12)
    assert (found.lo, found.hi) == pytest.approx((interval(values).lo, interval(values).hi), rel=1e-9)


def test_the_error_of_a_mean_over_some_cases_is_that_of_the_jackknife() -> None:
    values = np.array([1.0, 4.0, np.nan, 2.5, 7.0, np.nan, 3.0, 0.5])
    mean = np.array([np.nanmean(values)])
    found = standard_error(np.ones((1, 8)), moves_of(values[None], mean, np.ones((1, 8))))[0]
    left_out = np.array([np.nanmean(np.delete(values, i)) for i in range(8)])
    jackknife = np.sqrt(7 / 8 * ((left_out - left_out.mean()) ** 2).sum())
    assert found == pytest.approx(jackknife, rel=0.15)


def test_csm_ratios_of_many_sets_cover_the_ratio_of_the_means() -> None:
    rng, inside = np.random.default_rng(2), 0
    for _ in range(60):
        above, below = rng.beta(6, 4, 9), rng.beta(3, 7, 9)
        found = ratio_ends((above, below), (above[:, None], below[:, None]), 20, "ratio_of_averages")
        assert found.lo is not None and found.hi is not None
        inside += found.lo <= 0.6 / 0.3 <= found.hi
    assert inside >= 52  # .95 of 60 is 57; five standard deviations below would be 49
