"""The targets: each takes hypothesis data and a fresh folder, tries one input and returns what broke the rule."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from diorama.core.errors import Excluded, InputError
from diorama.core.spec import parse
from tests.fuzz import inputs
from tests.fuzz.folders import READERS, Reader
from tests.fuzz.harness import LONGEST, diorama, forked

Target = Callable[[Any, Path], str]


def specs(data: Any, folder: Path) -> str:
    """Component specs, in this process: a Spec that reads back as itself, or one line."""
    text = data.draw(inputs.specs())
    try:
        found = parse(text)
    except InputError as error:
        return f"a message of over {LONGEST} characters for {text!r}" if len(str(error)) > LONGEST else ""
    except (ValueError, TypeError, RecursionError, MemoryError, LookupError) as error:
        return f"{type(error).__name__}: {error} for {text!r}"
    return "" if parse(str(found)) == found else f"{text!r} reads back as {parse(str(found))}"


#: Components that are quick, with a way to use them; `{}` is the spec.
USES = {
    "mondrian": ("render", "{}", "-n", "1", "-o", "out"),
    "sprites": ("render", "{}", "-n", "1", "-o", "out"),
    "concepts": ("show", "{}"),
    "test_scenes": ("show", "{}"),
    "random_scenes": ("show", "{}"),
    "baseline": ("run", "-w", "mondrian(size=20)", "-m", "{}", "-p", "lmse", "-n", "1", "-o", "out"),
    "retinex_gray": ("run", "-w", "mondrian(size=20)", "-m", "{}", "-p", "lmse", "-n", "1", "-o", "out"),
    "lmse": ("run", "-w", "mondrian(size=20)", "-m", "baseline", "-p", "{}", "-n", "1", "-o", "out"),
    "si_mse": ("run", "-w", "mondrian(size=20)", "-m", "baseline", "-p", "{}", "-n", "1", "-o", "out"),
}


def parameters(data: Any, folder: Path) -> str:
    """Hostile values for every parameter of some bundled components."""
    from diorama.core.catalogue import find, parameters

    name = data.draw(st.sampled_from(sorted(USES)))
    kind = {"render": "world", "show": "world"}.get(
        USES[name][0], "protocol" if "-p {}" in " ".join(USES[name]) else "method"
    )
    known = [p.name for p in parameters(find(kind, name).target, kind)]
    chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True)) if known else []
    spec = f"{name}({', '.join(f'{key}={data.draw(inputs.words)}' for key in chosen)})"
    return _tried([word.format(spec) if word == "{}" else word for word in USES[name]], folder)


def plans(data: Any, folder: Path) -> str:
    """Plans: TOML with hostile values, and damaged bytes of a good plan."""
    good = (
        b'worlds = ["mondrian(size=20)"]\nmethods = ["baseline"]\nprotocols = ["lmse"]\ncases = 1\ncontrols = false\n'
    )
    lines = st.tuples(
        st.one_of(st.sampled_from(("worlds", "methods", "protocols", "models", "cases", "seed")), inputs.names),
        inputs.words,
    )
    written = st.lists(lines.map(lambda t: f"{t[0]} = {t[1]}\n"), max_size=4).map(
        lambda parts: "".join(parts).encode("utf-8", "surrogatepass")
    )
    (folder / "plan.toml").write_bytes(
        data.draw(st.one_of(inputs.damaged(good), written, written.map(lambda w: w + good)))
    )
    return _tried(["run", "plan.toml", "-o", "out", "-n", "1"], folder)


_OPTIONS = {
    "ls": ["worlds", "models", "methods", "protocols"],
    "show": ["mondrian", "baseline", "lmse", "retinex_gray(threshold=1e999)", "./no.py:X", "os:path", "builtins:print"],
    "render": ["mondrian(size=20)", "-n", "2", "-o", "out", "--do", "light=1", "--seed", "0", "--layout", "flat", "-M"],
    "run": ["-w", "mondrian(size=20)", "-m", "baseline", "-p", "lmse", "-n", "1", "-o", "out", "--on", "local",
            "--seed", "3", "--require", "lmse<=0.5", "--json", "--device", "cpu"],
    "work": ["out", "--shard", "0/2"],
    "report": ["out", "-o", "r.md", "--format", "md", "csv", "json"],
    "compare": ["a", "b", "--between", "baseline", "--json"],
}  # fmt: skip


def options(data: Any, folder: Path) -> str:
    """Command lines: options and values of every command, some left out, some swapped for hostile words."""
    command = data.draw(st.sampled_from(sorted(_OPTIONS)))
    args = []
    for word in _OPTIONS[command]:
        how = data.draw(st.sampled_from(("keep", "keep", "keep", "keep", "drop", "swap")))
        args += [] if how == "drop" else [data.draw(inputs.words) if how == "swap" else word]
    clean = [a.replace("\0", "") for a in args]  # no shell can pass it
    if command == "run" and not {"-n"} <= set(clean):
        clean += ["-n", "1"]  # hostile, not long
    return _tried([command, *clean], folder)


def _tried(args: list[str], folder: Path) -> str:
    said = diorama(args, folder).violation()
    return f"{said}\n    diorama {' '.join(repr(a[:300]) for a in args)}" if said else ""


# Run directories


def finished_run(folder: Path) -> Path:
    """A small finished run in `folder/run`, and its table in `folder/table.json`."""
    args = ["run", "-w", "mondrian(size=20)", "-m", "baseline", "-m", "retinex_gray", "-p", "lmse", "-n", "3"]
    ended = diorama([*args, "-o", "run"], folder)
    assert ended.code == 0, ended
    (folder / "table.json").write_text(_table(folder))
    return folder


def _table(folder: Path) -> str:
    ended = diorama(["report", "run", "--format", "json"], folder)
    return ended.out if ended.code == 0 else ""


_READ = (
    ["report", "run", "--format", "text"],
    ["report", "run", "-o", "page.html"],
    ["report", "run", "--format", "csv"],
    ["compare", "run", "good"],
    ["compare", "run", "--between", "baseline", "retinex_gray"],
)
_WRITE = (
    ["run", "run/plan.toml", "-o", "run"],
    ["run", "-w", "mondrian(size=20)", "-m", "baseline", "-m", "retinex_gray", "-p", "lmse", "-n", "3", "-o", "run"],
    ["work", "run", "--shard", "0/1"],
)


def runs(good: Path) -> Target:
    """A damaged file of a finished run: reading changes nothing, running again brings the table back."""

    def target(data: Any, folder: Path) -> str:
        for name in ("run", "good"):
            shutil.copytree(good / "run", folder / name, symlinks=True)
        what = damage(data, folder / "run")
        args = data.draw(st.sampled_from(_READ + _WRITE))
        before = _contents(folder / "run")
        ended = diorama(args, folder)
        said = ended.violation()
        if not said and args in _READ and _contents(folder / "run") != before:
            said = "reading changed the run directory"
        if (
            not said
            and args[0] == "run"
            and ended.code == 0
            and _numbers(_table(folder)) != _numbers((good / "table.json").read_text())
        ):
            said = "running again ended well with other numbers"
        return f"{said}\n    {what}; diorama {' '.join(args)}" if said else ""

    return target


def _numbers(table: str) -> list[Any]:
    cells = json.loads(table)["cells"] if table else []
    return sorted((c["method"], json.dumps(c["summary"], sort_keys=True)) for c in cells)


def _contents(folder: Path) -> dict[str, str]:
    """Every file but what a report writes there."""
    files = [p for p in folder.rglob("*") if p.is_file() and p.suffix != ".html" and not p.is_symlink()]
    return {str(p.relative_to(folder)): hashlib.blake2b(p.read_bytes()).hexdigest() for p in files}


# Data


def reader(of: Reader, good: Path) -> Target:
    """A damaged file of a small data set."""

    def target(data: Any, folder: Path) -> str:
        shutil.copytree(good, folder / "d")
        what = damage(data, folder / "d")
        if of.read is not None:
            return _called(of.read, folder, what)
        said = _tried(list(data.draw(st.sampled_from(of.commands))), folder)
        return f"{said}; {what}" if said else ""

    return target


def _called(read: Callable[[Path], object], folder: Path, what: str) -> str:
    """A reader that is no command: an InputError, Excluded, or a mesh's ValueError is its one line."""

    def call() -> int:
        try:
            read(folder / "d")
        except (InputError, Excluded, ValueError) as error:
            print(f"diorama: {error}", file=sys.stderr)
            return 2
        return 0

    said = forked(call, folder).violation()
    return f"{said}\n    {what}" if said else ""


