"""`diorama.metrics`: closed forms, other libraries, and the intervals that tables show."""

import numpy as np
import pytest
from scipy.stats import binomtest, spearmanr

import diorama
from diorama import metrics
from diorama.core.rows import Row
from diorama.core.summary import summarise
from diorama.metrics import Measurement

GRID = np.array([[i, j] for i in range(4) for j in range(4)] * 8)
WORDS = np.array([[f"object {i}", f"colour {j}"] for i, j in GRID])


def noisy(seed=0, n=300):
    draw = np.random.default_rng(seed)
    g = draw.integers(0, 4, (n, 2))
    return g + 0.3 * draw.normal(size=(n, 2)), g


def test_everything_listed_is_there_and_gives_a_measurement():
    assert diorama.metrics is metrics
    for name in metrics.__all__:
        assert getattr(metrics, name).__doc__
    found = metrics.mig(*noisy())
    assert isinstance(found, Measurement) and float(found) == found.value
    assert found.interval[0] < found.value < found.interval[1] and found.n == 300
    assert repr(found).startswith(f"mig {found.value:.4f} [") and "n = 300; mig_sup" in repr(found)


def test_the_interval_of_a_mean_is_that_of_tables():
    draw = np.random.default_rng(0)
    truth, estimate = draw.random((2, 9, 24, 24))
    found = metrics.lmse(truth, estimate)
    rows = [Row("c", str(i), "lmse", float(v)) for i, v in enumerate(found.each)]
    table = summarise(rows, (0.0, 1.0))
    assert (found.value, *found.interval) == pytest.approx((table.mean, table.lo, table.hi))


def test_layers_have_their_closed_forms():
    x = np.linspace(0.1, 1, 30 * 30 * 3).reshape(30, 30, 3)
    assert metrics.lmse(x, 3 * x).value == pytest.approx(0, abs=1e-12)
    assert metrics.lmse(x, 0 * x).value == 1
    assert metrics.lmse(x, 3 * x).interval is None  # one image
    assert metrics.si_mse(x, 7 * x).value == pytest.approx(0, abs=1e-12)
    assert metrics.psnr(x, x + 0.01).value == pytest.approx(40)
    assert metrics.ssim(x, x).value == pytest.approx(1)
    # two lights that only scale the image: an answer that follows the light half way leaves a quarter of the variance
    light = np.exp(np.random.default_rng(0).normal(size=(2, 12, 12)))
    assert metrics.invariance(np.sqrt(light), light).value == pytest.approx(0.25, abs=1e-6)
    assert metrics.invariance(np.ones_like(light), light).value == 0


def test_ssim_is_that_of_scikit_image():
    skimage = pytest.importorskip("skimage.metrics")
    a, b = np.random.default_rng(1).random((2, 40, 40))
    options = {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False, "data_range": 1.0}
    theirs = skimage.structural_similarity(a, b, **options, full=True)[1][5:-5, 5:-5].mean()
    assert metrics.ssim(a, b).value == pytest.approx(theirs, abs=1e-6)


def test_whdr_reads_the_files_of_iiw():
    points = [{"id": i, "x": x, "y": 0.5, "opaque": True} for i, x in ((1, 0.1), (2, 0.9))]
    judged = [{"point1": 1, "point2": 2, "darker": d, "darker_score": s} for d, s in (("1", 3.0), ("E", 1.0))]
    image = np.array([[0.2, 0.8]])  # the first is darker: the judgement E is contradicted, with a quarter of the weight
    assert metrics.whdr(image, {"intrinsic_points": points, "intrinsic_comparisons": judged}).value == 0.25
    with pytest.raises(ValueError, match="IIW"):
        metrics.whdr(image, {"points": []})


def test_confusion_counts_evidence_by_hand():
    maps = np.array([[[2.0, -1.0], [1.0, -3.0]], [[0.0, 0.0], [0.0, 0.0]]])
    mask = np.array([[True, True], [False, False]])
    found = metrics.confusion(maps, mask)  # TP 2, FP 1, TN 3, FN 1; the second map says nothing
    assert found.n == 1 and found.value == pytest.approx(2 / 3)
    assert found.values["recall"] == pytest.approx(2 / 3) and found.values["specificity"] == pytest.approx(3 / 4)
    assert found.values["accuracy"] == pytest.approx(5 / 7)
    nothing = metrics.confusion(maps[1], mask)
    assert np.isnan(nothing.value) and nothing.reason == "no positive evidence anywhere"


def test_single_deletion_is_spearman():
    drops, importances = np.random.default_rng(0).random((2, 12, 5))
    theirs = [0.5 + 0.5 * spearmanr(a, b).statistic for a, b in zip(drops, importances, strict=True)]
    found = metrics.single_deletion(drops, importances)
    np.testing.assert_allclose(found.each, theirs)
    assert found.value == pytest.approx(np.mean(theirs)) and found.n == 12
    assert metrics.single_deletion([[1, 1, 1]], [[1, 2, 3]]).n == 0


def test_shares_have_wilsons_interval():
    found = metrics.accuracy(np.eye(2)[[0, 1, 1, 0, 1]], [0, 1, 0, 0, 1])
    theirs = binomtest(4, 5).proportion_ci(method="wilson")
    assert found.value == 0.8 and found.interval == pytest.approx((theirs.low, theirs.high), abs=1e-6)
    logits = np.array([[3.0, 1.0], [3.0, 1.0]])
    assert metrics.preservation(logits, logits[:, ::-1]).value == 0 == metrics.deletion(logits, logits).value


