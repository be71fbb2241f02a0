"""The net: small plans over every track, protocol, method and staged world, whose results are kept in golden/net.json.

`python -m tests.golden_net [PLAN …]` says what differs now, `… --write [PLAN …]` writes the file; golden/README.md says
when that is allowed. Only public ways in are used: the names of `diorama`, and the reader of a run's rows in `read`.
"""

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

GOLDEN = Path(__file__).parent / "golden" / "net.json"
ABOUT = "Written by python -m tests.golden_net --write; see tests/golden/README.md before you rewrite it."
#: Lists longer than this are kept by sums and their first values.
LONG = 12
#: What a summary keeps; its interval (lo, hi) is kept in a section of its own.
KEPT = ("mean", "std", "n_ok", "n_undefined", "n_excluded", "n_error")


# What a plan finds in its folder, made on the spot


def saved_layers(folder: Path) -> None:
    """Layers of four cases of mondrian(size=24): good ones, sRGB ones, one layer only, none."""
    world = _world("mondrian(size=24)")
    for i, name in enumerate(("good", "bright", "lonely")):
        frame = _frame(world, i)
        reflectance, shading = frame.truth["reflectance"] * 0.9 + 0.05, frame.truth["shading"]
        if name == "bright":
            reflectance, shading = reflectance ** (1 / 2.2), shading ** (1 / 2.2)
        _save(folder / "layers" / f"0-{i:05d}.npz", reflectance=reflectance, shading=shading)
        if name == "lonely":
            _save(folder / "layers" / f"0-{i:05d}.npz", shading=shading)


def saved_maps(folder: Path) -> None:
    """Maps of the true class of two birds, for every class that FunnyBirds asks about of the first of them."""
    world = _world("birds")
    for i in range(2):
        frame = _frame(world, i)
        ramp = np.add.outer(np.arange(128.0), np.arange(128.0)) / 254 + (frame.truth["parts"] % 3 == 1)
        for target in range(50) if i == 0 else [frame.truth["label"]]:
            _save(folder / "maps" / f"0-{i:05d}" / f"{target}.npy", ramp - 0.01 * target)


def saved_codes(folder: Path) -> None:
    """Codes of sprites by number: the place and two numbers that mean nothing."""
    world = _world("sprites(counts=(3, 2, 4, 3, 3))")
    names, scenes = zip(*(world.scene(i) for i in range(len(world))), strict=True)
    codes = [[s.params["x"], s.params["y"] + 0.1 * i % 7, i % 5] for i, s in enumerate(scenes)]
    _save(folder / "codes.npz", names=np.array(names), codes=np.array(codes, float))


def perceptual_weights(folder: Path) -> None:
    """A perceptual network in AlexNet's layout with few channels."""
    from safetensors.numpy import save_file

    draw, widths, kernels = _draw("weights"), (3, 4, 5, 5, 4, 4), (11, 5, 3, 3, 3)
    found = {}
    for i, size in enumerate(kernels):
        found[f"conv{i}.weight"] = draw.normal(0, 0.2, (widths[i + 1], widths[i], size, size)).astype(np.float32)
        found[f"conv{i}.bias"] = draw.normal(0, 0.1, widths[i + 1]).astype(np.float32)
        found[f"lin{i}.weight"] = draw.random(widths[i + 1]).astype(np.float32)
    save_file(found, folder / "alex.safetensors")


def labelled_shading(folder: Path) -> None:
    """Three photos in the layout of SAW, the last of them without labels."""
    from diorama.io.images import write_png

    root, draw = folder / "saw", _draw("saw")
    for i in (20, 3, 100):
        ramp = np.linspace(0.4, 0.5, 44)[None, :, None] + 0.4 * (np.arange(44) > 30)[None, :, None]
        image = np.round(255 * (ramp + 0.05 * draw.random((36, 44, 3)))).astype(np.uint8)
        write_png(root / "saw_images_512" / f"{i}.png", image)
        labels = np.full((36, 44), 100, np.uint8)
        if i != 100:
            labels[4:12, 4:12], labels[20:30, 5:20], labels[5:30, 30:33] = 2, 1, 0
        _save(root / "saw_pixel_labels" / "made" / f"{i}.npy", labels)
    _save(root / "saw_splits" / "test_ids.npy", np.array([20, 3, 100]))


