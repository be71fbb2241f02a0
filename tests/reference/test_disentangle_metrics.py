"""Disentanglement scores: against slow references, on planted codes with known answers, and at the edges."""

from importlib import import_module
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.metrics import chance, codes
from diorama.metrics.beta_vae import beta_vae_score
from diorama.metrics.cg import cg, effects, farthest, random_sets
from diorama.metrics.factor_vae import factor_vae_score
from diorama.metrics.irs import irs
from diorama.metrics.mig import excess, mig
from diorama.metrics.modularity import explicitness, modularity
from diorama.metrics.regression import Softmax
from diorama.metrics.uc import overlaps, released, top, uc, uc_published
from tests.reference import disentangle_loops as slow

# modules that have the name of their function, which the package shows
dci, infomec, sap = (import_module(f"diorama.metrics.{name}") for name in ("dci", "infomec", "sap"))

POINTS = (1500, 500)
#: Object, colour, size, rotation, scene, light: the 4,050 combinations of CANDLE.
CANDLE = np.array(list(product(*map(range, (5, 5, 3, 6, 3, 3)))))


def rng(seed=0):
    return np.random.default_rng(seed)


def mixed(seed=0, n=400, latents=6, noise=0.2):
    """Codes that mix four factors, and the factors of an incomplete grid."""
    r = rng(seed)
    g = np.stack([r.integers(0, v, n) for v in (2, 3, 5, 8)], axis=1)
    g[g[:, 0] == 0, 1] = 0  # a confounded sample: some combinations never occur
    return g @ r.normal(size=(4, latents)) + noise * r.normal(size=(n, latents)), g


ALL = {
    "irs": irs,
    "uc": uc,
    "mig": mig,
    "modularity": modularity,
    "infomec": infomec.infomec,
    "sap": lambda z, g: sap.sap(z, g, rng()),
    "explicitness": lambda z, g: explicitness(z, g, rng()),
    "dci": lambda z, g: dci.dci(z, g, rng()),
    "beta_vae": lambda z, g: beta_vae_score(z, g, rng(), points=POINTS),
    "factor_vae": lambda z, g: factor_vae_score(z, g, rng(), points=POINTS),
}


# Against slow references


@pytest.mark.parametrize("quantile", [0.99, 1.0, 0.5])
def test_irs_is_the_loop(quantile):
    z, g = mixed()
    found = irs(z, g, quantile=quantile)
    np.testing.assert_allclose(found.matrix, slow.irs_matrix(z, g, quantile), atol=1e-12)
    assert found.value == pytest.approx(slow.irs(z, g, quantile), abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 60), st.integers(1, 5))
def test_irs_is_the_loop_on_any_sample(seed, n, latents):
    r = rng(seed)
    z, g = r.normal(size=(n, latents)) * 10.0 ** r.integers(-6, 6, latents), r.integers(0, 4, (n, 2))
    if (np.ptp(g, axis=0) == 0).any():
        return
    np.testing.assert_allclose(irs(z, g).matrix, slow.irs_matrix(z, g), atol=1e-11)


def test_mig_and_modularity_are_the_loops():
    z, g = mixed()
    assert mig(z, g).value == pytest.approx(slow.mig(z, g), abs=1e-12)
    assert modularity(z, g).value == pytest.approx(slow.modularity(z, g), abs=1e-12)
    np.testing.assert_allclose(mig(z, g).matrix, slow.information_matrix(z, g), atol=1e-12)


def test_neighbour_information_is_scikit_learn_s():
    feature_selection = pytest.importorskip("sklearn.feature_selection")
    z, g = mixed(n=700)
    for k, labels in ((10, g[:, 3]), (3, g[:, 1])):
        theirs = feature_selection.mutual_info_classif(z, labels, n_neighbors=k, random_state=0)
        ours = [infomec.neighbour_information(column, labels, k) for column in z.T]
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_the_probe_is_scikit_learn_s_logistic_regression():
    linear_model = pytest.importorskip("sklearn.linear_model")
    z, g = mixed()
    x = (z - z.mean(axis=0)) / z.std(axis=0)
    theirs = linear_model.LogisticRegression(C=1.0, max_iter=2000, tol=1e-8).fit(x, g[:, 3]).predict_proba(x)
    np.testing.assert_allclose(Softmax.fit(x, g[:, 3], penalty=1.0).probabilities(x), theirs, atol=2e-3)


