"""Compares two runs, or two methods of one run, case by case."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from diorama.core.errors import InputError, did_you_mean
from diorama.core.scene import canonical
from diorama.report.paired import paired
from diorama.report.shown import NONE, bounds, crossed, decimals, label, number
from diorama.report.summary import CellResult, Results
from diorama.report.tables import Column, aligned

LABELS = ("world", "model", "method", "protocol", "control")
CLOSING = (
    "interval and p: bootstrap-t over cases (at least 3); sign flips: a second test; no p is corrected for multiplicity"
)
Key = Callable[[CellResult], tuple[Any, ...]]


def compare(a: Results, b: Results, between: tuple[str, str] | None = None) -> list[dict[str, Any]]:
    """The difference b − a of every cell that both runs have, over the cases that both have.

    With `between`, the first method in `a` is compared with the second in `b`, which may be the same run. Cells without
    a partner are listed too, with the reason. Worlds are paired by label, or by content if only their paths differ.
    """
    left, right = (_cells_of(a, between[0]), _cells_of(b, between[1])) if between else (list(a.cells), list(b.cells))
    keys = [_label_key(LABELS, bool(between)), _label_key(LABELS[1:], bool(between), content=True)]
    pairs, left, right = _match(left, right, keys)
    found = [_difference(one, other) for one, other in pairs]
    return found + [_unpaired(cell, "a", between) for cell in left] + [_unpaired(cell, "b", between) for cell in right]


def compared(a: Results, b: Results, between: tuple[str, str] | None = None) -> list[dict[str, Any]]:
    """`compare`, but InputError if nothing can be compared."""
    found = compare(a, b, between)
    if all(line["reason"] for line in found):
        why = "; ".join(dict.fromkeys(line["reason"] for line in found)) or "no cells"
        raise InputError(f"nothing was compared: {why}")
    return found


def _cells_of(results: Results, method: str) -> list[CellResult]:
    """The cells of a method, by its label or the name before its parameters."""
    cells = [c for c in results.cells if c.manifest["method"] == method]
    cells = cells or [c for c in results.cells if (c.manifest["method"] or "").partition("(")[0] == method]
    if not cells:
        known = sorted({c.manifest["method"] or "" for c in results.cells if c.manifest["control"] != "dose"} - {""})
        raise InputError(f"{results.folder} has no method {method!r}; {did_you_mean(method, known)}")
    return cells


def _label_key(labels: tuple[str, ...], across: bool, content: bool = False) -> Key:
    """A key function of labels; `across` methods, without those of method and control."""
    used = [name for name in labels if not (across and name in ("method", "control"))]

    def key(cell: CellResult) -> tuple[Any, ...]:
        shown = tuple(cell.manifest[name] for name in used)
        return (*shown, _content(cell)) if content else shown

    return key


def _content(cell: CellResult) -> str:
    """A text that identifies a world's content, independent of its path."""
    world = cell.manifest.get("depends_on", {}).get("world")
    if not isinstance(world, dict):
        return cell.manifest["world"]
    return canonical({name: world.get(name) for name in ("target", "params", "data")})


def _match(
    left: list[CellResult], right: list[CellResult], keys: list[Key]
) -> tuple[list[tuple[CellResult, CellResult]], list[CellResult], list[CellResult]]:
    """Pairs by the first key that finds a partner, and the cells without one on either side."""
    pairs = []
    for key in keys:
        known: dict[tuple[Any, ...], list[CellResult]] = {}
        for cell in right:
            known.setdefault(key(cell), []).append(cell)
        for cell in list(left):
            partners = known.get(key(cell))
            if partners:
                partner = partners.pop(0)
                pairs.append((cell, partner))
                left = [c for c in left if c is not cell]
                right = [c for c in right if c is not partner]
    return pairs, left, right


def _difference(a: CellResult, b: CellResult) -> dict[str, Any]:
    shown = _labels(a, b)
    if a.manifest["control"] == "dose" or b.manifest["control"] == "dose":
        return {**shown, "reason": "a dose curve has no single value per case"}
    if a.case_metric != b.case_metric or a.manifest["direction"] != b.manifest["direction"]:
        return {**shown, "reason": f"the protocols disagree: {a.case_metric} in a, {b.case_metric} in b"}
    found = paired(a.values(a.case_metric), b.values(b.case_metric), a.manifest["direction"])
    reason = "" if found.n else "no case has a value in both"
    shown["lead"] = a.metric
    return {**shown, "metric": a.case_metric, "direction": a.manifest["direction"], **asdict(found), "reason": reason}


def _labels(a: CellResult, b: CellResult) -> dict[str, Any]:
    one, other = a.manifest, b.manifest
    method = one["method"] if one["method"] == other["method"] else f"{one['method']} → {other['method']}"
    shown = {name: one[name] for name in LABELS if name != "method"}
    return {**shown, "method": method, "variant": one["variant"]}


def _unpaired(cell: CellResult, side: str, between: tuple[str, str] | None) -> dict[str, Any]:
    wanted = f"no cell of {between[1 if side == 'a' else 0]} with this world, model and protocol" if between else ""
    return {**_labels(cell, cell), "reason": wanted or f"only in {side}"}


def text(found: list[dict[str, Any]], a: str = "a", b: str = "b") -> str:
    """The comparison as aligned lines; negative differences mean that b is smaller."""
    scored = [f for f in found if not f["reason"]]
    places = decimals([f["mean"] for f in scored])
    head = ["method", "protocol", "world", "metric", "b − a", "95 % interval", "p", "p (sign flips)"]
    head += ["better/worse/equal", "only a/b"]
    texts = zip(*(_row(f, places) for f in scored), strict=True)
    body = aligned([Column(h, list(t), numeric=i >= 4) for i, (h, t) in enumerate(zip(head, texts, strict=False))])
    alone = [f"  not compared: {crossed(f)}: {f['reason']}" for f in found if f["reason"]]
    closing = f"a = {a}, b = {b}; better and worse count cases for b\n{CLOSING}"
    led = sorted({(f["lead"], f["metric"]) for f in scored if f["lead"] != f["metric"]})
    closing += "".join(f"\n{lead} is a metric of the whole cell: {m} is compared instead" for lead, m in led)
    return "\n".join([*(body if scored else ["nothing can be compared"]), "", closing, *alone]) + "\n"


def _row(found: dict[str, Any], places: int) -> list[str]:
    wins = f"{found['better']}/{found['worse']}/{found['equal']}"
    p = [NONE if found[name] is None else f"{found[name]:.2g}" for name in ("p", "p_sign_flip")]
    interval = bounds(found["lo"], found["hi"], places) or NONE
    gap, alone = number(found["mean"], places), f"{found['only_a']}/{found['only_b']}"
    method = f"{label(found['method'])} (control)" if found["control"] else label(found["method"])
    world = " ".join(label(found[k]) for k in ("world", "model") if found[k])
    metric = f"{found['metric']} {'↓' if found['direction'] == 'lower' else '↑'}"
    return [method, label(found["protocol"]), world, metric, gap, interval, *p, wins, alone]