def damage(data: Any, folder: Path) -> str:
    """Do something to one file of a folder; says what."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    path = data.draw(st.sampled_from(files))
    how = data.draw(st.sampled_from(("bytes",) * 8 + ("gone", "pipe", "device", "folder", "name", "loop")))
    shown = f"{how} of {path.relative_to(folder)}"
    if how == "bytes":
        changed = data.draw(inputs.damaged(path.read_bytes()))
        path.write_bytes(changed)
        return f"{shown} ({len(changed)} bytes, {hashlib.blake2b(changed, digest_size=4).hexdigest()})"
    if how == "name":
        os.rename(path, os.fsencode(path.parent) + b"/caf\xe9" + os.fsencode(path.suffix))
        return shown
    path.unlink()
    if how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how != "gone":
        path.symlink_to("/dev/zero" if how == "device" else path)
    return shown


def all_targets(base: Path) -> dict[str, Target]:
    """Every target by name; `base` keeps the good folders that are damaged in copies."""
    found: dict[str, Target] = {"specs": specs, "parameters": parameters, "plans": plans, "options": options}
    (base / "run").mkdir()
    found["runs"] = runs(finished_run(base / "run"))
    for name, of in READERS.items():
        of.write(base / name)
        found[f"reader {name}"] = reader(of, base / name)
    return found