def test_the_scores_of_funnybirds_by_hand():
    classes = [["a", "x"], ["a", "y"], ["b", "y"]]  # class 0 is told by x, class 2 by b, class 1 by both
    assert metrics.csdc([[0, 1], [1, 0], [1, 0]], classes, [0, 1, 2]).each.tolist() == [1.0, 0.5, 1.0]
    assert metrics.distractibility([[1, 0, 0, 1]], [[0, 1, 1, 1]]).value == pytest.approx(2 / 3)
    assert metrics.background_independence([10.0, 10.0], [[9.0, 9.9], []]).n == 1
    tie = metrics.target_sensitivity([[1.0, 0.0]], [[0.0, 0.0]], [[1, 0]], [[0, 1]])
    assert tie.value == 0.75
    assert metrics.mx(1, 1, 1, 1, 0.5, 0.5).values["com"] == 1.0


@pytest.mark.parametrize("name", ["mig", "irs", "uc", "sap", "modularity", "explicitness", "infomec"])
def test_words_are_as_good_as_numbers(name):
    score = getattr(metrics, name)
    numbers, words = score(GRID, GRID, resamples=0), score(GRID, WORDS, resamples=0)
    assert numbers.values == words.values
    assert numbers.interval is None
    records = [{"object": o, "colour": c} for o, c in WORDS.tolist()]
    columns = {"object": WORDS[:, 0], "colour": WORDS[:, 1]}
    assert score(GRID, records, resamples=0).values == score(GRID, columns, resamples=0).values == words.values


def test_codes_that_are_the_factors_score_one_and_unrelated_codes_do_not():
    other = np.random.default_rng(0).normal(size=GRID.shape)
    for name in ("mig", "uc", "modularity", "irs"):
        assert getattr(metrics, name)(GRID, WORDS, resamples=0).value == pytest.approx(1)
    assert metrics.mig(other, WORDS, resamples=0).value < 0.2
    pytest.importorskip("sklearn")
    assert metrics.dci(GRID, WORDS).value == pytest.approx(1)
    assert metrics.dci(other, WORDS).value < 0.3
    assert metrics.mig(np.ones((8, 2)), GRID[:8]).reason.startswith("0 latents are active")


def test_the_interval_of_codes_covers_what_a_large_sample_gives():
    large = metrics.irs(*noisy(1, 20_000), resamples=0).value
    hits = 0
    for seed in range(10):
        low, high = metrics.irs(*noisy(seed, 1500)).interval
        hits += low - 0.02 < large < high + 0.02
    assert hits >= 8


def test_cg_of_a_perfect_generator_is_one_and_of_swapped_sets_minus_one():
    z = np.array([[i, j] for i in (0.0, 1.0) for j in (0.0, 1.0)])

    def judge(codes):
        return [np.stack([1 - codes[:, k], codes[:, k]], axis=1) for k in (0, 1)]

    words = np.where(z > 0, "yes", "no")
    assert metrics.cg(judge, z, words).value == 1
    swapped = metrics.cg(judge, z, words, sets=np.array([[False, True], [True, False]]))
    assert swapped.value == -1 and swapped.values["cg_eq4"] == 1


def test_tcav_sees_a_planted_direction_and_no_other():
    draw = np.random.default_rng(0)
    others = draw.normal(size=(60, 8))
    concept = draw.normal(size=(40, 8)) + 4 * np.eye(8)[2]
    along = draw.normal(size=(50, 8)) * 0.1 + np.eye(8)[2]
    found = metrics.tcav(along, concept, others, permutations=99)
    assert found.value == 1 and found.values["permutation_p"] <= 0.02 and found.values["accuracy"] > 0.9
    assert metrics.tcav(along, concept, others, sign=-1, permutations=19).value == 0
    apart = metrics.tcav(draw.normal(size=(50, 8)), concept, others, permutations=99)
    assert apart.interval[0] < 0.5 < apart.interval[1] + 0.15
    with pytest.raises(ValueError, match="at least two"):
        metrics.tcav(along, concept[:1], others)


def test_csm_is_a_ratio_of_means_over_sets_that_have_one():
    found = metrics.csm([0.2, 0.6, np.nan], [0.1, 0.3, 0.2])
    assert found.value == pytest.approx(0.4 / 0.2) and found.interval is not None
    with pytest.raises(ValueError, match="one share for each"):
        metrics.csm([0.1], [0.1, 0.2])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: metrics.lmse(np.zeros((4, 4)), np.zeros((5, 5))), "truth is 4×4, estimate 5×5"),
        (lambda: metrics.lmse(np.zeros((2, 8, 8)), np.zeros((8, 8))), "truth has 2 images, estimate 1"),
        (lambda: metrics.lmse(np.zeros(4), np.zeros(4)), "shape"),
        (lambda: metrics.lmse(np.zeros((4, 4)), np.zeros((4, 4)), np.ones((2, 2))), "mask does not fit"),
        (lambda: metrics.mig(np.zeros((3, 2)), np.zeros((4, 1)), resamples=0), "codes have 3 rows, factors 4"),
        (lambda: metrics.uc(*noisy(), rho=3), "rho=3"),
    ],
)
def test_mistakes_are_one_line(call, said):
    with pytest.raises(ValueError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
