"""The command line: results on stdout, progress and the plan on stderr, one-line errors, documented exit codes."""

import json
import os
import re
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import click
from click.core import ParameterSource

from diorama import __version__, reading
from diorama.core import spec
from diorama.core.errors import KEPT, InputError, WorkerError, did_you_mean, missing_package, shortened
from diorama.lab.command import lab
from diorama.progress import say, shown
from diorama.streams import apart

OK, FAILURE, USAGE, SOME_FAILED, GATE_FAILED, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Commands(click.Group):
    """A click group that suggests the nearest command for a misspelt one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command; the error for an unknown one has a hint."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            raise InputError(f"unknown command {args[0]!r}; {did_you_mean(args[0], list(self.commands))}")
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="diorama")
def cli() -> None:
    """Stage scenes whose truth is known, change one thing, and score what a vision model says about itself.

    Exit codes: 0 done, 1 failure, 2 usage, 3 finished but some cases failed, 4 a --require gate failed.
    """


for command in (reading.report, reading.cite, reading.compare):
    cli.add_command(command)


def _interrupt(number: int, frame: Any) -> None:
    """Handle SIGTERM like Ctrl-C: end workers and keep finished results."""
    raise KeyboardInterrupt


def main() -> None:
    """The entry point: every expected failure ends in one line and its exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _check_words(sys.argv[1:])
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        code = _say(error.format_message(), USAGE)
    except InputError as error:
        code = _say(str(error), USAGE)
    except ImportError as error:
        code = _say(missing_package(error), USAGE)
    except (KeyboardInterrupt, click.Abort):
        code = _say(f"stopped; {KEPT}", INTERRUPTED)
    except WorkerError as error:
        code = _say(str(error), FAILURE)
    except BrokenPipeError:  # the reader of stdout has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = OK
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        code = _say(f"{error.strerror or error}{where}; {KEPT}", FAILURE)
    sys.exit(code if isinstance(code, int) else OK)


def _check_words(words: list[str]) -> None:
    """Refuse arguments that are not UTF-8: names of folders and components are written into plans and pages."""
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise InputError(f"{word!r} is not UTF-8: choose another name")


def _say(message: str, code: int) -> int:
    print(shortened(f"diorama: {message}"), file=sys.stderr)
    return code


@cli.command("ls")
@click.argument("what", required=False, type=click.Choice(["worlds", "models", "methods", "protocols"]))
def list_components(what: str | None) -> None:
    """List worlds, models, methods and protocols."""
    from diorama.core.catalogue import KINDS, entries

    for kind in KINDS:
        found = entries(kind) if what in (None, f"{kind}s") else {}
        if found and what is None:
            print(f"{kind}s")
        width = max((len(name) for name in found), default=0)
        for entry in found.values():
            print(f"  {entry.name:{width}}  {entry.summary}")


@cli.command()
@click.argument("component")
@click.option("--bib", is_flag=True, help="Also print the references as BibTeX.")
def show(component: str, bib: bool) -> None:
    """Show what a component is: purpose, parameters, an example, metrics, truth, layouts and references."""
    from diorama.describe import describe

    with apart() as out:
        for line in describe(component, bib):
            print(line, file=out)


