"""The queueing model of docs/scale.md against a simulation of workers that share one driver, and against its limits."""

import heapq
import random

import pytest

from benchmarks._scale_model import crossing, efficiency, plot, waiting


def simulated(workers: int, unit: float, driver: float, rounds: int = 40_000) -> float:
    """The share of time that workers compute, event by event: computing and serving take exponential times."""
    chance = random.Random(1)
    ready = [chance.expovariate(1 / unit) for _ in range(workers)]
    heapq.heapify(ready)
    free, computed = 0.0, sum(ready)
    for _ in range(rounds):
        asked = heapq.heappop(ready)  # the driver serves in the order in which workers ask
        free = max(free, asked) + chance.expovariate(1 / driver)
        work = chance.expovariate(1 / unit)
        computed += work
        heapq.heappush(ready, free + work)
    return computed / workers / (sum(ready) / workers)


@pytest.mark.parametrize(("workers", "unit", "driver"), [(2, 3.0, 0.1), (16, 3.0, 0.1), (30, 3.0, 0.1), (60, 3.0, 0.1)])
def test_waiting_is_that_of_a_simulated_queue(workers, unit, driver):
    assert waiting(workers, unit, driver) == pytest.approx(simulated(workers, unit, driver), rel=0.03)


def test_limits_of_the_model():
    assert waiting(1, 3.0, 0.1) == pytest.approx(3.0 / 3.1)
    assert waiting(1000, 3.0, 0.1) == pytest.approx(30 / 1000, rel=0.01)  # the driver serves ten units a second
    assert efficiency(1, 3.0, 0.0, 0.0, 100) == pytest.approx(1)
    most = crossing(3.0, 0.01, 10.0, 20_000)
    assert efficiency(most, 3.0, 0.01, 10.0, 20_000) >= 0.9 > efficiency(most + 1, 3.0, 0.01, 10.0, 20_000)
    assert plot({"a": [0.5] * 10}).count("<polyline") == 1
