"""Results on concept sensitivity, for `scripts/reproduce concepts`: all our numbers are read from rows, none is typed.

    python -m studies.concepts.page DATA --minutes 60 [--middle [--sets N] | --full] [--miw FOLDER] [--iiw …] [--saw …]

Runs are kept in build/reproduce/concepts: a second call resumes where the first one ended, and `--minutes 0` only writes the
page. The most important jobs come first. `--middle` writes another page: the three networks at the paper's image size on N
sets of each setting, or with `--full` on all sets. `--full` alone computes everything at the paper's scale.
"""

import argparse
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from diorama.core.catalogue import build
from diorama.core.guard import attempt
from diorama.core.plan import Plan
from diorama.core.spec import parse
from diorama.core.summary import summarise
from diorama.report.summary import read_results
from studies.concepts import doses, paper_size, tables
from studies.concepts import published as paper
from studies.concepts.figures import brightness, figure3, figure4, figure5, figure6, figure7, standard
from studies.concepts.tables import CHOICES, CLASSICAL, CORRECTED, FAMILY, INVARIANCE, LAYERS, PUBLISHED, SCALES, Found
from studies.page_kit import HOME, Spent, computed, filled, made, perceptual, table, work_off, write_page

#: The usual scores of decompositions.
STANDARD = ["si_mse", "lmse", "dssim", *perceptual()]
BUILD, PAGE = HOME / "build" / "reproduce" / "concepts", HOME / "docs" / "results" / "concepts.md"
FIGURES = PAGE.with_suffix("")


@dataclass(frozen=True)
class Scale:
    """The size of the study: image side, base scenes per setting, images of a set, sets per setting, and so on."""

    size: int
    scenes: int
    images: int | None
    sets: int | None
    tests: int
    randoms: int
    runs: int
    #: Light paths per pixel of concept sets and test images, and of negatives; None: 16, the worlds' default.
    samples: tuple[int, int] | None = None

    def csm(self, variant: str, tests: int | None = None, randoms: int | None = None, more: str = "") -> str:
        """The spec of the protocol."""
        counts = f"tests={tests or self.tests}, randoms={randoms or self.randoms}"
        if self.samples:
            counts += f", test='{self.test()}', negatives='random_scenes(samples={self.samples[1]})'"
        return f"csm(variant={variant}, {counts}, runs={self.runs}{more})"

    def world(self, more: str = "", size: int | None = None, scenes: int | None = None, images: int | None = 20) -> str:
        """The spec of the world of concept sets."""
        count = "" if (images or self.images) is None else f", images={images or self.images}"
        count += f", samples={self.samples[0]}" if self.samples else ""
        return f"concepts(scenes={scenes or self.scenes}{count}, size={size or self.size}{more})"

    def test(self, size: bool = False) -> str:
        """The spec of the test scenes, in their default size or in this one."""
        given = [f"samples={self.samples[0]}"] if self.samples else []
        given += [f"size={self.size}"] if size else []
        return f"test_scenes({', '.join(given)})" if given else "test_scenes"


SMALL, FULL = Scale(64, 8, 20, 32, 120, 400, 100), Scale(256, 10, None, None, 120, 2000, 100)
#: The paper's image size, images of a set and CAV runs, on fewer sets.
MIDDLE = Scale(256, 10, None, 40, 60, 500, 100, samples=(4, 4))


@dataclass(frozen=True)
class Job:
    """A run of the study: its name and plan."""

    name: str
    plan: Plan

    @property
    def folder(self) -> Path:
        """The folder of its rows."""
        return BUILD / self.name

    def compute(self) -> None:
        """Compute the missing cases."""
        computed(self.name, self.folder, self.plan)

    def rows(self) -> Found:
        """The computed rows by protocol (of CSM the variant) and method."""
        if not (self.folder / "cells.json").is_file():
            return {}
        cells = read_results(self.folder).cells
        return {(_protocol(cell.manifest), str(cell.manifest["method"])): cell.rows for cell in cells}


