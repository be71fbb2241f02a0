"""Nulls and intervals of disentanglement scores: the same with any number of threads, and what they need not compute."""

import numpy as np
import pytest

from diorama.metrics import chance
from diorama.metrics.codes import sample
from diorama.metrics.infomec import infomec
from diorama.metrics.mig import mig
from diorama.metrics.modularity import modularity


def data(rows=400):
    random = np.random.default_rng(5)
    g = np.stack([random.integers(0, v, rows) for v in (3, 5)], axis=1)
    return g @ random.normal(size=(2, 4)) + 0.3 * random.normal(size=(rows, 4)), g


def value(z, g):
    return mig(z, g).value


def test_threads_change_neither_nulls_nor_intervals():
    z, g = data()
    one, three = (chance.null(value, z, g, np.random.default_rng(1), 7, threads) for threads in (1, 3))
    assert one == three and one.mean < value(z, g)
    one, three = (chance.interval(value, z, g, np.random.default_rng(1), 7, threads) for threads in (1, 3))
    assert one == three
    assert chance.interval(value, z, g, np.random.default_rng(1), 7, 2, value(z, g)) == one


def test_a_null_is_the_mean_over_permutations_made_one_by_one():
    z, g = data()
    random = np.random.default_rng(2)
    slow = [value(z[random.permutation(len(z))], g) for _ in range(6)]
    found = chance.null(value, z, g, np.random.default_rng(2), 6, 2)
    assert found.mean == pytest.approx(np.mean(slow), abs=1e-15) and found.high == pytest.approx(
        np.quantile(slow, 0.95)
    )


def test_one_thread_lets_a_score_draw_from_the_same_stream_between_permutations():
    """As the protocols do: their scores draw their own rows from the generator that permutes."""
    z, g = data()
    random = np.random.default_rng(3)

    def drawing(generator):
        return lambda codes, factors: float(codes[generator.integers(len(codes)), 0])

    slow = []
    for _ in range(4):
        order = random.permutation(len(z))
        slow.append(drawing(random)(z[order], g))
    generator = np.random.default_rng(3)
    assert chance.null(drawing(generator), z, g, generator, 4).mean == pytest.approx(np.mean(slow), abs=1e-15)


def test_trees_grown_by_several_threads_are_the_same():
    pytest.importorskip("sklearn")
    from diorama.metrics.dci import dci

    z, g = data()
    one, two = (dci(z, g, np.random.default_rng(0), jobs=jobs) for jobs in (1, 2))
    assert one.values == two.values and np.array_equal(one.matrix, two.matrix)


def test_the_null_of_dci_needs_no_prediction():
    pytest.importorskip("sklearn")
    from diorama.protocols.codes.dci import Dci

    z, g = data()
    after = [np.random.default_rng(0), np.random.default_rng(0)]
    whole, short = Dci().measure(z, g, after[0]), Dci().first(z, g, after[1])
    assert short == whole.value and "dci_i" in whole.values
    assert after[0].random() == after[1].random()  # further permutations are those they always were


def test_the_null_of_infomec_and_modularity_needs_no_linear_probe():
    from diorama.protocols.codes.infomec import Infomec
    from diorama.protocols.codes.modularity import Modularity

    z, g = data()
    whole, short = infomec(z, g), infomec(z, g, explicit=False)
    assert short.values == {name: v for name, v in whole.values.items() if name != "info_e"}
    assert Infomec().first(z, g, np.random.default_rng(0)) == whole.value
    after = [np.random.default_rng(0), np.random.default_rng(0)]
    assert Modularity().first(z, g, after[0]) == Modularity().measure(z, g, after[1]).value == modularity(z, g).value
    assert after[0].random() == after[1].random()  # further permutations are those they always were
    assert not sample(z, g).empty