@pytest.mark.parametrize("factor", [0, 3])
def test_the_one_dimensional_machine_is_liblinear_s(factor):
    svm = pytest.importorskip("sklearn.svm")
    z, g = mixed()
    machine = svm.LinearSVC(C=0.01, class_weight="balanced", tol=1e-10, max_iter=100_000)
    machine.fit(z[:, :1], g[:, factor])
    w, b = sap.one_dimensional_svm(z[:, 0], g[:, factor])
    np.testing.assert_allclose(w, machine.coef_[:, 0], atol=1e-5)
    np.testing.assert_allclose(b, machine.intercept_, atol=1e-5)


def test_sap_and_explicitness_are_scikit_learn_s():
    pytest.importorskip("sklearn")
    z, g = mixed(n=300)
    parts = codes.halves(len(z), 2 / 3, rng())
    assert sap.sap(z, g, rng()).value == pytest.approx(slow.sap(z, g, *parts), abs=2e-3)
    assert explicitness(z, g, rng()).value == pytest.approx(slow.explicitness(z, g, *parts), abs=2e-3)


def unequal(n=400):
    """Latents of three factors whose noise grows with the factor's own value: pairs of one value say little of others."""
    r = rng()
    g = np.stack([r.integers(0, v, n) for v in (2, 3, 4)], axis=1)
    return g + 0.5 * (1 + g) * r.normal(size=g.shape), g


def test_every_pair_of_the_beta_vae_score_has_a_value_of_its_own():
    """With one value for all pairs of a point these codes score 0.64."""
    pytest.importorskip("sklearn")
    (z, g), points = unequal(), (400, 800)
    theirs = slow.beta_vae(z, g, rng(), points)
    ours = np.mean([beta_vae_score(z, g, rng(i), points=points).value for i in range(4)])
    assert theirs > 0.85 and ours == pytest.approx(theirs, abs=0.04)


def test_all_images_of_a_factor_vae_point_share_one_value():
    (z, g), points = unequal(), (800, 800)
    theirs = slow.factor_vae(z, g, rng(), points)
    ours = np.mean([factor_vae_score(z, g, rng(i), points=points).value for i in range(4)])
    assert 0.4 < theirs < 0.95 and ours == pytest.approx(theirs, abs=0.04)


def test_dci_is_its_formula_and_names_its_estimator():
    pytest.importorskip("sklearn")
    z, g = mixed(n=200)
    found = dci.dci(z, g, rng())
    theirs = rng()
    importance, accuracy = slow.extra_trees(z, g, *codes.halves(len(z), 2 / 3, theirs), theirs)
    np.testing.assert_allclose(found.matrix, importance, atol=1e-12)
    assert list(found.values.values()) == pytest.approx([*slow.dci(importance), accuracy], abs=1e-12)
    assert found.values["dci_d"] != dci.dci(z, g, rng(), estimator="random_forest").values["dci_d"]
    with pytest.raises(ValueError, match="is not one of extra_trees, random_forest"):
        dci.dci(z, g, rng(), estimator="lightgbm")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40), st.integers(1, 4))
def test_the_farthest_value_is_the_released_search(seed, n, latents):
    z = rng(seed).normal(size=(n, latents))
    np.testing.assert_array_equal(farthest(z), slow.farthest(z))


def toy_judge(z):
    """Two factors of three and two values, read off latents 0 and 2."""

    def soft(x, values):
        e = np.exp(-((x[:, None] - np.arange(values)) ** 2))
        return e / e.sum(axis=1, keepdims=True)

    return [soft(z[:, 0], 3), soft(z[:, 2], 2)]


def test_both_equations_of_cg_are_the_loop_with_fewer_decodes():
    r = rng()
    z, g = r.uniform(0, 2, (50, 4)), np.stack([r.integers(0, 3, 50), r.integers(0, 2, 50)], axis=1)
    chosen = np.zeros((4, 2), bool)
    chosen[[0, 1], 0] = chosen[[2, 3], 1] = True
    decoded = []

    def judge(codes_):  # every factor is read off one latent of its own and one of the other's
        decoded.append(len(codes_))
        return toy_judge((codes_ + codes_[:, ::-1]) / 2)

    found = cg(judge, z, g, chosen)
    assert sum(decoded) == (1 + 2 * 2) * 50
    eq3, eq4 = slow.cg(judge, z, g, [{0, 1}, {2, 3}])
    assert (found.values["cg_eq3"], found.values["cg_eq4"]) == pytest.approx((eq3, eq4), abs=1e-12)
    assert eq3 < 0.8 * eq4
    assert found.values["cg"] == pytest.approx(found.values["cg_own"] - found.values["cg_other"])


