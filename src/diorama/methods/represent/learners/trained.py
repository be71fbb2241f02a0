"""What the learners share: bundled weights for some worlds, chosen by the world of the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from diorama.core.errors import InputError
from diorama.io.zoo import bundled_on
from diorama.methods.represent.burgess_vae import BurgessVae

#: Recorded data sets, and the staged worlds that look like them.
RECORDED = {"candle_recorded": "candle", "dsprites": "sprites"}


@dataclass(frozen=True)
class TrainedVae(BurgessVae):
    """`burgess_vae` with bundled weights; the card beside them says how they were made.

    checkpoint  weights of your own, as `diorama train` makes them; None for bundled ones
    learnt_on   world whose bundled weights are used, e.g. candle; None for the world of the run
    seed        not used: there are weights
    """

    example = 'diorama run -w "candle(confounding=pairs)" -m {} -p irs'
    #: The recipe of `diorama train` that makes its weights.
    learner: ClassVar[str] = ""

    learnt_on: str | None = None

    def __post_init__(self) -> None:
        BurgessVae.__post_init__(self)
        _ = self.file

    @property
    def file(self) -> Path:
        """The checkpoint given, else the bundled one for the world; without a world the first bundled one."""
        if self.checkpoint:
            return Path(self.checkpoint).expanduser()
        known = bundled_on(self.learner)
        if self.learnt_on is None and known:
            return next(iter(known.values()))
        if self.learnt_on not in known:
            available = f"there are some for {', '.join(known)}" if known else "none are bundled"
            world = self.learnt_on or "sprites"
            raise InputError(
                f"{self.learner} has no weights for {world}, {available}: diorama train"
                f' "{self.learner}(world={world})" -o FOLDER, then'
                f" {self.learner}(checkpoint=FOLDER/{self.learner}.safetensors)"
            )
        return known[self.learnt_on]

    def on_world(self, world: str) -> Mapping[str, Any]:
        """The parameter that selects the weights learnt on a world, unless a checkpoint is given."""
        return {} if self.checkpoint else {"learnt_on": RECORDED.get(world, world)}