def bird_photos(folder: Path) -> None:
    """Photos of three classes of birds in class folders."""
    from diorama.io.images import write_png

    world = _world("birds(size=40, antialias=False)")
    for label, name in ((3, "crow"), (17, "finch"), (41, "heron")):
        for i in range(5):
            scene = world.do(world.sample(_draw("photos", label, i)), label=label)
            (frame,) = world.render([scene])
            write_png(folder / "photos" / name / f"{i}.png", np.round(255 * frame.srgb()).astype(np.uint8))


def coarse_encoder(folder: Path) -> None:
    """An encoder and a decoder as functions of arrays."""
    (folder / "coarse.py").write_text(
        "import numpy as np\n\n\n"
        "def encode(images):\n"
        "    return images.reshape(len(images), 4, 16, 4, 16, -1).mean(axis=(2, 4, 5)).reshape(len(images), -1)\n\n\n"
        "def decode(codes):\n"
        "    blocks = np.clip(codes, 0, 1).reshape(-1, 4, 4).repeat(16, 1).repeat(16, 2)\n"
        "    return np.repeat(blocks[:, :, :, None], 3, axis=3)\n"
    )


def failing_method(folder: Path) -> None:
    """A decomposer that fails on some images and answers in the wrong size on others."""
    (folder / "failing.py").write_text(
        "import numpy as np\n\n\n"
        "class Failing:\n"
        "    def decompose(self, frames):\n"
        "        from diorama import Layers, Undefined\n\n"
        "        level = int(1000 * float(frames[0].image.mean())) % 3\n"
        "        if level == 0:\n"
        "            raise RuntimeError('planted failure')\n"
        "        if level == 1:\n"
        "            raise Undefined('planted: nothing to say')\n"
        "        return Layers(np.ones((3, 3, 1)), np.ones((3, 3, 1)))\n"
    )


def _world(spec: str) -> Any:
    from diorama import build

    return build("world", spec).object


def _frame(world: Any, index: int) -> Any:

    return world.render([world.scene_at(0, index)[1]])[0]


def _draw(*purpose: Any) -> np.random.Generator:
    from diorama import rng

    return rng(0, "net", *purpose)


