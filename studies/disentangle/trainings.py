"""All trainings behind the results on disentanglement, and what runs them: one thread each, checkpointed, resumable.

    python -m studies.disentangle.trainings                       what is done, what is under way, what is missing
    python -m studies.disentangle.trainings --jobs 2              train what is missing, two at a time
    python -m studies.disentangle.trainings --jobs 1 --only candle/

A training is `diorama train SPEC -o FOLDER/NAME`: a kill costs at most 250 steps, the same command goes on. Rendered images
lie in $DIORAMA_CACHE and are shared. The list is in the order of what is wanted first.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
#: Where trainings are kept: $DIORAMA_TRAININGS, else build/trainings.
FOLDER = Path(os.environ.get("DIORAMA_TRAININGS") or HOME / "build" / "trainings" / "disentangle")

#: 128 × 96 pixels with 16 light paths each, squeezed to 64 × 64: 48 paths for a pixel that a learner sees.
DRAWN = "width=128, samples=16"
#: The data of the paper's Table 2: object and colour are confounded.
PAIRS = f"candle(confounding=pairs, {DRAWN})"
#: Doses of confounding for the curves, weakest first; the last is the unobserved cause of light and scene.
DOSES = {
    "none": f"candle({DRAWN})",
    "gaussian .4": f"candle(confounding=gaussian, sigma=0.4, {DRAWN})",
    "gaussian .15": f"candle(confounding=gaussian, sigma=0.15, {DRAWN})",
    "pairs": PAIRS,
    "hidden": f"candle(hidden=1.0, {DRAWN})",
}
#: Strengths as the CANDLE experiments have them, and those of the published sprites networks.
CANDLE = {"beta_vae": "beta=10", "beta_tcvae": "beta=10", "dip_vae": "off=10", "factor_vae": "gamma=4"}
SPRITES = {"beta_vae": "beta=4", "beta_tcvae": "beta=6", "dip_vae": "off=10", "factor_vae": "gamma=6.4"}
IMAGES, STEPS, LONG = 4_000, 8_000, 30_000
SEEDS = (0, 1, 2)
#: Classifiers of the factors, for CG: of 64 × 64 images, and of 32 × 32 for the curves.
JUDGES = {
    "judges/candle_factors": "candle_factors",
    "judges/candle_factors_32": "candle_factors(size=32)",
    "judges/sprites_factors": "sprites_factors",
}


def trainings() -> dict[str, str]:
    """Every training by name: what `diorama train` is given, in the order of what is wanted first."""
    return {**JUDGES, **_first(), **_table(), **_curves(), **_more()}


def _table() -> dict[str, str]:
    """The sixteen learners of Table 2."""
    found = {}
    for name, own in CANDLE.items():
        for learner in (name, f"ss_{name}"):
            found[f"candle/{learner}"] = f"{learner}(world={PAIRS}, {own}, images={IMAGES}, steps={STEPS}, half=True)"
    for name, own in SPRITES.items():
        for learner in (name, f"ss_{name}"):
            found[f"sprites/{learner}"] = f"{learner}(world=sprites, {own}, steps={STEPS}, half=True)"
    return found


def _first() -> dict[str, str]:
    """The same learners of candle with fewer steps, so that there is something whole early: the page says which it has."""
    found = _table().items()
    return {
        name.replace("candle/", "short/"): text.replace(f"steps={STEPS}", f"steps={STEPS // 4}")
        for name, text in found
        if name.startswith("candle/")
    }


def _curves() -> dict[str, str]:
    """Two learners at every dose of confounding, three seeds, 32 × 32."""
    return {
        f"curves/{dose.replace(' .', '_')}-{learner}-{seed}": (
            f"{learner}(world={world}, {CANDLE[learner.removeprefix('ss_')]}, images={IMAGES}, size=32, steps={STEPS},"
            f" seed={seed}, half=True)"
        )
        for seed in SEEDS
        for dose, world in DOSES.items()
        for learner in ("beta_vae", "ss_factor_vae")
    }


def _more() -> dict[str, str]:
    """Box weighting against the same learner without it, and one learner for 30,000 steps: how CG moves."""
    boxed = f"ss_factor_vae(world={PAIRS}, gamma=4, images={IMAGES}, steps={STEPS}, box=10, half=True)"
    plain = f"beta_vae(world={PAIRS}, beta=10, images={IMAGES}, steps={STEPS}, box=10, half=True)"
    long = f"beta_tcvae(world={PAIRS}, beta=10, images={IMAGES}, steps={LONG}, half=True)"
    matched = "(world=sprites, {}, steps=12000, half=True)"
    return {
        "boxes/ss_factor_vae": boxed,
        "boxes/beta_vae": plain,
        "matched/beta_vae": "beta_vae" + matched.format("beta=4"),
        "matched/beta_tcvae": "beta_tcvae" + matched.format("beta=6"),
        "long/beta_tcvae": long,
    }


def checkpoint(name: str, folder: Path | None = None) -> Path:
    """Where a training's checkpoint lies once it is finished."""
    return (folder or FOLDER) / name / f"{trainings()[name].partition('(')[0]}.safetensors"


def finished(name: str, folder: Path | None = None) -> bool:
    """Whether a training has its card, which is written last."""
    return checkpoint(name, folder).with_suffix(".json").exists()


def card(name: str) -> dict[str, object]:
    """What is known of a finished training."""
    return dict(json.loads(checkpoint(name).with_suffix(".json").read_text(encoding="utf-8")))


def status(name: str) -> str:
    """One word, and how far it is."""
    if finished(name):
        return "done"
    state = FOLDER / name / "state.safetensors"
    return (
        f"under way, last state {time.strftime('%H:%M', time.gmtime(state.stat().st_mtime))}" if state.exists() else ""
    )


def run(names: list[str], jobs: int) -> int:
    """Train what is missing, `jobs` at a time; gives how many failed. A training that fails does not stop the others."""
    missing, running, failed = [name for name in names if not finished(name)], dict[str, subprocess.Popen[bytes]](), 0
    while missing or running:
        while missing and len(running) < jobs:
            name = missing.pop(0)
            running[name] = _start(name)
            print(f"{time.strftime('%H:%M:%S')} {name}: started", flush=True)
        time.sleep(2)
        for name in [name for name, process in running.items() if process.poll() is not None]:
            code = running.pop(name).returncode
            failed += bool(code)
            print(f"{time.strftime('%H:%M:%S')} {name}: {'done' if not code else f'failed, exit {code}'}", flush=True)
    return failed


def _start(name: str) -> "subprocess.Popen[bytes]":
    (FOLDER / name).mkdir(parents=True, exist_ok=True)
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "diorama", "train", trainings()[name], "-o", str(FOLDER / name)]
    with open(FOLDER / name / "log.txt", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **threads})


def main(argv: list[str] | None = None) -> int:
    """Say how far the trainings are, or train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=0, help="train, so many at a time; 0 says how far they are")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="trainings whose names begin so, several after commas, in that order"
    )
    given = parser.parse_args(argv)
    names = list(dict.fromkeys(n for part in given.only.split(",") for n in trainings() if n.startswith(part)))
    if not names:
        parser.error(f"--only {given.only}: no training begins so; groups are {', '.join(_groups())}")
    if given.jobs:
        return min(run(names, given.jobs), 1)
    for name in names:
        print(f"{name:44s} {status(name)}")
    print(f"{sum(map(finished, names))} of {len(names)} done, in {FOLDER}")
    return 0


def _groups() -> list[str]:
    return list(dict.fromkeys(f"{name.partition('/')[0]}/" for name in trainings()))


if __name__ == "__main__":
    sys.exit(main())