# The released slip of UC: worked examples and the values it can take


@pytest.mark.parametrize(
    ("latents", "rho", "best", "wanted"),
    [
        (10, 2, 3, {3, 7}),
        (10, 2, 7, {7, 9}),
        (10, 2, 9, {9, 7}),
        (64, 5, 0, {0, 58, 53, 48, 43}),
        (64, 7, 21, {21, 56, 49, 42, 35, 28, 63}),
        (10, 7, 4, {4, 2}),
        (10, 1, 6, {6}),
    ],
)
def test_the_released_slice(latents, rho, best, wanted):
    column = rng().random(latents)
    column[best] = 2
    assert set(np.flatnonzero(released(column[:, None], rho)[:, 0])) == wanted == slow.released_slice(column, rho)


@pytest.mark.parametrize(("best", "wanted"), [((0, 1, 2, 3, 4), 2 / 3), ((0, 0, 1, 2, 3), 0.6), ((5, 5, 5, 5, 5), 0.0)])
def test_published_uc_on_given_winners(best, wanted):
    matrix = np.zeros((10, 5))
    matrix[list(best), range(5)] = 1
    assert 1 - overlaps(released(matrix, 2).T).mean() == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("factors", "latents", "rho", "wanted"),
    [
        (5, 10, 2, [0, 0.267, 0.4, 0.467, 0.533, 0.6, 0.667]),
        (6, 64, 5, [0, 0.111, 0.178, 0.2, 0.244, 0.267, 0.289, 0.311, 0.333]),
        (6, 64, 7, [0, 0.083, 0.133, 0.15, 0.183, 0.2, 0.217, 0.233, 0.25]),
    ],
)
def test_attainable_published_values(factors, latents, rho, wanted):
    """Every way to share winners among factors, with winners off the fixed places (those on them change little)."""
    free = [m for m in range(latents) if (latents - 1 - m) % rho][:factors]
    found = set()
    for winners in product(range(factors), repeat=factors):
        if list(winners) == sorted(winners) and set(winners) == set(range(max(winners) + 1)):
            matrix = np.zeros((latents, factors))
            matrix[[free[w] for w in winners], range(factors)] = 1
            found.add(round(1 - float(overlaps(released(matrix, rho).T).mean()), 3))
    assert found == set(wanted)


def test_corrected_uc_takes_the_largest_and_has_no_cap():
    matrix = np.zeros((10, 5))
    for i in range(5):
        matrix[[2 * i, 2 * i + 1], i] = [1, 0.5]
    assert 1 - overlaps(top(matrix, 2).T).mean() == 1
    assert 1 - overlaps(released(matrix, 2).T).mean() < 0.7
    z, g = mixed(n=80)
    found = uc(z, g, rho=2)
    assert found.values["uc"] == pytest.approx(slow.unconfoundedness(slow.top_sets(slow.irs_matrix(z, g), 2)))
    assert found.values["uc_image"] == pytest.approx(slow.uc_per_image(z, g, 2))


# Planted codes


def test_codes_that_are_the_factors_of_candle_reach_the_top():
    pytest.importorskip("sklearn")
    for name in ("irs", "mig", "modularity", "uc"):
        assert ALL[name](CANDLE, CANDLE).value == pytest.approx(1, abs=1e-9), name
    assert mig(CANDLE, CANDLE).values == pytest.approx({"mig": 1, "mig_sup": 1, "dmig": 1})
    found = infomec.infomec(CANDLE, CANDLE).values
    assert (found["info_m"], found["info_c"]) == pytest.approx((1, 1))
    assert dci.dci(CANDLE, CANDLE, rng()).value == pytest.approx(1, abs=1e-6)
    assert beta_vae_score(CANDLE, CANDLE, rng(), points=POINTS).value == 1
    assert factor_vae_score(CANDLE, CANDLE, rng(), points=POINTS).value == 1


def test_twenty_bins_merge_the_values_of_sprites():
    grid = np.array(list(product(range(3), range(2), range(40), range(8), range(8))))
    per_factor = mig(grid, grid).per_factor
    assert per_factor[2] == pytest.approx(np.log(20) / np.log(40))
    assert per_factor[[0, 1, 3, 4]] == pytest.approx(np.ones(4))


def test_all_factors_in_one_latent_score_nothing():
    packed = (CANDLE * np.array([1000, 200, 60, 10, 3, 1])).sum(axis=1, keepdims=True)
    assert uc(packed, CANDLE).values == {"uc": 0.0, "uc_image": 0.0}
    assert uc_published(packed, CANDLE).value == 0


