"""FunnyBirds' scores of one ProtoPNet when a number is added to all connections of every prototype.

The number changes all logits of an image by the same amount, so that no probability and no prediction changes. But scores
that use a single logit change: f_y then falls or rises with everything that resembles any prototype.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diorama.core.plan import Plan
from diorama.io.zoo import checkpoint_path
from studies.funnybirds.stability import COLUMNS, PROTOCOL
from studies.funnybirds.table2 import BUILD, digits, value
from studies.page_kit import cells_of, table

NETWORK, METHOD = "birds_protopnet", "prototypes"
ADDED = (0.0, -0.25, -0.5, -1.0)


def shifted(added: float, folder: Path) -> Path:
    """A checkpoint of the network with a number added to every connection."""
    from safetensors.torch import load_file, save_file

    path = folder / f"{NETWORK}{added:+g}.safetensors"
    weights = load_file(checkpoint_path(None, NETWORK))
    weights["last_layer.weight"] = weights["last_layer.weight"] + added
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, path)
    return path


def scores(added: float, birds: int, processes: int) -> dict[str, Any]:
    """The results of the shifted network."""
    folder = BUILD / "drift"
    model = f"{NETWORK}(checkpoint={shifted(added, folder)})"
    (cell,) = cells_of(folder / f"run{added:+g}", Plan(["birds"], [METHOD], [PROTOCOL], [model], birds), processes)
    return cell


def page(birds: int, processes: int) -> str:
    """A table with a row for every number added."""
    rows = []
    for added in ADDED:
        cell = scores(added, birds, processes)
        with_ts = cell["summary"]["ts"]["n_ok"] / birds
        values = [value(cell, m) for m in COLUMNS]
        rows.append([f"{added:g}", *("–" if v is None else digits(v) for v in values), f"{with_ts:.2f}"])
    return table(["added", *COLUMNS, "birds with a ts"], rows)
