"""The paths of bundled checkpoints."""

from pathlib import Path

from diorama.core.errors import InputError

#: Checkpoints (NAME.safetensors) and their cards (NAME.json).
ZOO = Path(__file__).parents[1] / "models" / "zoo"

#: Worlds for which learners of codes are bundled; the first is the default.
LEARNT = ("sprites", "candle")


def checkpoint_path(given: str | None, bundled: str) -> Path:
    """The checkpoint to use: the given file, or the bundled one of that name."""
    path = ZOO / f"{bundled}.safetensors" if given is None else Path(given).expanduser()
    if not path.is_file():
        raise InputError(f"{bundled}: there is no checkpoint {path}; make one with: diorama train {bundled}")
    return path


def bundled_on(name: str) -> dict[str, Path]:
    """The bundled checkpoints NAME_WORLD of a learner, by world."""
    found = {world: ZOO / f"{name}_{world}.safetensors" for world in LEARNT}
    return {world: path for world, path in found.items() if path.is_file()}