def _protocol(manifest: dict[str, Any]) -> str:
    """The protocol's name; of CSM the variant and the other settings."""
    parsed = parse(manifest["protocol"])
    chosen = [str(parsed.params[name]) for name in ("transform", "trainer", "layer") if name in parsed.params]
    chosen += [f"floor {parsed.params['floor']}"] if "floor" in parsed.params else []
    return ", ".join([str(manifest["variant"]), *chosen]) if parsed.name == "csm" else parsed.name


def leaks() -> dict[tuple[float, str], str]:
    """The method's spec for every dose of both leaks."""
    return {(a, into): f"leak(alpha={a}, into={into})" for into in doses.INTO for a in doses.ALPHAS}


def networks() -> list[str]:
    """The bundled networks that can be built and answer a small scene."""
    return [name for name in FAMILY if attempt(partial(_small_answer, name)).error is None]


def _small_answer(name: str) -> Any:
    world = build("world", "test_scenes(size=32)").object
    return build("method", name).object.decompose(world.render([world.scene(0)[1]]))


def jobs(scale: Scale, data: Path, miw: str | None) -> dict[str, Job]:
    """All jobs by name, the most important first."""
    planted, methods = list(leaks().values()), [*networks(), *CLASSICAL]
    small = Scale(48, 10, 20, None, 60, 200, 25) if scale is SMALL else scale
    both = [small.csm(PUBLISHED), small.csm(CORRECTED)]
    count = 8 * small.scenes
    found = [
        Job("doses", Plan([small.world()], planted, [INVARIANCE, *both], cases=count)),
        Job("doses_standard", Plan([f"test_scenes(size={small.size})"], planted, STANDARD, cases=40)),
        Job(
            "doses_more",
            Plan([small.world()], planted, [small.csm(PUBLISHED, more=m) for m in CHOICES.values()], cases=count),
        ),
        Job(
            "scales",
            Plan([small.world()], [f"leak(alpha=0.4, scale={x})" for x in SCALES], [INVARIANCE, *both], cases=16),
        ),
    ]
    protocols = [scale.csm(PUBLISHED), scale.csm(CORRECTED), INVARIANCE]
    for setting in paper.SETTINGS:
        world = scale.world(f", setting={setting}", images=scale.images)
        found.append(Job(f"table1/{setting}", Plan([world], methods, protocols, cases=scale.sets)))
    found.append(Job("standard", Plan([f"test_scenes(size={scale.size})"], methods, STANDARD, cases=40)))
    if networks():
        world = scale.world(", setting=rgb-simple, change=albedo", images=scale.images)
        more = Scale(**{**vars(scale), "runs": 100})
        inner = [scale.csm(v, more=f", layer={x}") for x in LAYERS for v in (PUBLISHED, CORRECTED)]
        found.append(Job("layers", Plan([scale.world(images=scale.images)], networks(), inner, cases=scale.sets)))
        found.append(Job("figure7", Plan([world], networks(), [more.csm(PUBLISHED)], cases=4)))
    for name, world in natural(data, miw, scale).items():
        found.append(Job(f"natural/{name}", Plan([world], methods, [scale.csm(PUBLISHED), INVARIANCE])))
    return {job.name: job for job in found}


def natural(data: Path, miw: str | None, scale: Scale) -> dict[str, str]:
    """The worlds of photographs of one scene under several lights, if their folders exist."""
    found = {}
    if miw:
        found["miw"] = f"natural_concepts(root={miw}, kind=multi_illumination, size={scale.size})"
    if (data / "photometric_stereo").is_dir():
        given = f"kind=stereo, min_images=12, size={scale.size}"
        found["stereo"] = f"natural_concepts(root={data / 'photometric_stereo'}, {given})"
    if (data / "mit_intrinsic").is_dir():
        found["mit"] = f"natural_concepts(root={data / 'mit_intrinsic'}, kind=mit, min_images=10, size={scale.size})"
    return found


