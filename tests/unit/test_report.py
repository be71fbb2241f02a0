"""Reports of small runs written by hand: every format, failures, gaps, verdicts, size, escaping, comparison."""

import csv
import io
import json
import re
import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diorama.core.errors import InputError
from diorama.core.rows import Row
from diorama.core.summary import Settled
from diorama.io.images import encode_webp
from diorama.io.row_files import write_part
from diorama.report.compare import compare
from diorama.report.compare import text as compare_text
from diorama.report.figures import Axis, dose_figure, kept_apart, methods_figure, shorten, tick_label
from diorama.report.gallery import webp_size
from diorama.report.html import LIMIT, html
from diorama.report.notes import failures
from diorama.report.paired import paired, sign_flip
from diorama.report.sections import name_runs, sections
from diorama.report.summary import read_results
from diorama.report.tables import fit, tables
from diorama.report.verdicts import verdicts
from diorama.report.write import write_report

CASES = ["ant", "bee", "cat", "dog"]
DOSES = [0.0, 0.5, 1.0]
RISING = [[0.0, 0.1, 0.3], [0.0, 0.12, 0.33], [0.01, 0.11, 0.31], [0.0, 0.13, 0.35]]
Value = float | list[float] | tuple[str, str] | None


@dataclass
class Given:
    """A cell: its labels, and per case a value, a (status, reason) or nothing yet."""

    method: str
    values: list[Value]
    control: str = ""
    points: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    world: str = "toy(root=/data/deep/toy)"
    direction: str = "lower"
    note: str = ""
    published: float | None = None
    started: bool = True


def manifest(cell: Given, key: str) -> dict[str, Any]:
    return {
        "world": cell.world, "model": None, "method": cell.method, "protocol": "score", "variant": "published",
        "key": key, "control": cell.control, "metrics": ["err", "err_part", "truth_residual"],
        "direction": cell.direction, "range": [0.0, 1.0],
        "cite": ["Doe, Roe: On toys. ICCV, 2009"], "bibtex": ["@misc{doe2009,}"],
        "published": cell.published, "at": ",".join(cell.points[0]), "points": cell.points,
        "dose_name": "share of noise",
        "depends_on": {"seed": 7, "world": {"target": "toy:Toy", "params": {}, "data": "d", "libraries": {"numpy": "2.4"}}},
    }  # fmt: skip


def rows_of(cell: Given, key: str, case: str, value: Value) -> list[Row]:
    if isinstance(value, tuple):
        status, reason = value
        return [Row(key, case, m, None, status, reason, "", 0.5) for m in ("err", "err_part", "truth_residual")]  # type: ignore[arg-type]
    at = ",".join(cell.points[0])
    both = [Row(key, case, m, value, "ok", cell.note, at, 0.5) for m in ("err", "err_part")]
    return [*both, Row(key, case, "truth_residual", 0.05, "ok", cell.note, "", 0.5)]


def make_run(folder: Path, given: list[Given], skipped: list[dict[str, Any]] | None = None) -> Path:
    folder.mkdir(parents=True)
    listed = []
    for i, cell in enumerate(given):
        key = f"{i:02d}" + "e" * 30
        listed.append({"key": key, "cases": CASES[: len(cell.values)]})
        if not cell.started:
            continue
        place = folder / "cells" / key[:2] / key
        place.mkdir(parents=True)
        (place / "manifest.json").write_text(json.dumps(manifest(cell, key)))
        rows = [r for c, v in zip(CASES, cell.values, strict=False) if v is not None for r in rows_of(cell, key, c, v)]
        write_part(place, key, dict(enumerate([rows])), pytest.fail)
    (folder / "cells.json").write_text(json.dumps({"cells": listed, "skipped": skipped or []}))
    (folder / "run.json").write_text(json.dumps({"schema": 2, "diorama": "0.1.0", "python": "3.11", "system": "Linux"}))
    (folder / "plan.toml").write_text('worlds = ["toy"]\nmethods = ["good"]\n')
    return folder


