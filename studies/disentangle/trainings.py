"""All trainings behind the results on disentanglement, and what runs them: one thread each, checkpointed, resumable.

    python -m studies.disentangle.trainings                       what is done, what is under way, what is missing
    python -m studies.disentangle.trainings --jobs 2              train what is missing, two at a time
    python -m studies.disentangle.trainings --jobs 1 --only candle/

A training is `diorama train SPEC -o FOLDER/NAME`: a kill costs at most 250 steps, the same command goes on. Rendered images
lie in $DIORAMA_CACHE and are shared. The most important trainings stand first in the list.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from diorama.io.zoo import ZOO
from studies.disentangle.judged import DRAWN
from studies.disentangle.pool import FOLDER as POOL
from studies.disentangle.pool import confounded
from studies.page_kit import HOME

#: Where trainings are kept: $DIORAMA_TRAININGS, else build/trainings.
FOLDER = Path(os.environ.get("DIORAMA_TRAININGS") or HOME / "build" / "trainings" / "disentangle")

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
#: Strengths on candle. The CANDLE experiments have β = 10 twice: with it every object vanishes (`plain/beta_vae_10`).
CANDLE = {"beta_vae": "beta=2", "beta_tcvae": "beta=4", "dip_vae": "off=10", "factor_vae": "gamma=4, width=256"}
#: Those of the published sprites networks. Without `anneal` two of them learn nothing in so few steps: no latent is active.
SPRITES = {
    "beta_vae": "beta=4",
    "beta_tcvae": "beta=6, anneal=2000",
    "dip_vae": "off=10",
    "factor_vae": "gamma=6.4, width=256, anneal=2000",
}
IMAGES = 8_000
#: How a learner of candle learns: pixels in the object's box count 16 times, or it leaves objects out.
CANDLE_HOW = f"images={IMAGES}, batch=32, half=True"
CURVES_HOW = "images=4000, batch=32, half=True"
BOX = 15
#: Steps of the learners of candle, of sprites and of the curves: what one core had time for.
STEPS, STEPS_SPRITES, STEPS_CURVES = 8_000, 8_000, 8_000
SEEDS = (0, 1, 2)
#: As the published networks of sprites learn: the penalty grows for 10,000 steps, the rate stays the same.
AS_PUBLISHED = "steps=12000, anneal=10000, rate=0.0005, constant=True"
#: The learners of the curves: the plainest, and a semi-supervised one.
CURVED = ("beta_vae", "ss_beta_tcvae")
#: Classifiers of the factors, for CG: of 64 × 64 images, and of 32 × 32 for the curves.
JUDGES = {
    "judges/candle_factors": "candle_factors",
    "judges/32_candle_factors": "candle_factors(size=32)",
    "judges/sprites_factors": "sprites_factors(steps=2500)",
}


def trainings() -> dict[str, str]:
    """Every training by name: what `diorama train` is given, the most important ones first."""
    return {**JUDGES, **_table(), **_more(), **_curves()}


def _table() -> dict[str, str]:
    """The sixteen learners of Table 2."""
    found = {}
    for name, own in CANDLE.items():
        for learner in (name, f"ss_{name}"):
            found[f"candle/{learner}"] = f"{learner}(world={PAIRS}, {own}, box={BOX}, steps={STEPS}, {CANDLE_HOW})"
    for name, own in SPRITES.items():
        for learner in (name, f"ss_{name}"):
            found[f"sprites/{learner}"] = f"{learner}(world=sprites, {own}, steps={STEPS_SPRITES}, half=True)"
    return found


def _more() -> dict[str, str]:
    """Learners of candle whose boxes are not weighted, two of sprites as published ones learn, two for longer."""
    plain = {
        "beta_vae": f"beta_vae(world={PAIRS}, {CANDLE['beta_vae']}",
        "beta_vae_10": f"beta_vae(world={PAIRS}, beta=10",
        "ss_factor_vae": f"ss_factor_vae(world={PAIRS}, {CANDLE['factor_vae']}",
    }
    longer = {
        "published/beta_vae": f"beta_vae(world=sprites, beta=4, {AS_PUBLISHED}, images=400000)",
        "published/beta_tcvae": f"beta_tcvae(world=sprites, beta=6, {AS_PUBLISHED}, images=64000, half=True)",
        "longest/beta_vae": _of_dose("none", "beta_vae", 0, 30_000),
        "longest/pairs-beta_vae": _of_dose("pairs", "beta_vae", 0, 30_000),
    }
    return {f"plain/{name}": f"{text}, steps={STEPS}, {CANDLE_HOW})" for name, text in plain.items()} | longer


def _curves() -> dict[str, str]:
    """Two learners at every dose of confounding, 32 × 32; one seed of everything before the next."""
    return {
        f"curves/{short(dose)}-{learner}-{seed}": _of_dose(dose, learner, seed, STEPS_CURVES)
        for seed in SEEDS
        for dose in DOSES
        for learner in CURVED
    }


def _of_dose(dose: str, learner: str, seed: int, steps: int) -> str:
    return (
        f"{learner}(world=candle_recorded(root={POOL.parent / 'doses' / short(dose)}),"
        f" {CANDLE[learner.removeprefix('ss_')]}, box={BOX}, size=32, steps={steps}, seed={seed}, {CURVES_HOW})"
    )


def short(dose: str) -> str:
    """A dose as part of a file's name.

    >>> short("gaussian .4")
    'gaussian_4'
    """
    return dose.replace(" .", "_")


def made_at(name: str) -> Path:
    """Where a training's checkpoint lies once it is finished."""
    return FOLDER / name / f"{trainings()[name].partition('(')[0]}.safetensors"