def planted(found: dict[str, Job], tests: int) -> dict[str, list[doses.Followed]]:
    """How every score follows both kinds of leak."""
    rows = {key: some for name, job in found.items() if name.startswith("doses") for key, some in job.rows().items()}
    at = {text: key for key, text in leaks().items()}
    made: dict[str, list[doses.Followed]] = {}
    for into in doses.INTO:
        for reading in doses.readings(PUBLISHED, CORRECTED, tests, tuple(CHOICES)):
            judged = [(method, some) for (protocol, method), some in rows.items() if protocol == reading.protocol]
            mine = {at[method][0]: some for method, some in judged if at.get(method, (0, ""))[1] == into}
            if mine:
                made.setdefault(into, []).append(doses.follow(reading, mine, into))
    return made


def page(scale: Scale, found: dict[str, Job], more: dict[str, Any]) -> str:
    """The text of the page; draws the figure of the dose study."""
    sets = {name.removeprefix("table1/"): job.rows() for name, job in found.items() if name.startswith("table1/")}
    wild = {name.removeprefix("natural/"): job.rows() for name, job in found.items() if name.startswith("natural/")}
    tests = [r.value for rows in found["doses"].rows().values() for r in rows if r.metric == "tests"]
    followed = planted(found, min((int(n) for n in tests if isinstance(n, int | float)), default=1))
    if followed:
        shown = {k: [f for f in some if f.name.removeprefix("CSM ") not in CHOICES] for k, some in followed.items()}
        doses.figure(shown, FIGURES / "doses.svg")
    lacking = [name for name in FAMILY if name not in networks()]
    parts = {
        "MADE": made(("numpy", "scipy", "scikit-learn", "torch"), "seed 0"),
        "LACKING": f"Without weights when this was written: {', '.join(lacking)}." if lacking else "",
        "SCALE": _scale(scale, found),
        "DOSES": doses.report(followed),
        "FOLLOWS": follows(followed),
        "SCALES": tables.scale_table(found["scales"].rows()),
        "ORDERING": tables.ordering(sets),
        "BRIGHTNESS": tables.bright(sets, more["brightness"]),
        "TABLE1": tables.table1(sets, PUBLISHED, more["extra"]),
        "TABLE1C": tables.table1(sets, CORRECTED, {}),
        "SENSITIVITIES": tables.sensitivities(sets, PUBLISHED),
        "SENSITIVITIESC": tables.sensitivities(sets, CORRECTED),
        "INVARIANCE": tables.invariances(sets),
        "LAYERS": tables.by_layer(found["layers"].rows()) if "layers" in found else "",
        "TABLE2": tables.table2(sets),
        "TABLE3": tables.table3(wild),
        "TABLE4": tables.table4(more["table4"]),
        "STANDARD": tables.standards(found["standard"].rows()),
    }
    return filled(Path(__file__).with_name("page.md"), parts)


def follows(found: dict[str, list[doses.Followed]]) -> str:
    """The scores by how surely they follow a leak, as a list."""
    names: dict[str, list[str]] = {}
    for into, several in found.items():
        for f in several:
            names.setdefault(f.verdict, []).append(f"{f.name} ({into})")
    order = ("follows", "mostly", "weakly", "no", "against it", "undefined")
    return "\n".join(f"- **{v}**: {', '.join(names[v])}" for v in order if v in names)


def _scale(scale: Scale, found: dict[str, Job]) -> str:
    """The scale of the page's runs, in words."""
    if scale is FULL:
        return "This is the paper's scale (`--full`)."
    small = found["doses"].plan
    sets = f"`{small.worlds[0]}`, the first {small.cases} sets, `{small.protocols[1]}`."
    return f"{scaled_down(scale)}\n\nThe dose study: {sets}"


