"""What components say of themselves: a line for every parameter, and what `diorama show` prints of it."""

import ast
import importlib
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from diorama import InputError
from diorama.core.catalogue import KINDS, class_name, entries, find, parameters
from diorama.describe import documented
from tests.conftest import REPOSITORY

SOURCE = REPOSITORY / "src" / "diorama"
ENTRIES = [entry for kind in KINDS for entry in entries(kind).values() if entry.path.is_relative_to(SOURCE)]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def class_in(path: Path, name: str) -> ast.ClassDef | None:
    return next((n for n in tree(path).body if isinstance(n, ast.ClassDef) and n.name == name), None)


def bases(path: Path, node: ast.ClassDef) -> list[tuple[Path, ast.ClassDef]]:
    """The classes of ours that a class extends, found by reading imports."""
    places = {}
    for found in ast.walk(tree(path)):
        if isinstance(found, ast.ImportFrom) and (found.module or "").startswith("diorama"):
            for name in found.names:
                places[name.asname or name.name] = (found.module, name.name)
    known = []
    for base in node.bases:
        if isinstance(base, ast.Attribute):  # common.OnBothLayers
            package, module = places[base.value.id]
            known.append((SOURCE.parent / f"{package}.{module}".replace(".", "/"), base.attr))
        elif base.id in places:
            module, name = places[base.id]
            known.append((SOURCE.parent / module.replace(".", "/"), name))
        else:
            known.append((path.with_suffix(""), base.id))
    found = [(place.with_suffix(".py"), name) for place, name in known]
    return [(place, class_in(place, name)) for place, name in found if place.is_file() and class_in(place, name)]


def parameters_of(path: Path, node: ast.ClassDef) -> set[str]:
    """Fields of a dataclass, or arguments of `__init__`, of a class and of those it extends."""
    own = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    if own:
        return {a.arg for a in (*own[0].args.args, *own[0].args.kwonlyargs)} - {"self"}
    if not any("dataclass" in ast.unparse(d) for d in node.decorator_list):
        return set().union(*(parameters_of(*base) for base in bases(path, node)))
    fields = {
        n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and "ClassVar" not in ast.unparse(n.annotation)
    }
    inherited = (parameters_of(*b) for b in bases(path, node) if any(b[1].decorator_list))
    return fields.union(*inherited)


def lines_of(path: Path, node: ast.ClassDef) -> set[str]:
    return set(documented(ast.get_docstring(node) or "")).union(*(lines_of(*base) for base in bases(path, node)))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: f"{e.kind}-{e.name}")
def test_every_parameter_has_a_line(entry):
    node = class_in(entry.path, class_name(entry.path))
    given = parameters_of(entry.path, node)
    assert given == {p.name for p in parameters(find(entry.kind, entry.name).target)}
    assert given <= lines_of(entry.path, node), (
        f"{entry.path}: {sorted(given - lines_of(entry.path, node))} lack a line"
    )


SHOW = """
import sys
from diorama.describe import describe
for name in sys.argv[1:]:
    text = "\\n".join(describe(name))
    assert "example" in text, name
heavy = [m for m in ("torch", "numba", "scipy.sparse", "cv2", "sklearn", "captum") if m in sys.modules]
assert not heavy, heavy
"""


def test_show_imports_nothing_heavy():
    names = [entry.name for entry in ENTRIES]
    done = subprocess.run([sys.executable, "-c", SHOW, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_show_is_quick():
    """Under 0.3 s where a loop takes 0.04 s: a busy or slow machine is slower at both."""
    show = "import time; from diorama.describe import describe; list(describe('candle')); shown = time.process_time()"
    loop = "sum(i * i for i in range(1_000_000)); print(0.04 * shown / (time.process_time() - shown))"
    command = [sys.executable, "-c", f"{show}; {loop}"]
    taken = [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3)]
    assert min(taken) < 0.3, taken


def test_show_prints_types_defaults_and_meanings(diorama):
    shown = diorama("show", "candle").stdout
    assert "confounding: 'none' | 'pairs' |" in shown and "lamp: float, at least 0, at most 1e+06 = 5000.0" in shown
    assert "power of the lamp in watts" in shown and "layouts: flat, candle" in shown
    shown = diorama("show", "csm").stdout
    assert "draws_s" in shown and "log_csm_r" in shown
    assert "metrics of a case: tcav" in diorama("show", "tcav").stdout  # although `concept` is not given


def examples() -> list[str]:
    found = [find(e.kind, e.name) for e in ENTRIES]
    texts = [c.target.example.replace("{}", c.name.rpartition("/")[2]) for c in found if _whole(c)]
    return sorted({text for text in texts if text.startswith("diorama run") and "…" not in text})


def _whole(component) -> bool:
    return all(p.default is not p.empty for p in parameters(component.target)) or "{}" not in component.target.example


@pytest.mark.parametrize("text", examples())
def test_examples_can_be_planned(text):
    pytest.importorskip("torch")
    from diorama.core.plan import Plan, expand

    words = shlex.split(text)[2:]
    options = {"-w": "worlds", "-M": "models", "-m": "methods", "-p": "protocols"}
    table = {}
    for flag, value in zip(words[::2], words[1::2], strict=True):
        table.setdefault(options[flag], []).append(value)
    try:
        expanded = expand(Plan.from_table({**table, "cases": 2}, "an example"))
    except InputError as error:
        if "there is no checkpoint" not in str(error):
            raise
        pytest.skip(f"weights that are not bundled: {error}")
    assert expanded.cells and not expanded.skipped


def test_every_layout_is_written_by_a_function():
    from diorama.layouts import ANY

    own = [find("world", entry.name).target.layouts for entry in ENTRIES if entry.kind == "world"]
    found = {name: place for table in (ANY, *own) for name, place in table.items()}
    assert {"flat", "dataset", "concepts", "funnybirds", "figures", "mit", "mosaic", "candle"} <= set(found)
    for place in found.values():
        module, _, function = place.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
