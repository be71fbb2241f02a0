"""Why RISE and LIME fail on these birds, and which settings make them work: chosen on some birds, reported on others.

    python -m studies.funnybirds.sampling [--model birds_resnet] [--tune 24] [--birds 100]

On nearly black images the logits are far below 0, so that RISE's map is an offset with noise. All settings are scored on
`--tune` birds of seed 1; the settings with the best mX (called `corrected` here) and the published ones are scored again on
`--birds` birds of seed 0, with more masks. The same command resumes where it stopped; it writes
docs/results/funnybirds/rise-and-lime.md.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

from diorama import api
from studies.funnybirds.table2 import BUILD
from studies.page_kit import HOME, made, table, with_interval, write_page

PAGE = HOME / "docs" / "results" / "funnybirds" / "rise-and-lime.md"
HEADS = ("settings", "SD", "Com", "mX")
REASON = """\
RISE shows a tenth of an image and replaces the rest by black. On such images every logit of these networks is far
below zero, so that the map is that offset times the mean mask, plus noise. LIME replaces whole superpixels by black,
which no training bird contains. The settings below change what hidden pixels show (`fill`), what is averaged (`output`:
the logit, the logit minus its mean over classes, the probability; `contrast`: minus its mean over masks), how much is
shown (`keep`), the size of superpixels (`scaled`), and for LIME whether the map is binary with the five largest
superpixels (published) or has the weights of all (signed). `part_shapley` does not perturb pixels: it removes the parts
themselves, all 32 subsets, and is an upper bound for perturbation methods.
"""

#: Settings to try. `kernel_size` and `max_dist` scale LIME's superpixels with the image.
RISE = {
    "published": "",
    **{
        f"{fill}, {output}{', contrast' if contrast else ''}, keep {keep}": (
            f"fill={fill}, output={output}, contrast={contrast}, keep={keep}"
        )
        for fill, output, contrast, keep in itertools.product(
            ("black", "mean", "blur"), ("centred", "probability"), (False, True), (0.1, 0.5)
        )
    },
}
LIME = {
    "published": "",
    **{
        f"{fill}, {output}{', scaled' if scaled else ''}": f"fill={fill}, output={output}{scaled}"
        for fill, output, scaled in itertools.product(
            ("black", "mean", "blur"), ("probability", "centred"), ("", ", kernel_size=2.0, max_dist=100.0")
        )
    },
}
LIME |= {
    f"signed, {name}": f"{given}{', ' if given else ''}answer=signed, features=1000" for name, given in [*LIME.items()]
}


def specs(settings: dict[str, str], method: str, samples: str) -> dict[str, str]:
    """The method's spec for each of its settings."""
    return {name: f"{method}({', '.join(filter(None, (samples, given)))})" for name, given in settings.items()}


def judged(methods: list[str], model: str, birds: int, seed: int, out: Path) -> dict[str, dict[str, Any]]:
    """The scores of every method under `funnybirds`, by the method's spec."""
    results = api.run(["birds"], methods, ["funnybirds"], [model], cases=birds, seed=seed, out=out)
    return {cell["method"]: cell["summary"] for cell in results["cells"]}


def best_of(named: dict[str, str], scores: dict[str, dict[str, Any]]) -> str:
    """The name of the settings with the largest mX."""
    known = [name for name in named if named[name] in scores and scores[named[name]]["mx"]["mean"] is not None]
    if not known:
        raise SystemExit("sampling: no settings have an mX on so few birds: give a larger --tune")
    return max(known, key=lambda name: float(scores[named[name]]["mx"]["mean"]))


def line(name: str, summary: dict[str, Any]) -> list[str]:
    """A row of the page: SD, Com and mX with their intervals."""
    scores = [summary[metric] for metric in ("sd", "com", "mx")]
    return [name, *(with_interval(score["mean"], score["lo"], score["hi"], 3) for score in scores)]


def page(tried: dict[str, list[list[str]]], reported: dict[str, list[list[str]]], options: argparse.Namespace) -> str:
    """The page as Markdown."""
    text = [f"# Why RISE and LIME fail on these birds, and what makes them work ({options.model})", ""]
    how = made(("torch", "numpy"), "seeds 0 and 1")
    text += [f"Written by `python -m studies.funnybirds.sampling`; {how}.", "", REASON]
    for method, rows in tried.items():
        test = f"On {options.birds} birds of seed 0, on which no settings were chosen, {options.masks} samples:"
        text += [f"## {method}", "", test, "", table(HEADS, reported[method]), ""]
        tuned = f"All settings, on {options.tune} birds of seed 1, {options.tune_masks} samples:"
        text += [tuned, "", table(HEADS, rows), ""]
    return "\n".join(text)


def main() -> None:
    """Choose settings, score them on other birds, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="birds_resnet")
    parser.add_argument("--tune", type=int, default=24, help="birds to choose on")
    parser.add_argument("--tune-masks", type=int, default=400)
    parser.add_argument("--birds", type=int, default=100, help="birds to report on")
    parser.add_argument("--masks", type=int, default=1000)
    parser.add_argument("--only", choices=("rise", "lime"))
    options = parser.parse_args()
    tried, reported = {}, {}
    for method, settings, samples in (("rise", RISE, "masks"), ("lime", LIME, "samples")):
        if options.only not in (None, method):
            continue
        named = specs(settings, method, f"{samples}={options.tune_masks}")
        scores = judged([*named.values()], options.model, options.tune, 1, BUILD / "sampling" / f"{method}-tune")
        tried[method] = [line(name, scores[spec]) for name, spec in named.items() if spec in scores]
        best = best_of(named, scores)
        chosen = {"published": settings["published"], f"corrected: {best}": settings[best]}
        final = specs(chosen, method, f"{samples}={options.masks}") | {"part_shapley": "part_shapley"}
        scores = judged([*final.values()], options.model, options.birds, 0, BUILD / "sampling" / method)
        reported[method] = [line(name, scores[spec]) for name, spec in final.items() if spec in scores]
    write_page(PAGE, page(tried, reported, options))


if __name__ == "__main__":
    main()
