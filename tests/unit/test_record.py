"""Reading results: it builds and imports nothing; what a protocol makes of all rows is recorded beside them."""

import csv
import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from diorama.api import run
from diorama.core.plan import Plan
from diorama.core.record import NAME
from diorama.report.compare import compare
from diorama.report.summary import document, read_results
from diorama.report.write import write_report

MINE = '''
from dataclasses import dataclass
from diorama.core.contracts import Case, Score
from diorama.core.summary import Condensed, Summary

@dataclass(frozen=True)
class Judge:
    """Scores by index; of all cases together the largest score."""
    cite, version, direction, range, track, needs = (), 1, "higher", (0.0, 9.0), "decompose", ()
    metrics, derived = ("score",), ("largest",)
    def case(self, world, seed, index):
        return Case(f"case{index}", {"index": index})
    def score(self, bench, case):
        yield Score("score", [1.0 * case.payload["index"], 2.0], "own")
    def oracle(self, bench, scene, target):
        raise NotImplementedError
    def summarise(self, rows):
        from dataclasses import replace
        first = [replace(r, value=r.value[0], at="") for r in rows]
        top = max(r.value for r in first)
        return Condensed(first, {}, {"largest": Summary(top, None, None, len(rows), 0, 0, 0)}, {})
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    run(["mondrian(size=24)"], ["constant"], [f"{tmp_path}/mine.py:Judge"], cases=3, out=tmp_path / "run")
    return tmp_path / "run"


def cell_of(folder: Path) -> Path:
    (found,) = folder.glob("cells/*/*/manifest.json")
    return found.parent


def test_metrics_of_a_whole_cell_are_read_where_their_run_wrote_them(folder: Path) -> None:
    (folder.parent / "mine.py").unlink()  # nobody can ask the protocol any more
    (cell,) = document(read_results(folder))["cells"]
    assert cell["summary"]["largest"]["mean"] == 2.0
    assert cell["summary"]["score"]["mean"] == 1.0
    assert [row.value for row in read_results(folder).cells[0].of("score")] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("damage", ["absent", "of other rows", "no JSON", "edited"])
def test_a_record_that_does_not_fit_is_not_believed(folder: Path, damage: str) -> None:
    path = cell_of(folder) / NAME
    known = json.loads(path.read_text())
    if damage == "absent":
        path.unlink()
    else:
        other = {**known, "rows": "0" * 32} if damage == "of other rows" else {**known, "summary": {"largest": 3}}
        path.write_text("{" if damage == "no JSON" else json.dumps(other))
    (cell,) = document(read_results(folder))["cells"]
    assert "largest" not in cell["summary"]
    text = write_report([folder], None, "text")
    assert "largest of 1 cell is not summarised yet; run the same command again" in str(text)
    run(["mondrian(size=24)"], ["constant"], [f"{folder.parent}/mine.py:Judge"], cases=3, out=folder)
    (cell,) = document(read_results(folder))["cells"]
    assert cell["summary"]["largest"]["mean"] == 2.0


def test_reading_results_runs_nothing_that_a_run_directory_names(folder: Path, tmp_path: Path) -> None:
    touched, path = tmp_path / "touched", cell_of(folder) / "manifest.json"
    said = json.loads(path.read_text()) | {"protocol": f"subprocess:Popen(args=['touch', '{touched}'])"}
    path.write_text(json.dumps(said))
    (path.parent / NAME).unlink()  # a reader would like to know the metrics of the whole cell
    for form in ("html", "text", "md", "tex", "csv", "json"):
        write_report([folder], tmp_path / f"out.{form}", form)
    compare(read_results(folder), read_results(folder))
    from diorama.gates import failed_gates, parse_gate

    assert failed_gates([parse_gate("largest>=1")], document(read_results(folder)))
    assert not touched.exists()


def test_reading_results_imports_no_component(folder: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from diorama.report.write import write_report
from diorama.report.compare import compare, text
from diorama.report.summary import read_results
from diorama.gates import failed_gates
for form in ("html", "text", "csv", "json"):
    write_report([Path({str(folder)!r})], Path({str(folder)!r}, "out." + form), form)
text(compare(read_results(Path({str(folder)!r})), read_results(Path({str(folder)!r}))))
parts = ("worlds", "methods", "models", "protocols", "render", "launch", "core.catalogue", "core.plan", "core.bench")
print([m for m in sys.modules if m.startswith(tuple("diorama." + p for p in parts)) or m in ("torch", "numba", "mine")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_gate_on_a_metric_that_no_cell_has_is_not_met() -> None:
    from diorama.gates import failed_gates, parse_gate

    assert failed_gates([parse_gate("mx>=0.1")], {"cells": []}) == ["'mx>=0.1', but no cell has it"]


def test_a_report_is_written_through_what_is_no_regular_file(folder: Path, tmp_path: Path) -> None:
    target, link, pipe = tmp_path / "target.md", tmp_path / "link.md", tmp_path / "pipe"
    link.symlink_to(target)
    write_report([folder], link, "md")
    assert link.is_symlink() and "Judge" in target.read_text()
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_report([folder], pipe, "md")
    reader.join(10)
    assert pipe.is_fifo() and read == [target.read_text()]
    before = os.stat("/dev/null")
    write_report([folder], Path("/dev/null"), "html")
    assert os.stat("/dev/null").st_rdev == before.st_rdev


def test_texts_of_the_table_are_no_formulas(folder: Path) -> None:
    path = cell_of(folder) / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"method": "=HYPERLINK(1)", "world": "-1+2"}))
    (first, *_) = csv.DictReader(io.StringIO(str(write_report([folder], None, "csv"))))
    assert (first["method"], first["world"]) == ("'=HYPERLINK(1)", "'-1+2")
    assert float(first["value"]) == 0.0


def test_a_run_says_first_which_files_it_imports(folder: Path, tmp_path: Path) -> None:
    plan = folder / "plan.toml"
    command = [sys.executable, "-m", "diorama", "run", str(plan), "-o", str(tmp_path / "again")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[0] == f"imports {tmp_path / 'mine.py'}"


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ("subprocess:Popen(args=['touch', 'x'])", ["subprocess"]),
        ("mosaic(source='./a b/mine.py:World(k=2)')", ["b/mine.py"]),
        ("birds(root=/data/x)", []),
    ],
)
def test_code_is_found_anywhere_in_a_plan(spec: str, named: list[str]) -> None:
    found = Plan(["mondrian", spec], ["baseline"], ["lmse"]).imports()
    assert [name.removeprefix(f"{Path.cwd()}/") for name in found] == named


def test_compare_says_so_and_fails_when_nothing_was_compared(folder: Path) -> None:
    path = cell_of(folder) / "manifest.json"
    other = json.loads(path.read_text()) | {"control": "dose", "points": [{"dose": 0.0}]}
    path.write_text(json.dumps(other))
    command = [sys.executable, "-m", "diorama", "compare", str(folder), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "diorama: nothing was compared: a dose curve has no single value per case\n"
