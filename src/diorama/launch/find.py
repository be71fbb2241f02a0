"""Finds the launcher of `--on NAME[:ARGUMENT]`: one of this folder, or the user's `./mine.py:Launcher[:ARGUMENT]`."""

import importlib
from pathlib import Path

from diorama.adapt.neighbours import load_file
from diorama.core.errors import InputError, did_you_mean
from diorama.launch.contract import Launcher, Need

#: The bundled launchers: modules of this folder with a class `Launcher`.
NAMES = ("local", "ray", "slurm")


def find(on: str, need: Need) -> Launcher:
    """The launcher of a `--on` option."""
    name, _, argument = on.partition(":")
    if name.endswith(".py"):
        return _outside(Path(name), argument, need)
    if name not in NAMES:
        raise InputError(
            f"cannot run on {on!r}: {did_you_mean(name, list(NAMES))} Write local, local:2, ray, ray:ADDRESS, slurm:16"
            " or ./mine.py:Launcher"
        )
    if (not need.wait or need.dry_run) and name != "slurm":
        raise InputError(f"{'--no-wait' if not need.wait else '--dry-run'} is for --on slurm:16, not for {on!r}")
    made: Launcher = importlib.import_module(f"diorama.launch.{name}").Launcher(argument, need)
    return made


def _outside(path: Path, argument: str, need: Need) -> Launcher:
    if not path.expanduser().is_file():
        raise InputError(f"cannot run on {path}:{argument}: there is no file {path}")
    name, _, rest = argument.partition(":")
    module = load_file(path.expanduser().resolve())
    made = vars(module).get(name)
    if not (isinstance(made, type) and issubclass(made, Launcher)):
        raise InputError(
            f"cannot run on {path}:{argument}: {path} has no class {name!r} that derives from"
            " diorama.launch.contract.Launcher"
        )
    return made(rest, need)