def _save(path: Path, array: Any = None, **arrays: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if arrays:
        np.savez(path, **arrays)
    else:
        np.save(path, array)


# The plans


@dataclass(frozen=True)
class Net:
    """A plan of the net: what `diorama.run` is given, what is made before, and whether torch has a part in its values."""

    worlds: list[str]
    protocols: list[str]
    methods: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    cases: int = 3
    controls: bool = False
    made: tuple[Callable[[Path], None], ...] = ()
    torch: bool = False


_SPLIT = "sprites(counts=(3, 2, 4, 3, 3))"
_CAV = "images=20, pool=24, tests=6, permutations=9"
_SETS = "concepts(scenes=2, setting=rgb-simple, images=5, size=SIZE, samples=4)"
_CSM = "test='test_scenes(scenes=2, lights=2, samples=4)', runs=4"
_RANDOM = "variant=published, negatives='random_scenes(count=8, samples=2)'"

PLANS: dict[str, Net] = {
    "explain-gradients": Net(
        ["birds"],
        ["continuity"],
        ["saliency", "input_x_gradient", "integrated_gradients(steps=3)", "integrated_gradients_abs(steps=3)",
         "smoothgrad(samples=3)", "grad_cam", "lrp", "captum(name=InputXGradient)"],
        ["birds_cnn"],
        cases=1,
        torch=True,
    ),
    "explain-families": Net(
        ["birds(objects=3)"],
        ["funnybirds(variant=published)", "single_deletion"],
        ["rollout", "chefer", "lrp_attention", "grad_cam", "bagnet", "xdnn", "bcos", "prototypes",
         "prototypes(reading=similarity)"],
        ["birds_vit", "birds_bagnet", "birds_xdnn", "birds_bcos", "birds_protopnet"],
        cases=1,
        torch=True,
    ),
    "explain-trials": Net(
        ["birds(objects=5)"],
        ["single_deletion"],
        ["rise(masks=20)", "occlusion(window=64, stride=32)", "lime(samples=20)", "lime(samples=20, answer=signed)"],
        ["birds_cnn"],
        cases=2,
        controls=True,
        torch=True,
    ),
    "explain-funnybirds": Net(
        ["birds(objects=3)"],
        ["funnybirds", "funnybirds(variant=published)", "continuity(change=light)"],
        ["input_x_gradient"],
        ["birds_cnn"],
        cases=1,
        controls=True,
        torch=True,
    ),
    "explain-saved": Net(
        ["birds"],
        ["funnybirds", "single_deletion"],
        ["explain/predictions(folder=maps)", "explain/predictions(folder=maps, kind=mask)"],
        ["birds_vgg"],
        cases=2,
        made=(saved_maps,),
        torch=True,
    ),
    "explain-mosaics": Net(
        ["mosaic(source='birds(size=64)', per_class=1)"],
        ["confusion", "confusion(undefined=zero)", "cell_swap"],
        ["grad_cam_acm", "integrated_gradients_acm(steps=3)", "lime_acm(samples=20)"],
        ["birds_resnet"],
        cases=1,
        controls=True,
        torch=True,
    ),
    "explain-head": Net(
        ["photos(source=photos, size=32, train=3)", "mosaic(source=photos, cell=32, train=3, per_class=1)"],
        ["accuracy", "confusion"],
        ["saliency"],
        ["head(backbone=birds_cnn, on=photos, train=3, size=32)"],
        made=(bird_photos,),
        torch=True,
    ),
    "explain-accuracy": Net(
        ["birds(split=train)"], ["accuracy"], models=["birds_cnn", "birds_resnet", "birds_vgg"], cases=10, torch=True
    ),
    "decompose-layers": Net(
        ["mondrian(size=24)"],
        ["lmse", "lmse(preset=barron)", "lmse(preset=fan)", "si_mse", "si_mse(preset=fan)", "dssim",
         "dssim(preset=marigold)"],
        ["baseline", "constant(layer=shading)", "leak(alpha=0.3)"],
        cases=3,
        controls=True,
    ),
    "decompose-more-layers": Net(
        ["mondrian(size=24)"],
        ["psnr", "psnr(preset=marigold)", "psnr(preset=rgbx)", "whdr", "whdr(preset=li)", "reconstruction", "invariance"],
        ["constant", "leak(alpha=0.3)", "retinex_gray(threshold=0.1)"],
        cases=3,
        controls=True,
    ),
    "decompose-grids": Net(
        ["mondrian(size=24)", "tabletop(size=24, samples=2)"],
        ["lmse", "invariance"],
        ["retinex_gray", "retinex_gray(threshold=0.3, norm=l1)", "retinex_color", "weiss", "weiss_retinex"],
        cases=2,
    ),
    "decompose-one-case": Net(["mondrian(size=24)"], ["lmse", "whdr"], ["baseline", "retinex_gray"], cases=1),
    "decompose-fits": Net(
        ["mondrian(size=24, patches=6)"],
        ["lmse"],
        ["tappen05(rounds=3, samples=300)", "tappen06(prototypes=2, samples=300)"],
        cases=4,
    ),
    "decompose-worlds": Net(
        ["tabletop(size=24, samples=2, objects=3, surface=textured)",
         "random_scenes(count=3, size=24, samples=2)", "test_scenes(scenes=1, size=24, samples=2)", "birds(size=32)"],
        ["lmse", "saw_ap(preset=li)"],
        ["constant"],
        cases=2,
    ),
    "decompose-networks": Net(
        ["tabletop(size=32, samples=4)"],
        ["lmse", "psnr"],
        ["iid_supervised", "iid_timelapse", "iid_translation"],
        cases=2,
        torch=True,
    ),
    "decompose-lpips": Net(
        ["mondrian(size=32)"],
        ["lpips(weights=alex.safetensors)", "lpips(weights=alex.safetensors, preset=aligned)"],
        ["constant"],
        cases=2,
        controls=True,
        made=(perceptual_weights,),
        torch=True,
    ),
    "decompose-saved": Net(
        ["mondrian(size=24)"],
        ["lmse", "reconstruction", "invariance"],
        ["decompose/predictions(folder=layers)", "decompose/predictions(folder=layers, encoding=srgb)",
         "decompose/predictions(folder=layers, divide=True)", "./failing.py:Failing"],
        cases=4,
        made=(saved_layers, failing_method),
    ),
    "decompose-labels": Net(
        ["saw(root=saw)"],
        ["saw_ap(preset=li)", "saw_ap(preset=li, mode=1)", "saw_ap(preset=kovacs)", "whdr"],
        ["constant", "constant(layer=shading)"],
        cases=2,
        controls=True,
        made=(labelled_shading,),
    ),
    "decompose-sets": Net(
        [_SETS.replace("SIZE", "16")],
        ["response_invariance", f"csm({_CSM})", f"csm({_CSM}, {_RANDOM}, p=0.9)",
         f"csm({_CSM}, {_RANDOM}, floor=0.01, aggregate=mean_of_ratios)"],
        ["constant", "leak(alpha=0.4)", "baseline"],
        cases=4,
        controls=True,
    ),
    "decompose-inner-layers": Net(
        [_SETS.replace("SIZE", "32")],
        [f"csm({_CSM}, layer=decoder3)", f"csm({_CSM})"],
        ["iid_supervised", "constant"],
        cases=2,
        torch=True,
    ),
    "concept-do": Net(
        ["birds"],
        [f"tcav(concept=birds, do='beak=2', negatives_do='beak=none', target=3, vectors=True, {_CAV})"],
        ["hinge_sgd", "linear_svm", "logistic", "mean_difference", "ridge"],
        ["birds_cnn"],
        controls=True,
        torch=True,
    ),
    "concept-pictures": Net(
        ["birds"],
        [f"tcav(concept='birds(objects=0)', negatives='birds(objects=34)', layer=stage3, gradient=loss, {_CAV})"],
        ["ridge", "concept/random(seed=1)"],
        ["birds_vgg"],
        torch=True,
    ),
    "represent-codes": Net(
        [_SPLIT],
        ["mig(frames=40, nulls=1)", "irs(frames=40, nulls=1)", "factor_vae(frames=40)",
         "uc(frames=40, nulls=1)", "uc(variant=published, frames=40, rho=2, nulls=1)"],
        ["pca(latents=4)", "transformer(name=FastICA, options={'n_components': 3, 'random_state': 0})",
         "represent/predictions(codes=codes.npz)", "pair(encoder=./coarse.py:encode)"],
        cases=2,
        controls=True,
        made=(saved_codes, coarse_encoder),
    ),
    "represent-learners": Net(
        [_SPLIT],
        ["sap(frames=30)", "modularity(frames=30)", "dci(frames=30)", "infomec(frames=30)", "beta_vae(frames=30)",
         "mcc(frames=30)"],
        ["pca(latents=2)", "represent/random(latents=2)"],
        cases=1,
    ),
    "represent-networks": Net(
        ["sprites", "sprites(sigma=0.3)"],
        ["mig(frames=40)", "uc(frames=40)"],
        ["represent/beta_vae", "burgess_vae"],
        cases=2,
        torch=True,
    ),
    "represent-trained": Net(
        ["candle(width=88, samples=1)"],
        ["irs(frames=20)"],
        ["represent/beta_vae", "ss_beta_vae", "represent/factor_vae", "ss_factor_vae", "beta_tcvae", "ss_beta_tcvae",
         "dip_vae", "ss_dip_vae"],
        cases=1,
        torch=True,
    ),
    "represent-judged": Net(  # no model is given: the world's usual judge is asked
        ["sprites", "candle(width=88, samples=1)"],
        ["cg(frames=12)"],
        ["represent/beta_vae"],
        cases=1,
        torch=True,
    ),
    "two-tracks": Net(
        ["candle(width=24, samples=1)", "birds(size=32)"],
        ["mig(frames=10)", "lmse"],
        ["pca(latents=2)", "constant"],
        cases=1,
        controls=True,
    ),
    "represent-counterfactuals": Net(
        ["sprites"],
        ["cg(frames=12)", "cg(frames=12, variant=published)"],
        ["pca(latents=5)", "pair(encoder=./coarse.py:encode, decoder=./coarse.py:decode)",
         "pair(encoder=./coarse.py:encode)"],
        ["sprites_moments"],
        cases=1,
        controls=True,
        made=(coarse_encoder,),
    ),
}  # fmt: skip


# What is kept of a run


def compute(name: str, folder: Path, processes: int = 1) -> dict[str, Any]:
    """The results of a plan, run in `folder`: its cells by name, the pairs that were skipped, and the intervals."""
    import diorama

    net = PLANS[name]
    # In the folder, so that the names of what is made there are the same everywhere.
    with contextlib.chdir(folder), patch.dict(os.environ, DIORAMA_CACHE=str(folder / "cache")):
        for make in net.made:
            make(folder)
        found = diorama.run(
            net.worlds, net.methods, net.protocols, net.models, net.cases, 0, net.controls, "run", processes
        )
        rows = dict(read(Path("run")))
    cells = {label(cell): _cell(cell) | rows[label(cell)] for cell in found["cells"]}
    if len(cells) != len(found["cells"]):
        raise ValueError(f"{name}: two cells have one name")
    skipped = sorted(" | ".join(str(part or "") for part in one.values()) for one in found["skipped"])
    intervals = {label(cell): _intervals(cell) for cell in found["cells"]}
    return {"cells": cells, "skipped": skipped, "intervals": intervals}


def read(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows and kept arrays of every cell of a run. The one place that knows how a run is read."""
    from diorama.report.summary import read_results

    for cell in read_results(folder).cells:
        rows: dict[str, dict[str, Any]] = {}
        for row in cell.rows:
            rows.setdefault(row.case, {})[row.metric] = _row(row.status, row.reason, row.at, row.value)
        kept = dict(_arrays(cell.folder / "keep"))
        yield label(cell.manifest), {"rows": rows} | ({"kept": kept} if kept else {})


def _row(status: str, reason: str, at: str, value: Any) -> Any:
    """A bare value where there is no more to say; a long list by its length, two sums and its first values."""
    if isinstance(value, list) and len(value) > LONG:
        value = {
            "n": len(value),
            "sum": float(np.sum(value)),
            "squares": float(np.square(value).sum()),
            "first": value[:LONG],
        }
    return value if status == "ok" and not reason and not at else [status, reason, at, value]


def _arrays(folder: Path) -> Iterator[tuple[str, Any]]:
    """The shape and two sums of every array that was kept beside the rows."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            for name in sorted(arrays):
                array = arrays[name]
                text = array.dtype.kind not in "fiub"
                sums = array.ravel().tolist() if text else [float(array.sum()), float(np.square(array).sum())]
                yield f"{path.stem}/{name}", [list(array.shape), sums]


def label(cell: dict[str, Any]) -> str:
    """The name of a cell: world, model, method, protocol, control."""
    return " | ".join(str(cell[kind] or "") for kind in ("world", "model", "method", "protocol", "control"))


def _cell(cell: dict[str, Any]) -> dict[str, Any]:
    named = {name: cell.get(name) for name in ("variant", "direction", "cases", "missing", "mean_rank", "published")}
    more = {name: cell[name] for name in ("chosen", "doses") if cell.get(name)}
    summary = {m: _kept(s) for m, s in cell["summary"].items()}
    curves = {m: [s["mean"] for s in curve] for m, curve in cell.get("curve", {}).items()}
    return {**named, **more, "summary": summary} | ({"curve": curves} if curves else {})


def _kept(summary: dict[str, Any]) -> list[Any]:
    return [summary[name] for name in KEPT]


def _intervals(cell: dict[str, Any]) -> dict[str, Any]:
    curves = {f"{m} {i}": s for m, curve in cell.get("curve", {}).items() for i, s in enumerate(curve)}
    return {m: [s["lo"], s["hi"]] for m, s in (cell["summary"] | curves).items() if s["lo"] is not None}


# The file


def stack() -> list[str]:
    """What last bits depend on: the processor and the numerical libraries."""
    from llvmlite.binding import get_host_cpu_name

    return [get_host_cpu_name(), *(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba", "scikit-learn"))]


def golden() -> dict[str, Any]:
    """The file as it is."""
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Tolerance:
    """Numbers may differ by `relative` of their size, and of `least` where they are smaller."""

    relative: float
    least: float = 1e-3

    def allows(self, old: float, new: float) -> bool:
        """Whether two numbers count as the same."""
        return abs(old - new) <= self.relative * max(abs(old), self.least)


def tolerance(name: str, kept: dict[str, Any]) -> Tolerance:
    """Nothing where no torch pass takes part, 1e-6 where one does, on such a machine as wrote the file.

    On another processor kernels give other last bits. Steps of CSM's stochastic descent carry them into the third digit.
    """
    if kept["stack"] == stack():
        return Tolerance(1e-6 if PLANS[name].torch else 0.0)
    if any("csm" in protocol for protocol in PLANS[name].protocols):
        return Tolerance(1e-2, 1.0)
    return Tolerance(1e-4, 0.1) if PLANS[name].torch else Tolerance(1e-6)


def differences(old: Any, new: Any, within: Tolerance, where: str = "") -> Iterator[str]:
    """Where two results differ by more than is allowed, one line each."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            yield from differences(old.get(key, "absent"), new.get(key, "absent"), within, f"{where} → {key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from differences(a, b, within, f"{where}[{i}]")
    elif not (_number(old) and _number(new) and within.allows(old, new)) and old != new:
        yield f"{where}: {old!r} became {new!r}"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def write(names: list[str]) -> None:
    """Compute some plans, or all, and put them into the file, a line for each cell."""
    found = golden()["plans"] if GOLDEN.exists() else {}
    for name in names or PLANS:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            found[name] = json.loads(json.dumps(compute(name, Path(folder).resolve())))
        print(f"{name}: {time.process_time() - start:.1f} CPU seconds", file=sys.stderr, flush=True)
        kept = {plan: found[plan] for plan in PLANS if plan in found}
        parts = [f'"about": {json.dumps(ABOUT)}', f'"stack": {json.dumps(stack())}', f'"plans": {_lines(kept, 3)}']
        GOLDEN.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def _lines(value: Any, depth: int) -> str:
    """JSON with line breaks between the entries of the outer `depth` dictionaries."""
    if not (depth and isinstance(value, dict)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return (
        "{" + ",\n".join(f"{json.dumps(k, ensure_ascii=False)}: {_lines(v, depth - 1)}" for k, v in value.items()) + "}"
    )


def compare(name: str, folder: Path, processes: int = 1) -> list[str]:
    """What a plan gives now and did not when the file was written, or the other way round."""
    kept = golden()
    new = json.loads(json.dumps(compute(name, folder, processes)))
    return list(differences(kept["plans"].get(name, "absent"), new, tolerance(name, kept)))


def main(words: list[str]) -> None:
    """`[--write] [PLAN …]`: write the file, or print what differs from it."""
    if words[:1] == ["--write"]:
        return write(words[1:])
    for name in words or PLANS:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            found = compare(name, Path(folder).resolve())
        print(f"{name}: {len(found)} differences, {time.process_time() - start:.1f} CPU seconds", *found, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
