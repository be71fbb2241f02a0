"""Why RISE and LIME fail on these birds, and what makes them work: settings tried on some birds, reported on others.

    python -m studies.funnybirds.sampling [--model birds_resnet] [--tune 50] [--birds 100] [--masks 1000] [-o FOLDER]

RISE's raw logits are far below 0 on nearly black images, so that its map is an offset, and noise. Each choice is judged by
single deletion and mX on `--tune` birds of seed 1; the best of each method, by mX, and the published settings are judged
again on `--birds` birds of seed 0. Published settings are not touched: what is recommended is called `corrected` here.
The same command again goes on where it stopped, and writes `sampling.md` into the folder.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

from diorama import api

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


def line(name: str, summary: dict[str, Any]) -> str:
    """A row of the page: SD and mX with their intervals."""
    return f"| {name} | {value(summary['sd'])} | {value(summary['mx'])} |"


def value(told: dict[str, Any]) -> str:
    """A mean with its interval, where both exist."""
    if told["mean"] is None:
        return "–"
    between = "" if told["lo"] is None else f" [{told['lo']:.3f}, {told['hi']:.3f}]"
    return f"{told['mean']:.3f}{between}"


def page(tried: dict[str, list[str]], reported: dict[str, list[str]], asked: argparse.Namespace) -> str:
    """The page as Markdown."""
    text = [f"# RISE and LIME on staged birds ({asked.model})", ""]
    for method, rows in tried.items():
        text += [f"## {method}", "", f"On {asked.birds} birds of seed 0, not those it was chosen on:", ""]
        text += ["| settings | SD | mX |", "|---|---|---|", *reported[method], ""]
        text += [f"All settings, on {asked.tune} birds of seed 1:", "", "| settings | SD | mX |", "|---|---|---|"]
        text += [*rows, ""]
    return "\n".join(text)


def main() -> None:
    """Tune, report, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="birds_resnet")
    parser.add_argument("--tune", type=int, default=50)
    parser.add_argument("--birds", type=int, default=100)
    parser.add_argument("--masks", type=int, default=1000)
    parser.add_argument("--only", choices=("rise", "lime"))
    parser.add_argument("-o", "--out", type=Path, default=Path("build/reproduce/sampling"))
    asked = parser.parse_args()
    tried, reported = {}, {}
    for method, settings, samples in (("rise", RISE, f"masks={asked.masks}"), ("lime", LIME, f"samples={asked.masks}")):
        if asked.only not in (None, method):
            continue
        named = specs(settings, method, samples)
        scores = judged([*named.values()], asked.model, asked.tune, 1, asked.out / f"{method}-tune")
        tried[method] = [line(name, scores[spec]) for name, spec in named.items() if spec in scores]
        best = best_of(named, scores)
        final = judged(
            [named["published"], named[best], "part_shapley"], asked.model, asked.birds, 0, asked.out / method
        )
        names = {"published": named["published"], f"corrected: {best}": named[best], "part_shapley": "part_shapley"}
        reported[method] = [line(name, final[spec]) for name, spec in names.items() if spec in final]
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "sampling.md").write_text(page(tried, reported, asked))
    print(asked.out / "sampling.md")


if __name__ == "__main__":
    main()
