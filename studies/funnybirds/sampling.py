"""Why RISE and LIME fail on these birds, and what makes them work: settings tried on some birds, reported on others.

    python -m studies.funnybirds.sampling [--model birds_resnet] [--tune 24] [--birds 100]

RISE's raw logits are far below 0 on nearly black images, so that its map is an offset, and noise. Each choice is judged by
single deletion and mX on `--tune` birds of seed 1; the best of each method, by mX, and the published settings are judged
again on `--birds` birds of seed 0, with more masks. Published settings are not touched: what is recommended is called
`corrected` here. The same command again goes on where it stopped; the page is docs/results/funnybirds/rise-and-lime.md.
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
RISE shows a tenth of an image and hides the rest in black. On such images every logit of these networks is far below
zero, so that the map is that offset times the mean mask, and its noise. LIME hides whole superpixels in black, which
no training bird ever was. The settings below change what hidden pixels show (`fill`), what is averaged (`output`: the
logit, the logit minus its mean over classes, the probability; `contrast`: minus its mean over masks), how much is
shown (`keep`), the size of superpixels (`scaled`), and for LIME whether the five largest superpixels are a binary map
(published) or all have their weight (signed). `part_shapley` is no method for images: it removes the parts
themselves, all 32 subsets, and is the best that any perturbation could say.
"""

#: Settings to try. LIME's superpixels are scaled with the image where `kernel_size` and `max_dist` are given.
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
    """The summary of every method's cell under `funnybirds`, by the method's spec."""
    found = api.run(["birds"], methods, ["funnybirds"], [model], cases=birds, seed=seed, out=out)
    return {cell["method"]: cell["summary"] for cell in found["cells"]}


def best_of(named: dict[str, str], scores: dict[str, dict[str, Any]]) -> str:
    """The name of the settings with the largest mX."""
    known = [name for name in named if named[name] in scores and scores[named[name]]["mx"]["mean"] is not None]
    if not known:
        raise SystemExit("sampling: no settings have an mX on so few birds: give a larger --tune")
    return max(known, key=lambda name: float(scores[named[name]]["mx"]["mean"]))


def line(name: str, summary: dict[str, Any]) -> list[str]:
    """A row of the page: SD, Com and mX with their intervals."""
    told = [summary[metric] for metric in ("sd", "com", "mx")]
    return [name, *(with_interval(one["mean"], one["lo"], one["hi"], 3) for one in told)]


def page(tried: dict[str, list[list[str]]], reported: dict[str, list[list[str]]], asked: argparse.Namespace) -> str:
    """The page as Markdown."""
    text = [f"# Why RISE and LIME fail on these birds, and what makes them work ({asked.model})", ""]
    how = made(("torch", "numpy"), "seeds 0 and 1")
    text += [f"Written by `python -m studies.funnybirds.sampling`; {how}.", "", REASON]
    for method, rows in tried.items():
        shown = f"On {asked.birds} birds of seed 0, which nothing was chosen on, {asked.masks} samples:"
        text += [f"## {method}", "", shown, "", table(HEADS, reported[method]), ""]
        tuned = f"All settings, on {asked.tune} birds of seed 1, {asked.tune_masks} samples:"
        text += [tuned, "", table(HEADS, rows), ""]
    return "\n".join(text)


def main() -> None:
    """Tune, report, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="birds_resnet")
    parser.add_argument("--tune", type=int, default=24, help="birds to choose on")
    parser.add_argument("--tune-masks", type=int, default=400)
    parser.add_argument("--birds", type=int, default=100, help="birds to report on")
    parser.add_argument("--masks", type=int, default=1000)
    parser.add_argument("--only", choices=("rise", "lime"))
    asked = parser.parse_args()
    tried, reported = {}, {}
    for method, settings, samples in (("rise", RISE, "masks"), ("lime", LIME, "samples")):
        if asked.only not in (None, method):
            continue
        named = specs(settings, method, f"{samples}={asked.tune_masks}")
        scores = judged([*named.values()], asked.model, asked.tune, 1, BUILD / "sampling" / f"{method}-tune")
        tried[method] = [line(name, scores[spec]) for name, spec in named.items() if spec in scores]
        best = best_of(named, scores)
        few = {"published": settings["published"], f"corrected: {best}": settings[best]}
        final = specs(few, method, f"{samples}={asked.masks}") | {"part_shapley": "part_shapley"}
        found = judged([*final.values()], asked.model, asked.birds, 0, BUILD / "sampling" / method)
        reported[method] = [line(name, found[spec]) for name, spec in final.items() if spec in found]
    write_page(PAGE, page(tried, reported, asked))


if __name__ == "__main__":
    main()