def controls(curve: list[list[float]]) -> list[Given]:
    doses = [{"dose": d} for d in DOSES]
    return [
        Given("oracle", [0.0, 0.0, 0.01, 0.0], "oracle"),
        Given("track/random", [0.6, 0.7, 0.65, 0.62], "random"),
        Given("dose", list(curve), "dose", doses),
    ]


GOOD = Given("good", [0.1, 0.12, 0.11, 0.13], published=0.11)
POOR = Given("poor", [0.3, 0.32, 0.41, 0.33])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", [POOR, GOOD, *controls(RISING)])


def only_section(folder: Path) -> Any:
    (section,) = sections({"": read_results(folder)})
    return section


def as_text(folder: Path, kind: str) -> str:
    found = write_report([folder], None, kind)
    assert isinstance(found, str)
    return found


def test_text_pins_controls_and_sorts_methods(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    found = as_text(run, "text")
    names = [line.split("  ")[0] for line in found.splitlines() if re.search(r"\d/\d/\d/\d", line)]
    assert names == ["oracle (control)", "good", "poor", "random (control)"]
    assert "toy(root=…/toy) · score (published) · err ↓" in found
    assert "0.1150" in found
    assert "truth_residual 0.0500 [0.0500, 0.0500]" in found
    assert "nan" not in found.lower()


def test_narrow_text_leaves_columns_out_and_says_so(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    found = as_text(run, "text")
    lines = [line for line in found.splitlines() if re.search(r"\d/\d/\d/\d", line)]
    assert lines
    assert max(map(len, lines)) <= 70
    assert "not shown for lack of width: " in found


def test_a_column_is_never_dropped_to_nothing(run: Path) -> None:
    (whole,) = tables({"": read_results(run)})
    assert [c.head for c in fit(whole, 5).columns] == ["method", "err ↓", "95 % interval", "ok/undef/excl/err"]


def test_markdown_and_tex(run: Path) -> None:
    lines = as_text(run, "md").splitlines()
    assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
    assert any(line.startswith("| *oracle (control)* |") for line in lines)
    tex = as_text(run, "tex")
    assert r"\toprule" in tex
    assert r"err\_part" in tex
    assert tex.count(r"\midrule") == 3


def test_csv_has_one_line_per_case_and_metric_and_dose(run: Path) -> None:
    found = list(csv.DictReader(io.StringIO(as_text(run, "csv"))))
    mine = [r for r in found if r["method"] == "good"]
    assert len(mine) == 4 * 3
    assert mine[0]["case"] == "ant"
    assert float(mine[0]["value"]) == 0.1
    doses = [r for r in found if r["control"] == "dose" and r["metric"] == "err" and r["case"] == "bee"]
    assert [(r["point"], float(r["value"])) for r in doses] == [
        ("dose=0.0", 0.0),
        ("dose=0.5", 0.12),
        ("dose=1.0", 0.33),
    ]


def test_json_of_one_and_of_several_runs(run: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "b" / "run", [GOOD])
    one = json.loads(as_text(run, "json"))
    assert one["schema"] == 1
    assert "run" not in one["cells"][0]
    two = json.loads(str(write_report([run, other, run], None, "json")))
    assert len(two["cells"]) == len(one["cells"]) + 1
    assert [c["run"] for c in two["cells"]][-1] == "b/run"


def test_parquet(run: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = write_report([run], None, "parquet")
    assert path == run / "report.parquet"
    found = pq.read_table(path)
    assert found.num_rows == len(as_text(run, "csv").splitlines()) - 1
    assert found["value"][0].as_py() == 0.3


def test_parquet_without_pyarrow_names_the_extra(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'diorama\[parquet\]'"):
        write_report([run], None, "parquet")


def test_chosen_point_is_shown_and_used(tmp_path: Path) -> None:
    tuned = Given("tuned", [[0.5, 0.1], [0.4, 0.2], [0.6, 0.3]], points=[{"t": 0.25}, {"t": 4.0}])
    folder = make_run(tmp_path / "r", [tuned])
    assert "t=4" in as_text(folder, "md")
    assert "0.2000" in as_text(folder, "md")
    found = list(csv.DictReader(io.StringIO(as_text(folder, "csv"))))
    assert found[0]["point"] == "t=4.0"


def test_failures_and_notes_become_footnotes(tmp_path: Path) -> None:
    bad = Given("bad", [("error", "boom: no\nmemory"), ("error", "boom: no\nmemory"), ("undefined", "too small"), 0.2])
    dead = Given("dead", [("excluded", "not a toy")] * 4)
    noted = Given("noted", [0.1, 0.2, 0.3, 0.4], note="clipped to 1")
    folder = make_run(tmp_path / "r", [bad, dead, noted])
    found = as_text(folder, "md")
    assert "1/1/0/2" in found
    assert "bad: 2 cases error: boom: no memory (ant, bee)" in found
    assert "bad: 1 case undefined: too small (cat)" in found
    assert "dead: 4 cases excluded: not a toy" in found
    assert "noted (note on 4 cases): clipped to 1" in found
    assert re.search(r"\| dead \| – \|", found)
    page = html({"": read_results(folder)})
    assert "2 failed, 1 undefined and 4 excluded by the protocol" in page
    assert "too small" in page


def test_incomplete_run_says_what_is_missing(tmp_path: Path) -> None:
    partly = Given("partly", [0.1, None, 0.3, 0.2])
    folder = make_run(tmp_path / "r", [partly, Given("later", [0.1, 0.2], started=False)])
    said = "incomplete: 3 of 6 cases are missing; run the same command again"
    for kind in ("text", "md", "tex"):
        assert said in as_text(folder, kind)
    assert "(1 missing)" in as_text(folder, "text")
    page = html({"": read_results(folder)})
    assert said[1:] in page


def test_run_without_any_row_can_be_reported(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "r", [Given("later", [0.1, 0.2], started=False)])
    for kind in ("text", "md", "tex", "csv", "json"):
        as_text(folder, kind)
    path = write_report([folder], None, "html")
    assert "No case has been computed yet" in Path(path).read_text()


def test_single_case_has_no_interval(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "r", [Given("one", [0.4]), Given("oracle", [0.0], "oracle"),
                                       Given("dose", [[0.0, 0.1, 0.2]], "dose", [{"dose": d} for d in DOSES])])  # fmt: skip
    assert "0.4000" in as_text(folder, "text")
    assert "[" not in as_text(folder, "text").splitlines()[4]
    assert "no intervals" in html({"": read_results(folder)})


def holding(folder: Path) -> dict[str, str]:
    return {v.control: v.holds for v in verdicts(only_section(folder))}


def said(folder: Path) -> str:
    return " ".join(v.text for v in verdicts(only_section(folder)))


def test_verdicts_hold(run: Path) -> None:
    assert holding(run) == {"oracle": "holds", "random": "holds", "dose": "holds", "sensitivity": "holds"}
    assert "told apart from 0 is 0.5 (share of noise)" in said(run)


def test_verdict_names_the_dose_that_is_not_monotone(tmp_path: Path) -> None:
    folder = make_run(
        tmp_path / "r", [GOOD, *controls([[0.0, 0.4, 0.3], [0.0, 0.5, 0.35], [0.0, 0.4, 0.3], [0.1, 0.4, 0.2]])]
    )
    assert holding(folder)["dose"] == "fails"
    assert "a larger error scores better at dose 1 (0.4250 → 0.2875)" in said(folder)
    assert "Not monotone" in as_text(folder, "text")


def test_verdict_of_a_blind_metric(tmp_path: Path) -> None:
    flat = [[0.1, 0.1, 0.1], [0.3, 0.3, 0.3], [0.2, 0.2, 0.2], [0.4, 0.4, 0.4]]
    folder = make_run(tmp_path / "r", [GOOD, *controls(flat)])
    assert holding(folder)["sensitivity"] == "fails"
    assert "cannot tell a small error from none" in said(folder)
    assert "does not move at dose 0.5 and 1" in said(folder)


def test_verdict_of_methods_at_chance_or_above_the_oracle(tmp_path: Path) -> None:
    blind = Given("blind", [0.7, 0.6, 0.6, 0.7])
    cheat = Given("cheat", [-0.1, -0.1, -0.1, -0.1])
    folder = make_run(tmp_path / "r", [GOOD, blind, cheat, *controls(RISING)])
    assert holding(folder)["random"] == holding(folder)["oracle"] == "fails"
    assert "Not reliably better than chance: blind (0.6500" in said(folder)
    assert "cheat (−0.1000) scores better than the truth" in said(folder)


def test_verdicts_where_higher_is_better(tmp_path: Path) -> None:
    falling = [[1 - v for v in row] for row in RISING]
    cells = [
        Given("a", [0.9, 0.8, 0.9, 0.8]), Given("b", [0.95, 0.9, 0.9, 0.9]), Given("oracle", [1.0] * 4, "oracle"),
        Given("random", [0.1, 0.2, 0.1, 0.2], "random"), Given("dose", list(falling), "dose", [{"dose": d} for d in DOSES]),
    ]  # fmt: skip
    for cell in cells:
        cell.direction = "higher"
    folder = make_run(tmp_path / "r", cells)
    assert set(holding(folder).values()) == {"holds"}
    assert [line.name for line in only_section(folder).lines] == ["oracle", "b", "a", "random"]
    assert "↑" in as_text(folder, "text")


def test_no_controls_is_said(tmp_path: Path) -> None:
    assert "No controls were run" in said(make_run(tmp_path / "r", [GOOD]))


class Reader(HTMLParser):
    """Collects tags and checks that they are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "wbr", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_html_is_self_contained_and_well_formed(run: Path) -> None:
    path = write_report([run], None, "html")
    assert path == run / "report.html"
    page = Path(path).read_text(encoding="utf-8")
    reader = parsed(page)
    for _, attributes in reader.seen:
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:"))
    assert "default-src 'none'" in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert [tag for tag, _ in reader.seen].count("svg") == 2
    assert "Best is good with a mean err of 0.1150" in page
    assert "All controls hold" in page
    assert "@misc{doe2009," in page
    assert "diorama run plan.toml" in page


def test_same_run_gives_the_same_page(run: Path) -> None:
    assert html({"": read_results(run)}) == html({"": read_results(run)})


def test_the_script_is_short() -> None:
    import diorama.report

    script = Path(diorama.report.__file__).parent / "templates" / "report.js"
    assert len(script.read_text().splitlines()) < 300


NASTY = "<script>alert(1)</script>&\"'|_$\x1b[31m"


def test_what_users_name_is_escaped(tmp_path: Path) -> None:
    evil = Given(NASTY, [0.1, 0.2, ("error", NASTY), 0.3], note=NASTY, world=f"w({NASTY})")
    skipped = [{"world": NASTY, "model": None, "method": "m", "protocol": "p", "reason": NASTY}]
    folder = make_run(tmp_path / "r", [evil, Given("dose", list(RISING), "dose", [{"dose": d} for d in DOSES],
                                                   world=evil.world)], skipped)  # fmt: skip
    (folder / "plan.toml").write_text(NASTY)
    picture(folder, "00", "ant", [NASTY] * 2)
    page = html({NASTY: read_results(folder)})
    assert [tag for tag, _ in parsed(page).seen].count("script") == 1
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    for kind in ("text", "md", "tex"):
        assert "\x1b" not in as_text(folder, kind)
    assert "<script>" not in as_text(folder, "md")
    assert r"\$" in as_text(folder, "tex")


def picture(folder: Path, cell: str, case: str, captions: list[str], side: int = 24, point: int = 0) -> None:
    place = folder / "cells" / cell / (cell + "e" * 30) / "keep"
    place.mkdir(exist_ok=True)
    noise = np.random.default_rng(0).integers(0, 255, (side, side * len(captions), 3), np.uint8)
    (place / f"{case}@{point}.webp").write_bytes(encode_webp(noise, 90))
    said = {"case": case, "point": {"t": 0.5}, "captions": captions}
    (place / f"{case}@{point}.json").write_text(json.dumps(said))


def test_gallery_shows_worst_first_with_captions(run: Path) -> None:
    for case in CASES:
        picture(run, "01", case, ["image", "error"])
    picture(run, "01", "ant", ["stale"], point=3)
    seen = parsed(html({"": read_results(run)})).seen
    shown = [a["id"] for tag, a in seen if tag == "article"]
    assert shown == [f"s1-{case}" for case in ("cat", "dog", "bee", "ant")]  # by the mean over both methods
    panels = [a["aria-label"] for tag, a in seen if tag == "svg" and a.get("aria-label")]
    assert panels[:2] == ["good on cat: image", "good on cat: error"] and len(panels) == 8
    (first, *_) = [a for tag, a in seen if tag == "image"]
    assert (first["width"], first["height"]) == ("48", "24")


def test_damaged_pictures_are_left_aside(run: Path) -> None:
    picture(run, "01", "ant", ["image"])
    place = run / "cells" / "01" / ("01" + "e" * 30) / "keep"
    (place / "ant@0.webp").write_bytes(b"no picture")
    assert "<image" not in html({"": read_results(run)})


def test_page_stays_below_its_limit_and_says_what_is_left_out(run: Path) -> None:
    for cell in ("00", "01"):
        for case in CASES:
            picture(run, cell, case, ["image"] * 4, side=200)
    results = {"": read_results(run)}
    whole = len(html(results).encode())
    assert whole < LIMIT
    limit = whole - 250_000
    page = html(results, limit)
    assert len(page.encode()) <= limit
    shown = page.count("<image ")
    assert 2 <= shown < 8
    assert f"{8 - shown} more picture" in page
    assert "good on cat" in page and "poor on cat" in page  # the hardest case is shown for both methods


def test_a_tight_limit_costs_the_tables_of_cases_and_then_the_figures(run: Path) -> None:
    results = {"": read_results(run)}
    whole = len(html(results).encode())
    without_cases = html(results, 2 * whole - 2)
    assert 'class="heat' not in without_cases
    assert "The tables of every case were left out" in without_cases
    assert "<svg" in without_cases
    bare = html(results, 1000)
    assert "<svg" not in bare
    assert "poor" in bare
    parsed(bare)


def test_several_runs_are_labelled(run: Path, tmp_path: Path) -> None:
    other = make_run(
        tmp_path / "second", [GOOD], [{"world": "w", "model": None, "method": "m", "protocol": "p", "reason": "no"}]
    )
    found = str(write_report([run, other], None, "md"))
    assert "| run | method |" in found
    assert "skipped w × m × p: no" in found
    page = html(name_runs([read_results(run), read_results(other)]))
    parsed(page)
    assert "second · toy(root=…/toy) · score (published)" in page


def test_errors_of_the_caller_are_one_line(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'html'"):
        write_report([run], None, "htlm")
    for bad in (tmp_path, tmp_path / "none" / "report.html"):
        with pytest.raises(InputError, match=f"cannot write {re.escape(str(bad))}: ") as error:
            write_report([run], bad, "html")
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="is not a run directory"):
        write_report([tmp_path / "none"], None, "text")
    with pytest.raises(InputError, match="no run was named"):
        write_report([], None, "text")
    assert sorted(p.name for p in run.iterdir()) == ["cells", "cells.json", "plan.toml", "run.json"]


def test_text_goes_to_a_file_where_one_is_named(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "table.md"
    assert write_report([run], out, "md") == out
    assert out.read_text(encoding="utf-8") == as_text(run, "md")


def test_paired_by_hand() -> None:
    a = {"x": 1.0, "y": 2.0, "z": 3.0, "only": 0.0}
    b = {"x": 0.5, "y": 2.5, "z": 1.0}
    found = paired(a, b, "lower")
    assert found.mean == pytest.approx((-0.5 + 0.5 - 2.0) / 3)
    assert (found.better, found.worse, found.equal, found.only_a, found.only_b) == (2, 1, 0, 1, 0)
    assert found.p_sign_flip == pytest.approx(
        6 / 8
    )  # of ±0.5 ±0.5 ±2, only |±1| is nearer to 0 than |−2|: two of eight
    assert paired(a, b, "higher").better == 1


def test_sign_flip_agrees_with_scipy_and_with_its_sample() -> None:
    from scipy.stats import permutation_test

    gaps = np.random.default_rng(1).normal(0.4, 1, 10)
    exact = permutation_test((gaps,), np.mean, permutation_type="samples", n_resamples=2**11).pvalue
    assert sign_flip(gaps) == pytest.approx(exact)
    many = np.random.default_rng(2).normal(0.25, 1, 40)
    assert sign_flip(many) == pytest.approx(sampled_p(many), abs=0.02)
    assert sign_flip(np.zeros(3)) == 1.0
    assert sign_flip(np.array([])) is None


def sampled_p(gaps: np.ndarray) -> float:
    signs = np.random.default_rng(3).choice([-1.0, 1.0], (50_000, len(gaps)))
    return float((np.abs(signs @ gaps) >= abs(gaps.sum())).mean())


def test_compare_two_runs(run: Path, tmp_path: Path) -> None:
    better = Given("good", [0.05, 0.07, 0.11, 0.14], world="toy(root=/elsewhere/toy)")
    b = make_run(tmp_path / "b", [better, Given("new", [0.1], world="toy(root=/elsewhere/toy)")])
    found = compare(read_results(run), read_results(b))
    (paired_cell,) = [f for f in found if not f["reason"]]
    assert paired_cell["method"] == "good"
    assert paired_cell["mean"] == pytest.approx((-0.05 - 0.05 + 0.0 + 0.01) / 4)
    assert (paired_cell["better"], paired_cell["worse"], paired_cell["equal"]) == (2, 1, 1)
    assert {f["method"]: f["reason"] for f in found if f["reason"]}["new"] == "only in b"
    said = compare_text(found, "old", "mine")
    assert "−0.0225" in said
    assert "2/1/1" in said
    assert "not compared: toy(root=…/toy) × poor × score: only in a" in said


def test_compare_two_methods_of_one_run(run: Path) -> None:
    results = read_results(run)
    (found,) = compare(results, results, ("good", "poor"))
    assert found["method"] == "good → poor"
    assert found["mean"] == pytest.approx(0.225)
    assert found["worse"] == 4
    assert found["p_sign_flip"] == pytest.approx(2 / 16)
    assert found["p"] <= 0.05 and found["lo"] > 0
    with pytest.raises(InputError, match="did you mean 'good'"):
        compare(results, results, ("god", "poor"))


def test_compare_where_nothing_is_shared(run: Path, tmp_path: Path) -> None:
    other = make_run(
        tmp_path / "b", [Given("good", [("error", "x")] * 4), Given("dose", list(RISING), "dose", [{"dose": 1}])]
    )
    found = compare(read_results(run), read_results(other))
    reasons = {f["method"]: f["reason"] for f in found}
    assert reasons["good"] == "no case has a value in both"
    assert reasons["dose"] == "a dose curve has no single value per case"
    assert "nothing can be compared" in compare_text(found)


def test_labels_in_figures_do_not_overlap(tmp_path: Path) -> None:
    many = [Given(f"m{i}", [0.2 + i * 1e-4] * 4) for i in range(9)]
    svg = dose_figure(only_section(make_run(tmp_path / "r", [*many, *controls(RISING)])))
    heights = sorted(float(y) for y in re.findall(r'y="([\d.]+)" class="label', svg))
    assert len(heights) == 9
    assert min(np.diff(heights)) >= 16.9


def test_spread_keeps_order_and_bounds() -> None:
    placed = kept_apart([5.0, 4.0, 99.0, 98.0], 10, 0, 100)
    assert sorted(range(4), key=lambda i: placed[i]) == [1, 0, 3, 2]
    assert min(placed) >= 0
    assert max(placed) <= 100
    assert min(np.diff(sorted(placed))) >= 10


def test_figures_of_constant_scores(tmp_path: Path) -> None:
    section = only_section(make_run(tmp_path / "r", [Given("same", [0.0] * 4), *controls([[0.0] * 3] * 4)]))
    assert "<svg" in methods_figure(section)
    assert "nan" not in dose_figure(section)


def test_webp_size_of_every_kind() -> None:
    import cv2

    image = np.zeros((7, 11, 3), np.uint8)
    assert webp_size(encode_webp(image)[:30]) == (11, 7)
    lossless = cv2.imencode(".webp", image, [cv2.IMWRITE_WEBP_QUALITY, 101])[1].tobytes()
    assert webp_size(lossless.ljust(30, b"\0")[:30]) == (11, 7)
    extended = b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + (10).to_bytes(3, "little") + (6).to_bytes(3, "little")
    assert webp_size(extended) == (11, 7)
    with pytest.raises(ValueError, match="not a WebP"):
        webp_size(b"GIF89a")


def test_a_mean_without_interval_or_cases_is_drawn(tmp_path: Path) -> None:
    """A metric of a whole cell with one case: nothing but the mean says how far the axis goes."""
    folder = make_run(tmp_path / "run", [Given("only", [0.4])])
    results = read_results(folder)
    (cell,) = results.cells
    summary = {"whole": replace(cell.record.summary["err"], lo=None, hi=None), **cell.record.summary}
    led = replace(cell, manifest={**cell.manifest, "derived": ["whole"]}, record=replace(cell.record, summary=summary))
    (section,) = sections({"": replace(results, cells=[led])})
    assert section.metric == "whole" and not section.lines[0].values()
    assert "whole" in methods_figure(section)


def test_compare_says_which_metric_and_that_a_report_leads_with_another(run: Path) -> None:
    results = read_results(run)
    (found,) = compare(results, results, ("good", "poor"))
    assert "err ↓" in compare_text([found])
    said = compare_text([{**found, "lead": "mx"}])
    assert "mx is a metric of the whole cell: err is compared instead" in said


def test_alike_failures_are_one_line_and_name_their_metrics(tmp_path: Path) -> None:
    given = [
        Given(name, [("error", f"needs {i} MB"), ("error", f"needs {i + 1} MB"), 0.1, 0.2])
        for i, name in enumerate("abcd")
    ]
    (said,) = failures(only_section(make_run(tmp_path / "run", given)))
    assert said.text.startswith("a, b, c, d: 2 cases error: needs ") and "differ in numbers" in said.text
    one = read_results(make_run(tmp_path / "one", [GOOD]))
    rows = [
        replace(r, value=None, status="undefined", reason="no") if r.metric == "err_part" else r
        for r in one.cells[0].rows
    ]
    cell = replace(one.cells[0], record=replace(one.cells[0].record, settled=Settled(rows, {})))
    (section,) = sections({"": replace(one, cells=[cell])})
    assert failures(section)[0].text.startswith("good: 4 cases undefined in err_part only")


def test_ticks_are_told_apart_and_long_names_keep_their_ends() -> None:
    for lo, hi in ((0.0, 0.13), (0.5, 0.57), (0.0, 1.0), (-3.0, 40.0), (0.0, 0.0125)):
        axis = Axis(lo, hi, 0, 100)
        for wanted in (5, 6):
            said = [tick_label(t, axis, wanted) for t in axis.ticks(wanted)]
            assert len(set(said)) == len(said), (lo, hi, said)
    a, b = "integrated_gradients(steps=16, baseline=gray)", "integrated_gradients(steps=16, baseline=mean)"
    assert shorten(a, 24) != shorten(b, 24) and len(shorten(a, 24)) == 24