def scaled_down(scale: Scale) -> str:
    """A table of a scale beside the paper's."""
    words = {"size": "pixels", "scenes": "base scenes per setting", "images": "images of a set", "tests": "test images",
             "sets": "sets per setting", "randoms": "negatives", "runs": "CAV runs"}  # fmt: skip
    rows = []
    for name, word in words.items():
        sizes = (vars(one)[name] for one in (scale, FULL))
        rows.append([word, *("all" if size is None else str(size) for size in sizes)])
    if scale.samples:
        rows.append(["light paths per pixel; of negatives", f"{scale.samples[0]}; {scale.samples[1]}", "16; 16"])
    return table(["", "here", "the paper (`--full`)"], rows)


def extra_columns(options: argparse.Namespace, minutes_left: float) -> dict[str, tuple[str, str]]:
    """WHDR and SAW AP of every method, if the folders of photos are given."""
    found: dict[str, list[str]] = {}
    folders = ((options.iiw, "iiw", "whdr"), (options.saw, "saw", "saw_ap"))
    for k, (root, world, protocol) in enumerate(folders):
        if not root:
            continue
        job = Job(protocol, Plan([f"{world}(root={root})"], [*networks(), *CLASSICAL], [protocol]))
        if minutes_left > 0:
            job.compute()
        for (_, method), rows in job.rows().items():
            of = summarise(r for r in rows if r.metric == protocol)
            found.setdefault(method, ["–", "–"])[k] = "–" if of.mean is None else f"{100 * of.mean:.1f}"
    return {method: (cells[0], cells[1]) for method, cells in found.items()}


def main() -> None:
    """Compute for the given minutes, then write the page and its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder with photometric_stereo and mit_intrinsic")
    parser.add_argument("--minutes", type=float, default=60.0, help="no job is begun after so many")
    parser.add_argument("--middle", action="store_true", help="the three networks at the paper's image size")
    parser.add_argument("--sets", type=int, default=MIDDLE.sets, help="with --middle: sets of each setting")
    parser.add_argument("--full", action="store_true", help="the paper's scale: days, and some 8 GB of memory")
    parser.add_argument("--only", default="", help="only jobs whose name begins so")
    parser.add_argument("--miw", help="Multi-Illumination in the Wild")
    parser.add_argument("--iiw", help="Intrinsic Images in the Wild, for WHDR")
    parser.add_argument("--saw", help="Shading Annotations in the Wild, for SAW AP")
    options = parser.parse_args()
    end, scale = time.monotonic() + 60 * options.minutes, FULL if options.full else SMALL
    if options.middle:
        return middle(FULL if options.full else replace(MIDDLE, sets=options.sets), options, end)
    found = jobs(scale, options.data.resolve(), options.miw)
    work_off(((name, job.compute) for name, job in found.items() if name.startswith(options.only)), end)
    available = networks()
    more = {"extra": extra_columns(options, end - time.monotonic()), "table4": standard(available, scale.size)}
    more["brightness"] = brightness(available, scale.size)
    figure3(FIGURES / "figure3.svg", scale.size)
    if available:
        figure4(FIGURES / "figure4.png", available)
        figure5(FIGURES / "figure5.png", available)
        figure6(BUILD / "figure6.png", available, natural(options.data.resolve(), options.miw, scale))
        figure7(FIGURES / "figure7.svg", found["figure7"].rows(), FAMILY)
    write_page(PAGE, page(scale, found, more))


def middle(scale: Scale, options: argparse.Namespace, end: float) -> None:
    """Compute the sets at the paper's image size until `end`, then write their page."""
    mit = natural(options.data.resolve(), None, scale).get("mit")
    world = f"mit_intrinsic(root={options.data.resolve() / 'mit_intrinsic'})" if mit else None
    found = {name: Job(name, plan) for name, plan in paper_size.plans(scale, world).items()}
    spent = Spent(BUILD / "middle" / "spent.json")
    wanted = ((name, partial(spent.of, job.compute)) for name, job in found.items() if name.startswith(options.only))
    work_off(wanted, end)
    rows = {name: job.rows() for name, job in found.items()}
    write_page(paper_size.PAGE, paper_size.page(scale, rows, spent.sentence(), scaled_down(scale)))


if __name__ == "__main__":
    main()
