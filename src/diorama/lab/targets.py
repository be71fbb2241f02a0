"""The target of `diorama lab`: a world with default models and methods, or a run with its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from diorama.core.errors import InputError
from diorama.core.plan import Plan, written
from diorama.core.spec import named, parse
from diorama.io.run_folder import is_run
from diorama.lab.cases import Cases
from diorama.lab.lanes import Specs
from diorama.report.summary import read_results

#: The default models and methods of a world.
USUAL: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "birds": (
        ("birds_cnn",),
        ("input_x_gradient", "grad_cam", "integrated_gradients", "rise(masks=400, contrast=True)"),
    ),
    "candle": ((), ("retinex_color", "baseline")),
    "tabletop": ((), ("retinex_color", "baseline")),
    "mondrian": ((), ("retinex_color", "baseline")),
    "sprites": ((), ("beta_vae",)),
}


def opened(target: str, models: Sequence[str], methods: Sequence[str]) -> tuple[Specs, Cases | None]:
    """The specs of a target, and its cases if it is a run."""
    if is_run(Path(target)):
        return of_run(Path(target), models, methods)
    usual = USUAL.get(parse(target).name, ((), ())) if not models and not methods else ((), ())
    return Specs(target, tuple(models) or usual[0], tuple(methods) or usual[1]), None


def of_run(folder: Path, models: Sequence[str], methods: Sequence[str]) -> tuple[Specs, Cases]:
    """The first world of a run with the models and methods that judged it."""
    if '"live:' in (found := read_results(folder)).plan:
        raise InputError(f"{folder} is of a Python session: open the lab there, diorama.lab(world, model=net)")
    cells = [cell.manifest for cell in found.cells if not cell.manifest["control"]]
    if not cells:
        raise InputError(f"{folder} has no results yet: run its command to the end first")
    plan = Plan.read(folder / "plan.toml")
    world = cells[0]["world"]
    labels = {cell[kind] for cell in cells if cell["world"] == world for kind in ("model", "method")}
    shown = [[text for text in map(written, given) if _label(text) in labels] for given in (plan.models, plan.methods)]
    spec = next(text for text in map(written, plan.worlds) if _label(text) == world)
    return Specs(spec, tuple(models or shown[0]), tuple(methods or shown[1])), Cases(folder, world)


def _label(text: str) -> str:
    """The label of a component in a plan: the user's name for it, or its spec."""
    own, spec = named(text)
    return own or str(parse(spec))