def trained(name: str) -> bool:
    """Whether a training has its card, which is written last."""
    return made_at(name).with_suffix(".json").exists()


def checkpoint(name: str) -> Path:
    """The checkpoint to judge: the training's own, else the bundled one where there is one."""
    own, (kind, _, learner) = made_at(name), name.partition("/")
    named = {"judges": learner, "candle": f"{learner}_candle", "sprites": f"{learner}_sprites"}
    bundled = ZOO / f"{named.get(kind)}.safetensors"
    return bundled if bundled.is_file() and not trained(name) else own


def finished(name: str) -> bool:
    """Whether there is a checkpoint to judge, with its card."""
    return checkpoint(name).with_suffix(".json").exists()


def card(name: str) -> dict[str, object]:
    """What is known of a finished training."""
    return dict(json.loads(checkpoint(name).with_suffix(".json").read_text(encoding="utf-8")))


def status(name: str) -> str:
    """One word, and how far it is."""
    if trained(name):
        return "done"
    state = FOLDER / name / "state.safetensors"
    if not state.exists():
        return ""
    return f"under way, last state {time.strftime('%H:%M', time.gmtime(state.stat().st_mtime))}"


def run(names: list[str], jobs: int) -> int:
    """Train what is missing, `jobs` at a time; gives how many failed. A training that fails does not stop the others."""
    missing, running, failed = [name for name in names if not trained(name)], dict[str, subprocess.Popen[bytes]](), 0
    while missing or running:
        while missing and len(running) < jobs:
            name = missing.pop(0)
            if trained(name):  # by another process of this list; one that it is at refuses a second
                continue
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
    _stage(name)
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "diorama", "train", trainings()[name], "-o", str(FOLDER / name)]
    with open(FOLDER / name / "log.txt", "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **threads})


def _stage(name: str) -> None:
    """Make the data of a training that learns from the pool."""
    for dose, world in DOSES.items():
        if f"doses/{short(dose)})" in trainings()[name]:
            confounded(short(dose), world)


def main(argv: list[str] | None = None) -> int:
    """Say how far the trainings are, or train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=0, help="train, so many at a time; 0 says how far they are")
    named = "trainings whose names begin so, several after commas, in that order"
    parser.add_argument("--only", default="", metavar="TEXT", help=named)
    given = parser.parse_args(argv)
    names = list(dict.fromkeys(n for part in given.only.split(",") for n in trainings() if n.startswith(part)))
    if not names:
        groups = dict.fromkeys(f"{name.partition('/')[0]}/" for name in trainings())
        parser.error(f"--only {given.only}: no training begins so; groups are {', '.join(groups)}")
    if given.jobs:
        return min(run(names, given.jobs), 1)
    for name in names:
        print(f"{name:44s} {status(name)}")
    print(f"{sum(map(trained, names))} of {len(names)} done, in {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