@cli.command()
@click.argument("world")
@click.option("-n", "count", default=16, show_default=True, help="How many scenes.")
@click.option("-o", "out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option("--do", "changes", multiple=True, metavar="NAME=VALUE", help="Change every scene, e.g. --do light=3.")
@click.option("--seed", default=0, show_default=True)
@click.option("--layout", default="flat", show_default=True, help="How the files are laid out.")
@click.option("-M", "--model", help="With --layout flat: add the class that this model predicts to the targets.")
def render(
    world: str, count: int, out: Path, changes: tuple[str, ...], seed: int, layout: str, model: str | None
) -> None:
    """Render scenes of a WORLD with their truth, a manifest of the cases and a contact sheet."""
    from diorama import layouts
    from diorama.core.catalogue import build
    from diorama.core.writing import Writing

    staged = build("world", world)
    if model and layout != "flat":
        raise InputError(f"-M {model}: only --layout flat writes the predictions of a model")
    named = build("model", model) if model else None
    if count < 1:
        raise InputError(f"-n {count}: at least one scene is needed")
    parsed = spec.changes(", ".join(changes))
    try:
        with apart() as results, shown("rendering", "scenes") as progress:
            print(layouts.write(layout, Writing(staged, count, seed, parsed, out, progress, named)), file=results)
    except OSError as error:
        raise InputError(f"cannot write to {out}: {error.strerror or error}; choose another -o") from error


@cli.command()
@click.argument("world")
@click.option("--do", "changes", multiple=True, required=True, metavar="NAME=VALUE", help="The change: --do beak=none.")
@click.option("-M", "--model", help="Also show this model's logits before and after.")
@click.option("--scene", default=0, show_default=True, help="The number of the scene.")
@click.option("--seed", default=0, show_default=True)
@click.option("-o", "out", required=True, type=click.Path(path_type=Path), help="Picture to write: .png, .pdf or .svg.")
def look(world: str, changes: tuple[str, ...], model: str | None, scene: int, seed: int, out: Path) -> None:
    """Show what one change does to a scene of a WORLD: before, after, difference, logits."""
    from diorama.data.look import look as look_at

    with apart() as results:
        found = look_at(world, scene, ", ".join(changes), model, seed)
        print(found.save(out), file=results)
        say(repr(found))


@cli.command()
@click.argument("encoder")
@click.option("-w", "--world", default="sprites", show_default=True, help="The world of the image.")
@click.option("--scene", default=0, show_default=True, help="The number of the scene.")
@click.option("--steps", default=7, show_default=True, help="Pictures of each latent.")
@click.option("--seed", default=0, show_default=True)
@click.option("-o", "out", required=True, type=click.Path(path_type=Path), help="Picture to write: .png, .pdf or .svg.")
def traverse(encoder: str, world: str, scene: int, steps: int, seed: int, out: Path) -> None:
    """Show what each latent of an ENCODER does: one image, one latent moved at a time, decoded."""
    from diorama.data.traverse import traverse as traversed

    with apart() as results:
        found = traversed(encoder, world, scene, steps, None, seed)
        print(found.save(out), file=results)
        say(repr(found))


@cli.command()
@click.argument("plan", required=False, type=click.Path(path_type=Path))
@click.option("-w", "--world", "worlds", multiple=True, metavar="WORLD", help="A world, e.g. mondrian.")
@click.option("-M", "--model", "models", multiple=True, metavar="MODEL", help="A model, if the protocol needs one.")
@click.option("-m", "--method", "methods", multiple=True, metavar="METHOD", help="A method; may be repeated.")
@click.option("-p", "--protocol", "protocols", multiple=True, metavar="PROTOCOL", help="A protocol, e.g. lmse.")
@click.option("-n", "--cases", type=int, help="Cases per cell (default: all of a recorded world, 32 of a staged one).")
@click.option("--seed", type=int, help="Seed of the cases (default 0).")
@click.option("-o", "--out", type=click.Path(path_type=Path), default="diorama-run", show_default=True)
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1, mps.")
@click.option("--engine", metavar="NAME", help="Logits by torch (default), onnxruntime, openvino or openvino_bf16.")
@click.option(
    "--on",
    default="local",
    show_default=True,
    metavar="WHERE",
    help="local (all cores), local:2, ray, ray:ADDRESS, slurm:16 or ./mine.py:Launcher.",
)
@click.option("--cpus", type=click.IntRange(1), default=1, help="Cores of each worker (default 1).")
@click.option("--gpus", type=click.IntRange(0), default=0, help="GPUs of each worker (default 0).")
@click.option("--memory", metavar="SIZE", help="Memory of each worker, e.g. 4G.")
@click.option("--controls", is_flag=True, help="Also run oracle, random and growing doses of error.")
@click.option("--require", multiple=True, metavar="GATE", help="'lmse<=0.05' or 'weiss:lmse<=0.03'; exit 4 if not met.")
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON document.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Give up cases that take longer (default: never).")
@click.option("--keep", type=click.Choice(["maps"]), help="Store every answer beside its rows (diorama.Results.read).")
@click.option("--prepare", is_flag=True, help="Make the directory for `diorama work` and compute nothing.")
@click.option("--dry-run", is_flag=True, help="With --on slurm: print the job array and submit nothing.")
@click.option("--no-wait", is_flag=True, help="With --on slurm: return once the job array is submitted.")
@click.pass_context
def run(
    ctx: click.Context,
    plan: Path | None,
    out: Path,
    device: str,
    on: str,
    cpus: int,
    gpus: int,
    memory: str | None,
    require: tuple[str, ...],
    as_json: bool,
    timeout: float | None,
    prepare: bool,
    dry_run: bool,
    no_wait: bool,
    **asked: Any,
) -> int:
    """Run a PLAN.toml, or the plan of -w -M -m -p, and write a report. Cases that OUT already has are not computed again."""
    from diorama.core import device as devices
    from diorama.core.run import locked_run
    from diorama.gates import parse_gate
    from diorama.launch.contract import Need, read_size
    from diorama.launch.find import find

    _check_timeout(timeout)
    devices.start_with_one_thread()
    devices.choose(device)
    need = Need(cpus, gpus, read_size(memory), timeout, not no_wait, dry_run)
    launcher, gates, asked_for = find(on, need), [parse_gate(gate) for gate in require], _plan(plan, asked)
    devices.set_for_workers(launcher.device() if device == "auto" else "")
    if ctx.get_parameter_source("out") is ParameterSource.DEFAULT:
        _check_default(out, asked_for)
    _name_imports(asked_for)
    with apart() as results, locked_run(out, asked_for) as made:
        return _print_prepared(made) if prepare else _run(made, launcher, gates, as_json, results)


def _name_imports(plan: Any) -> None:
    """Print the names of the user's code before it is imported."""
    for name in plan.imports():
        say(f"imports {name}")


def _check_default(out: Path, plan: Any) -> None:
    """Refuse the default folder if it has results of another command, which would vanish from its report."""
    from diorama.core.plan import Plan

    try:
        earlier = Plan.read(out / "plan.toml")
    except InputError:  # there is none, or it was damaged
        return
    if not plan.covers(earlier):
        raise InputError(
            f"{out} holds the results of another command ({out}/plan.toml):"
            f" give this one another folder with -o NAME, or replace that one with -o {out}"
        )


def _plan(path: Path | None, asked: dict[str, Any]) -> Any:
    """The plan of a file; options override what it says."""
    from diorama.core.plan import Plan

    given = {k: list(v) if isinstance(v, tuple) else v for k, v in asked.items() if v or type(v) is int}
    if path is None:
        return Plan.from_table(given, "the command line")
    file = Plan.read(path)
    return Plan.from_table({**file.table(), **given}, str(path))


def _check_timeout(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds < float("inf"):
        raise InputError(f"--timeout {seconds:g}: write a number of seconds above 0")


def _print_prepared(made: Any) -> int:
    _announce(made)
    say(f"prepared; `diorama work {made.folder} --shard I/N` computes a share, `diorama report {made.folder}` reads it")
    return OK


def _run(made: Any, launcher: Any, gates: list[Any], as_json: bool, out: TextIO) -> int:
    from diorama.api import execute
    from diorama.gates import failed_gates
    from diorama.report.write import write_report

    for gate in gates:
        gate.check(made)
    say(launcher.describe(made))
    _announce(made)
    with shown("scoring", "cases") as progress:
        ended = execute(made, launcher, progress, launcher.need.timeout)
    if ended is None:
        print(launcher.output, end="", file=out, flush=True)
        return OK
    found, results = ended
    report = write_report([found], None, "html")
    text = json.dumps(results, ensure_ascii=False, indent=1) if as_json else write_report([found], None, "text")
    print(text, file=out, flush=True)
    say(f"report: {report}")
    unmet = failed_gates(gates, results, made.cells)
    for line in unmet:
        say(f"diorama: required {line}")
    failures = sum(s["n_error"] for cell in results["cells"] for s in list(cell["summary"].values())[:1])
    if failures:
        say(f"diorama: {failures} cases failed; the table says why, {made.folder}/cells/*/*/errors has the tracebacks")
    if results["missing"]:
        say(f"diorama: {results['missing']} cases have no result; run the same command again to compute them")
    return GATE_FAILED if unmet else SOME_FAILED if failures or results["missing"] else OK


def _announce(made: Any) -> None:
    """Print what will be computed and what is known already."""
    missing = {cell.key: len(made.missing(cell)) for cell in made.cells}
    total = sum(cell.count for cell in made.cells)
    todo = sum(missing.values())
    say(f"{len(made.cells)} cells, {total} cases: {total - todo} known, {todo} to compute")
    if made.plan.engine != "torch":
        say(f"  logits are computed by {made.plan.engine}, gradients by torch")
    for cell in made.cells:
        if missing[cell.key]:
            say(f"  {missing[cell.key]:5d} × {' × '.join(label for label in cell.labels.values() if label)}")
    labels = ("method", "protocol", "world")
    skipped = [" × ".join(p[k] for k in labels if p[k]) + f": {p['reason']}" for p in made.expansion.skipped]
    for line in skipped[:6]:
        say(f"  skipped {line}")
    if len(skipped) > 6:
        say(f"  … and {len(skipped) - 6} more pairs; the report lists them with their reasons")


@cli.command()
@click.argument("recipe")
@click.option("-o", "out", type=click.Path(path_type=Path), help="Folder for data and weights (default: train-RECIPE).")
def train(recipe: str, out: Path | None) -> None:
    """Train a bundled model again by its RECIPE, e.g. birds_cnn; fit a network of yours to a staged world:
    "tune(backbone=timm:resnet18, world=birds, minutes=10)"; or learn codes of any world or folder of images:
    "beta_tcvae(world=candle(confounding=pairs), beta=6)". Continues an earlier call that was stopped.
    """
    from diorama.training.recipes import train as train_recipe

    folder = out or Path("train-" + re.sub(r"[^\w.]+", "-", recipe).strip("-"))
    with apart() as results, shown(f"training {recipe}", "") as progress:
        print(train_recipe(recipe, folder, progress), file=results)


@cli.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--shard", metavar="I/N", help="Which share of the work, counted from 0 (default: all of it).")
@click.option("--units", metavar="LIST", help="Which units, e.g. 0-7,9.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Give up cases that take longer (default: never).")
def work(run_folder: Path, shard: str | None, units: str | None, timeout: float | None) -> int:
    """Compute missing rows of a RUN (launchers and job arrays call this), and print how many cases are left."""
    from diorama.core import device as devices
    from diorama.core.run import open_run
    from diorama.launch import units as lists

    _check_timeout(timeout)
    if shard and units:
        raise InputError(f"--shard {shard} and --units {units}: give one of them")
    lists.shard(shard or "0/1", 1)  # so that a mistake in it is found before the run is opened
    devices.start_with_one_thread()
    devices.check_for_workers()
    with apart() as out:
        made = open_run(run_folder)
        _name_imports(made.plan)
        computed, failed = _compute_share(made, shard or "0/1", units, timeout)
        total, left = sum(cell.count for cell in made.cells), sum(len(made.missing(cell)) for cell in made.cells)
        what = f"units {units}" if units else f"shard {shard or '0/1'}"
        print(f"{what}: {computed} cases computed, {failed} failed; {left} of {total} cases are left", file=out)
    return SOME_FAILED if failed else OK


def _compute_share(made: Any, shard: str, units: str | None, timeout: float | None) -> tuple[int, int]:
    """Compute some units in a worker process; returns how many cases they lacked, and how many of these failed."""
    from diorama.core.record import record
    from diorama.core.run import missing_of
    from diorama.launch import units as lists
    from diorama.launch.contract import Need
    from diorama.launch.local import Launcher, on

    count = len(made.units)
    mine = lists.read(units, count) if units else lists.shard(shard, count)
    lock = f"units-{units[:80]}" if units else f"shard-{shard.replace('/', '-of-')}"  # refuses a second process with it
    lacked = sum(len(missing_of(made, k)) for k in mine)
    with shown("scoring", "cases") as progress:
        on(Launcher("1", Need(timeout=timeout), lock), made, progress, mine)
    record(made)
    return lacked, sum(len(missing_of(made, k)) for k in mine)


@cli.command()
@click.argument("components", nargs=-1)
def check(components: tuple[str, ...]) -> int:
    """Test components against the contracts: ./mine.py:Mine, a spec, or everything bundled if none is given.

    A run directory is checked for damaged and contradicting files.
    """
    from diorama.io.integrity import check_run
    from diorama.io.run_folder import is_run
    from diorama.testing.check import check_all

    with apart() as out:
        tell = partial(print, file=out, flush=True)
        if components and all(is_run(Path(name)) for name in components):
            holds = not [name for name in components if not check_run(Path(name), tell)]
        else:
            holds = check_all(list(components), tell)
        return OK if holds else FAILURE


cli.add_command(lab)


@cli.command()
@click.option("-o", "--out", type=click.Path(path_type=Path), default="diorama-demo", show_default=True)
@click.option("--on", default="local", show_default=True, help="local (all cores), local:1, ray, slurm:16 …")
def demo(out: Path, on: str) -> int:
    """A small run of everything: explanations of a bird classifier, decompositions of paintings, codes of sprites."""
    from diorama.core import device as devices
    from diorama.core.plan import Plan
    from diorama.core.run import locked_run
    from diorama.launch.contract import Need
    from diorama.launch.find import find

    devices.start_with_one_thread()
    explainers = ["input_x_gradient", "integrated_gradients(steps=16)", "grad_cam"]
    decomposers = ["baseline", "retinex_gray", "retinex_color", "weiss", "weiss_retinex"]
    encoders = ["pca", "beta_vae"]
    worlds = ["birds", "mondrian", "sprites(counts=(3, 3, 8, 8, 8))"]
    protocols = ["single_deletion", "accuracy", "lmse", "mig(frames=1000)", "irs(frames=1000)"]
    plan = Plan(worlds, explainers + decomposers + encoders, protocols, ["birds_cnn"], cases=24, controls=True)
    with apart() as results, locked_run(out, plan) as made:
        return _run(made, find(on, Need()), [], False, results)