def test_few_rows_lower_mig_and_more_draws_of_them_do_not_help():
    def draw(n, seed):
        r = rng(seed)
        g = np.stack([r.integers(0, v, n) for v in (3, 6, 40)], axis=1)
        z = g / [2, 5, 39] + 0.05 * r.normal(size=(n, 3))
        return np.concatenate([z, z[:, :2] / 2 + 0.3 * r.normal(size=(n, 2))], axis=1), g

    many, few = mig(*draw(20_000, 0)).value, [mig(*draw(300, i)).value for i in range(8)]
    assert np.mean(few) + 4 * np.std(few) < many
    assert excess(draw(300, 0)[1]).max() > 0.3 and excess(draw(20_000, 0)[1]).max() < 0.01
    # codes that say nothing: information in excess, by the formula
    noise = np.mean([mig(rng(100 + i).random((300, 1)), draw(300, i)[1][:, :1]).value for i in range(20)])
    assert noise == pytest.approx(excess(draw(300, 0)[1])[0], rel=0.15)


def test_turning_the_code_empties_mig_and_leaves_irs_above_chance():
    g = CANDLE[:, [0, 1]]
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    assert mig(g @ turn, g).value < 0.05
    shuffled = chance.null(lambda z, f: irs(z, f).value, g @ turn, g, rng(), 5)
    assert irs(g @ turn, g).value > shuffled.high + 0.05


def test_dmig_lifts_the_ceiling_of_dependent_factors():
    r = rng()
    g = np.stack([r.integers(0, 4, 4000)] * 2, axis=1)
    g[::4, 1] = r.integers(0, 4, 1000)
    found = mig(g, g).values
    assert found["mig"] < 0.5
    assert found["dmig"] == pytest.approx(1, abs=0.02)


def test_a_latent_with_two_factors_lowers_mig_sup():
    g = CANDLE[:, [0, 1]]
    z = np.stack([g[:, 0] + 10 * g[:, 1], g[:, 1]], axis=1)
    assert mig(z, g).values["mig_sup"] < 0.8


@pytest.mark.parametrize("name", list(ALL))
def test_shuffled_rows_score_the_null(name):
    """Two draws of the same null agree, and lie below the value of the codes themselves."""
    if name in ("dci",):
        pytest.importorskip("sklearn")
    z, g = mixed(n=600, noise=0.1)
    score = lambda a, b: ALL[name](a, b).value  # noqa: E731
    found = chance.null(score, z, g, rng(1), 4)
    again = score(z[rng(2).permutation(len(z))], g)
    spread = {"uc": 0.5, "factor_vae": 0.15}.get(name, 0.1)
    assert again == pytest.approx(found.mean, abs=spread)
    if name not in ("uc", "modularity", "infomec", "sap"):  # which chance can exceed: that is what the null is for
        assert score(z, g) > found.high


def test_dead_latents_fool_irs_unless_pruned():
    g = CANDLE[::5, :3]
    z = np.concatenate([g @ rng().normal(size=(3, 3)), 1e-3 * (g[:, :1] > 2)], axis=1)
    plain, pruned = irs(z, g), irs(z, g, rule="spread")
    assert plain.matrix[3].max() > 0.9 > plain.matrix[:3].max()
    assert np.isnan(pruned.matrix[3]).all() and not pruned.active[3]
    assert uc(z, g).active.tolist() == [True, True, True, False]


def test_absolute_cg_rewards_the_wrong_assignment_and_signed_cg_does_not():
    r = rng()
    g = np.stack([r.integers(0, 3, 300), r.integers(0, 2, 300)], axis=1)
    z = np.stack([g[:, 0], r.normal(size=300), g[:, 1], r.normal(size=300)], axis=1)
    right, wrong = np.zeros((4, 2), bool), np.zeros((4, 2), bool)
    right[0, 0] = right[2, 1] = wrong[1, 0] = wrong[3, 1] = True
    good, bad = cg(toy_judge, z, g, right).values, cg(toy_judge, z, g, wrong).values
    assert good["cg_eq4"] == pytest.approx(bad["cg_eq4"])
    assert good["cg"] > 0.3 > -0.3 > bad["cg"]


