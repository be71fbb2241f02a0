"""The scores of trained learners for the pages on them: runs that are taken up again, their values as cells of tables."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from diorama import api
from diorama.core.scene import digest
from diorama.report.summary import read_results
from studies.disentangle.page import Measured, shown
from studies.disentangle.trainings import card, checkpoint, finished
from studies.page_kit import HOME, PROCESSES, table

BUILD = HOME / "build" / "reproduce" / "learners"
#: Frames that CG decodes: each costs 13 passes through decoder and classifier for every protocol.
DECODED = 60
NAMES = {"beta_vae": "β-VAE", "beta_tcvae": "β-TCVAE", "dip_vae": "DIP-VAE", "factor_vae": "FactorVAE"}
#: Found values by (training, protocol, metric).
Found = dict[tuple[str, str, str], Measured]
#: What tables show of a protocol: its spec and metric, by head.
Columns = dict[str, tuple[str, str]]


class Sizes(NamedTuple):
    """Frames of a draw, and draws."""

    frames: int
    draws: int


def called(learner: str) -> str:
    """The name of a learner as the paper writes it."""
    return ("SS-" if learner.startswith("ss_") else "") + NAMES[learner.removeprefix("ss_")]


@dataclass(frozen=True)
class Group:
    """The finished learners of a group, what was found for them, and the columns of its tables."""

    names: list[str]
    found: Found
    codes: Columns
    decoded: Columns

    def cell(self, name: str, head: str) -> str:
        """A value with its interval."""
        known = self.found.get((name, *{**self.codes, **self.decoded}[head]))
        return "—" if known is None else shown(known, 2)

    def mean(self, name: str, head: str) -> float:
        """A value; NaN where there is none."""
        known = self.found.get((name, *{**self.codes, **self.decoded}[head]))
        return float("nan") if known is None or known.summary.mean is None else float(known.summary.mean)

    def learners(self, head: str) -> dict[str, float]:
        """The values of all learners by name."""
        return {name.partition("/")[2]: self.mean(name, head) for name in self.names}


def measured(names: list[str], world: str, columns: Columns, draws: int, model: str = "") -> Found:
    """The values of some trainings under the protocols of some columns: a run for each, so that none is asked twice."""
    protocols = list(dict.fromkeys(spec for spec, _ in columns.values()))
    found: Found = {}
    for name in names:
        asked = digest([world, protocols, draws, str(checkpoint(name))])[:8]
        out = BUILD / f"{name.replace('/', '-')}-{'cg' if model else 'codes'}-{asked}"
        spec = f"burgess_vae(checkpoint={checkpoint(name)})"
        api.run([world], [spec], protocols, [model] if model else [], draws, out=out, processes=PROCESSES)
        for cell in read_results(out).cells:
            for metric in cell.manifest["metrics"]:
                at = name, str(cell.manifest["protocol"]), metric
                found[at] = Measured(cell.of(metric), cell.record.summary[metric])
    return found


def group_of(names: list[str], world: str, sizes: Sizes, side: int = 64) -> Group:
    """Everything that is asked about some trainings, of those that are finished."""
    done = [name for name in names if finished(name)]
    codes, decoded = _codes(sizes), _decoded()
    model = judge_of(world, side)
    found = measured(done, world, codes, sizes.draws)
    found |= measured(done, world, decoded, sizes.draws, model) if model else {}
    return Group(done, found, codes, decoded)


def _codes(sizes: Sizes) -> Columns:
    """IRS, UC as defined and as released, MCC and R²."""
    n = f"frames={sizes.frames}"
    ucs = {
        f"UC{rho} {word}": (f"uc({variant}rho={rho}, {n})", "uc")
        for variant, word in (("", "corrected"), ("variant=published, ", "published"))
        for rho in (1, 2)
    }
    ucs |= {f"UC{rho} null": (ucs[f"UC{rho} corrected"][0], "uc_null") for rho in (1, 2)}
    irs = {"IRS": (f"irs({n})", "irs"), "IRS null": (f"irs({n})", "irs_null")}
    return {**irs, **ucs, "MCC": (f"mcc({n})", "mcc"), "R²": (f"mcc({n})", "r2")}


def _decoded() -> Columns:
    """CG as defined and as released."""
    found: Columns = {}
    for rho in (1, 2):
        own = f"cg(rho={rho}, frames={DECODED})"
        found |= {f"CG{rho} corrected": (own, "cg"), f"null {rho}": (own, "cg_null")}
    for rho in (1, 2):
        found[f"CG{rho} published"] = (f"cg(variant=published, rho={rho}, frames={DECODED})", "cg")
    return found | {"told on decoded": (f"cg(rho=1, frames={DECODED})", "accuracy_decoded")}


def judge_of(world: str, side: int = 64) -> str:
    """The classifier of a world's factors, where it is trained; else none."""
    model = "sprites_factors" if world.startswith("sprites") else "candle_factors"
    name = f"judges/{'32_' if side == 32 else ''}{model}"
    return f"{model}(checkpoint={checkpoint(name)})" if finished(name) else ""


def longer(names: list[str], world: str, sizes: Sizes, side: int = 64) -> str:
    """The same learner after more and more steps: reconstruction, KL and CG."""
    group = group_of(names, world, sizes, side)
    rows = []
    for name in group.names:
        told: dict[str, Any] = card(name)
        values = [group.cell(name, head) for head in ("IRS", "UC1 corrected", "R²", *group.decoded)]
        rows.append([steps_of(told), f"{told['reconstruction']:.0f}", f"{told['divergence']:.1f}", *values])
    return table(["steps", "reconstruction", "KL", "IRS", "UC1 corrected", "R²", *group.decoded], rows)


def steps_of(told: dict[str, Any]) -> str:
    """The steps of a training, from its card; the first cards have all parameters in one table."""
    recipe = told["recipe"]
    return f"{recipe.get('how', recipe)['steps']:,}"


def values_of(group: Group, names: list[str], head: str) -> np.ndarray:
    """The values of some trainings of a group that have one."""
    return np.array([v for name in names if np.isfinite(v := group.mean(name, head))])