def test_a_weak_classifier_leaves_its_factor_without_cg():
    r = rng()
    z, g = r.normal(size=(20, 4)), np.zeros((20, 2), int)
    chosen = np.eye(4, 2, dtype=bool)
    found = cg(toy_judge, z, g, chosen, accuracy=np.array([0.99, 0.9]))
    own, other = effects(toy_judge, z, g, chosen)
    assert np.isnan(found.per_factor[1])
    assert found.value == pytest.approx((own - other)[:, 0].mean())
    assert np.isnan(cg(toy_judge, z, g, chosen, accuracy=np.array([0.5, 0.5])).value)


def test_only_active_latents_are_moved_and_random_sets_keep_their_sizes():
    chosen = np.zeros((6, 2), bool)
    chosen[:2, 0] = chosen[2, 1] = True
    active = np.array([True, True, True, True, False, False])
    drawn = random_sets(chosen, active, rng())
    assert drawn.sum(axis=0).tolist() == [2, 1] and not drawn[4:].any()
    seen = []

    def judge(z):
        seen.append(z)
        return toy_judge(z)

    z = rng().normal(size=(5, 6))
    cg(judge, z, np.zeros((5, 2), int), chosen, active)
    assert all(np.array_equal(s[:, 4:], z[:, 4:]) for s in seen)


# Edges


@pytest.mark.parametrize("name", list(ALL))
def test_constant_latents_and_single_valued_factors_take_no_part(name):
    if name == "dci":
        pytest.importorskip("sklearn")
    z, g = mixed()
    more_z, more_g = np.insert(z, 2, 0.3, axis=1), np.insert(g, 1, 7, axis=1)
    plain, more = ALL[name](z, g), ALL[name](more_z, more_g)
    assert more.values == pytest.approx(plain.values)
    assert not more.active[2] and np.isnan(more.matrix[2]).all() and np.isnan(more.per_factor[1])


@pytest.mark.parametrize("name", list(ALL))
def test_one_factor_more_latents_than_rows_and_nothing_at_all(name):
    if name == "dci":
        pytest.importorskip("sklearn")
    r = rng()
    z, g = r.normal(size=(30, 50)), r.integers(0, 3, (30, 2))
    assert all(np.isfinite(v) for v in ALL[name](z, g).values.values())
    pairs = {"uc", "modularity", "beta_vae", "factor_vae", "infomec"}  # compare factors, so that one has no score
    assert np.isnan(ALL[name](z, g[:, 0]).value) == (name in pairs or name == "dci")
    assert np.isnan(ALL[name](np.zeros((30, 2)), g).value)
    assert np.isnan(ALL[name](z, np.zeros(30)).value)


def test_continuous_factors_are_cut_into_bins():
    r = rng()
    g = r.random((500, 2))
    assert mig(g, g).value > 0.7
    assert irs(g, g).value > 0.9
    part = codes.sample(g, g)
    assert part.labels.max() == 19
    angles = np.linspace(0, 2 * np.pi, 40)[r.integers(0, 40, 500)]
    assert codes.sample(g, angles).labels.max() == 39


@pytest.mark.parametrize(
    ("z", "g", "message"),
    [
        (np.zeros((3, 2)), np.zeros((4, 1)), "codes have 3 rows, factors 4"),
        (np.full((3, 2), np.nan), np.zeros((3, 1)), "codes have 6 values that are NaN"),
        (np.zeros(3), np.zeros((3, 1)), r"codes have shape \(3,\)"),
        (np.zeros((1, 2)), np.zeros((1, 1)), "one image is no sample"),
    ],
)
def test_bad_arrays_are_named(z, g, message):
    with pytest.raises(ValueError, match=message):
        mig(z, g)


def test_rho_beyond_the_active_latents_is_refused():
    with pytest.raises(ValueError, match="rho=7: 6 latents are active"):
        uc(*mixed(), rho=7)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_scores_do_not_depend_on_the_order_or_the_scale_of_latents(seed):
    z, g = mixed(seed % 1000, n=200)
    order, scale = rng(seed).permutation(z.shape[1]), 2.0 ** rng(seed).integers(-2, 3)
    for score in (irs, mig, modularity, uc, infomec.infomec):  # info_e is a fit that stops after 100 steps
        assert score(scale * z[:, order], g).values == pytest.approx(score(z, g).values, abs=1e-3), score
    for score in (irs, mig, uc):
        np.testing.assert_allclose(score(z[:, order], g).matrix, score(z, g).matrix[order])


def test_null_and_interval():
    z, g = mixed()
    score = lambda a, b: mig(a, b).value  # noqa: E731
    low, high = chance.interval(score, z, g, rng(), 10)
    assert low < score(z, g) < high and high - low < 0.2
    assert chance.null(lambda a, b: float("nan"), z, g, rng(), 3).undefined == 3
