"""What a report says in words and marks: best, ties, differences, what to do; tables for papers; every number and link."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from diorama.core.errors import InputError
from diorama.core.summary import hardest
from diorama.report.conclusion import conclude
from diorama.report.differences import cases_wanted
from diorama.report.html import LIMIT, html
from diorama.report.notes import notes
from diorama.report.overview import overviews
from diorama.report.paired import paired
from diorama.report.sections import sections
from diorama.report.summary import document, read_results
from diorama.report.tables import Style
from diorama.report.words import question, section_names
from diorama.report.write import write_report
from tests.unit import test_report
from tests.unit.test_report import GOOD, NASTY, POOR, RISING, Given, controls, make_run, parsed, picture

#: Beside GOOD on average, but not on every case: the two are not told apart.
CLOSE = Given("close", [0.16, 0.07, 0.15, 0.10])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", [POOR, CLOSE, GOOD, *controls(RISING)])


def only(folder: Path) -> Any:
    (section,) = sections({"": read_results(folder)})
    return section


def test_the_first_table_marks_the_best_and_what_is_not_told_apart_from_it(run: Path) -> None:
    (table,) = overviews([only(run)])
    marks = {name: (scores[0].best, scores[0].tied) for name, _, scores in table.lines}
    assert marks["good"] == (True, False) and marks["close"] == (False, True) and marks["poor"] == (False, False)
    assert list(marks) == ["good", "close", "poor", "the truth itself", "chance"]
    for line in only(run).methods[1:]:  # the mark is what a comparison of the two says
        gap = paired(line.values(), only(run).methods[0].values(), "lower")
        assert marks[line.name][1] == (gap.lo <= 0 <= gap.hi)


def test_differences_say_what_is_real_and_how_many_cases_would_decide(run: Path) -> None:
    results = read_results(run)
    found = conclude({"": results}, sections({"": results}))
    assert len(found.sure) == 1 and found.sure[0].startswith("good is better than poor, by 0.2250 [")
    assert len(found.open) == 1 and "good and close are not told apart" in found.open[0]
    gap = next(g for g in only(run).gaps if g.other.name == "close")
    spread = np.std([0.16 - 0.10, 0.07 - 0.12, 0.15 - 0.11, 0.10 - 0.13], ddof=1)
    assert gap.mean == pytest.approx(0.005) and gap.wanted == cases_wanted(0.005, spread)


def test_wanted_cases_have_the_power_that_is_said() -> None:
    for mean, spread in ((0.1, 0.2), (-0.03, 0.4), (0.5, 0.9)):
        n = cases_wanted(mean, spread)
        assert n is not None

        def power(n: int, d: float = abs(mean) / spread) -> float:
            return float(norm.cdf(d * np.sqrt(n) - norm.ppf(0.975)))

        assert power(n) >= 0.8 > power(n - 1)
    assert cases_wanted(1e-6, 1.0) is None


def test_failed_controls_have_a_consequence_and_missing_ones_a_command(tmp_path: Path) -> None:
    blind = make_run(tmp_path / "r", [GOOD, Given("blind", [0.7, 0.6, 0.6, 0.7]), *controls(RISING)])
    results = read_results(blind)
    found = conclude({"": results}, sections({"": results}))
    assert "blind" in found.failed[0] and "not shown to be better than chance" in found.failed[0]
    bare = read_results(make_run(tmp_path / "bare run", [GOOD]))
    todo = dict(conclude({"": bare}, sections({"": bare})).todo)
    (command,) = [c for c in todo.values() if c.endswith("--controls")]
    assert f"'{bare.folder}'/plan.toml" in command  # quoted for the shell


def test_every_number_of_the_page_is_one_of_the_results(run: Path) -> None:
    results = read_results(run)
    page = html({"": results})
    cells_ = document(results)["cells"]
    known = {v for cell in cells_ for s in cell["summary"].values() for v in s.values() if v is not None}
    known |= {cell["published"] for cell in cells_ if cell["published"] is not None}
    tables = re.findall(r'<table class="(?:scores|results)[^"]*".*?</table>', page, re.S)
    assert len(tables) == 2
    cells = re.findall(r"<td[^>]*>(.*?)</td>", "".join(tables), re.S)
    seen = [n for cell in cells for n in re.findall(r"(?<![\d/.])\d\.\d{4}(?!\d)", re.sub(r"<[^>]+>", " ", cell))]
    assert len(seen) > 20
    for number in seen:
        assert any(abs(float(number) - abs(value)) <= 0.5001e-4 for value in known), number


def test_a_run_whose_cells_are_not_summarised_yet_can_be_reported(run: Path) -> None:
    for path in run.rglob("manifest.json"):
        said = json.loads(path.read_text())
        path.write_text(json.dumps({**said, "derived": ["mx"], "paper": {"mx": 0.5}}))
    page = html({"": read_results(run)})
    assert "not summarised yet" in page and "run the same command again" in page


def test_links_of_the_page_lead_somewhere_and_places_are_there_once(run: Path) -> None:
    for cell in ("00", "01", "02"):
        for case in ("ant", "bee"):
            picture(run, cell, case, ["image", "map"])
    seen = parsed(html({"": read_results(run)})).seen
    places = [a["id"] for _, a in seen if a.get("id")]
    assert len(places) == len(set(places))
    links = [str(a["href"]) for _, a in seen if str(a.get("href", "")).startswith("#")]
    assert len(links) > 10 and {link[1:] for link in links} <= set(places)
    assert "#s1-ant" in links


def test_panels_that_all_methods_share_are_shown_once_and_numbers_side_by_side(run: Path) -> None:
    for cell, own in (("01", "b"), ("02", "c")):
        picture(run, cell, "ant", ["image", "map"])
        path = run / "cells" / cell / (cell + "e" * 30) / "keep" / "ant@0.json"
        said = json.loads(path.read_text())
        matrix = {
            "rows": ["said", "measured"],
            "columns": ["beak", "eye"],
            "values": [[0.1, float(ord(own))], [1.0, None]],
        }
        path.write_text(json.dumps({**said, "panels": ["same", own], "matrices": [None, matrix]}))
    page = html({"": read_results(run)})
    shown = [str(a["aria-label"]) for tag, a in parsed(page).seen if tag == "svg" and a.get("aria-label")]
    assert shown == ["good on ant: image", "good on ant: map", "close on ant: map"]
    names = re.findall(r'<th scope="row">([^<]+)</th>', page[page.index("The numbers") :])
    assert names[:3] == ["measured", "good: said", "close: said"]


def test_pictures_whose_numbers_were_edited_are_still_shown(run: Path) -> None:
    picture(run, "01", "ant", ["image"])
    path = run / "cells" / "01" / ("01" + "e" * 30) / "keep" / "ant@0.json"
    said = json.loads(path.read_text())
    for wrong in ({"rows": 3}, {"rows": ["a"], "columns": ["b"], "values": [["x"]]}, ["no"], None):
        path.write_text(json.dumps({**said, "panels": 7, "matrices": [wrong]}))
        assert "<image" in html({"": read_results(run)})


def test_the_same_cases_are_drawn_for_all_methods() -> None:
    columns = [{"a": 0.1, "b": 0.5}, {"a": 0.9, "c": 0.4}]
    assert hardest(columns, "lower") == ["a", "b", "c"] and hardest(columns, "higher") == ["c", "a", "b"]


def test_a_question_is_a_title_with_its_methods_counted(run: Path) -> None:
    for path in run.rglob("manifest.json"):
        said = json.loads(path.read_text())
        path.write_text(json.dumps({**said, "track": "explain", "question": "How well {do} {methods} know {x}?"}))
    assert question(only(run)) == "How well do three explanations know {x}?"
    assert "<h1>How well do three explanations know {x}?</h1>" in html({"": read_results(run)})
    assert section_names([only(run), only(run)]) == ["score (published)"] * 2


def test_notes_of_several_sections_are_said_once(tmp_path: Path) -> None:
    noted = [Given("a", [0.1, 0.2, 0.3, 0.4], note="files look odd", world=w) for w in ("one", "two")]
    results = read_results(make_run(tmp_path / "r", noted))
    (note,) = notes(sections({"": results}))
    assert note.places == [0, 1] and note.failure.cases == ["ant", "bee", "cat", "dog"]
    assert html({"": results}).count("files look odd") == 1


def tex_of(folder: Path, style: Style = Style()) -> str:  # noqa: B008 - it is frozen
    return str(write_report([folder], None, "tex", style))


def test_tex_is_fit_for_a_paper(run: Path) -> None:
    text = tex_of(run)
    float_ = text[text.index(r"\begin{table}") : text.index(r"\end{table}")]
    assert r"\textbf{0.1150} (0.1100)" in float_  # best in bold, published in brackets
    assert "enumerate" not in float_ and "oracle holds" not in float_ and "% oracle holds" in text
    assert r"\emph{oracle (control)}" in float_
    rows = [line for line in float_.splitlines() if line.endswith(r"\\")]
    assert len({line.count("&") for line in rows}) == 1 and len(rows) == 6
    few = tex_of(run, Style(("err", "interval"), 2, {"good": "Ours & Co"}))
    assert r"Ours \& Co & \textbf{0.12} (0.11) & [0." in few and "err\\_part" not in few
    with pytest.raises(InputError, match="no column 'er'; did you mean 'err'"):
        tex_of(run, Style(("er",)))
    with pytest.raises(InputError, match="not html"):
        write_report([run], None, "html", Style(digits=2))


def test_tex_is_balanced_and_compiles_where_there_is_tex(tmp_path: Path) -> None:
    evil = Given(NASTY, [0.1, 0.2, ("error", NASTY), 0.3], note=NASTY)
    text = tex_of(make_run(tmp_path / "r", [evil, POOR, *controls(RISING)]))
    code = "\n".join(re.sub(r"(?<!\\)%.*", "", line) for line in text.splitlines())
    bare = re.sub(r"\\[{}]", "", code)
    assert bare.count("{") == bare.count("}") and len(re.findall(r"(?<!\\)\$", code)) % 2 == 0
    assert code.count(r"\begin{table}") == code.count(r"\end{table}") == code.count(r"\end{tabular}") == 1
    compiler = next((found for name in ("pdflatex", "tectonic", "lualatex") if (found := shutil.which(name))), None)
    if compiler:
        head = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n"
        (tmp_path / "t.tex").write_text(f"{head}{text}\\end{{document}}\n", encoding="utf-8")
        words = (
            [compiler, "t.tex"]
            if "tectonic" in compiler
            else [compiler, "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
        )
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]


def test_markdown_marks_the_best(run: Path) -> None:
    text = str(write_report([run], None, "md"))
    assert "| good | **0.1150** |" in text and "| *oracle (control)* |" in text


def test_junit_has_a_test_for_every_method_and_control(tmp_path: Path) -> None:
    bad = Given("bad", [("error", "boom"), 0.2, 0.3, None])
    root = ET.fromstring(str(write_report([make_run(tmp_path / "r", [GOOD, bad, *controls(RISING)])], None, "junit")))
    (suite, complete) = root.findall("testsuite")
    assert {case.get("name") for case in suite} == {
        *("good", "bad"),
        *(f"control: {name}" for name in ("oracle", "random", "dose", "sensitivity")),
    }
    (error,) = suite.findall(".//error")
    assert error.get("message") == "1 case failed: boom" and suite.get("errors") == "1" and suite.get("tests") == "6"
    assert complete.find(".//error") is not None


def test_figures_are_a_folder(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for kind, magic in (("svg", b"<?xml"), ("pdf", b"%PDF")):
        folder = Path(write_report([run], tmp_path / kind, kind))
        assert sorted(path.name for path in folder.iterdir()) == [f"{n}.{kind}" for n in ("cases", "doses", "methods")]
        assert all(path.read_bytes().startswith(magic) for path in folder.iterdir())


def test_cite_lists_the_papers_of_protocols_first(run: Path) -> None:
    from diorama.report.cite import cited

    for path in run.rglob("manifest.json"):
        said = json.loads(path.read_text())
        both = {"cite": ["A method. 2001", "The protocol. 1999"], "bibtex": ["@misc{a}", "@misc{p}"]}
        path.write_text(json.dumps({**said, **both, "originals": ["The protocol. 1999"]}))
    lines = cited(run).splitlines()
    assert lines.index("  The protocol. 1999") < lines.index("  A method. 2001") < lines.index("the software")
    assert cited(run, bib=True).startswith("@misc{p}\n\n@misc{a}\n\n@software{diorama,")


@pytest.mark.slow
def test_a_large_report_is_small_and_quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    cases = [f"case-{i:03d}" for i in range(500)]
    monkeypatch.setattr(test_report, "CASES", cases)
    draw = np.random.default_rng(0)
    hard = draw.normal(0, 0.1, 500)
    values = [(0.3 + 0.02 * k + hard + draw.normal(0, 0.1, 500)).clip(0.01, 1).tolist() for k in range(16)]
    given = [Given(f"method_{k}(samples={k})", list(found)) for k, found in enumerate(values)]
    dose = Given(
        "dose", [[0.0, v, 2 * v] for v in np.abs(hard).tolist()], "dose", [{"dose": d} for d in (0.0, 0.5, 1.0)]
    )
    chance = Given("track/random", (0.9 + hard).clip(0, 1).tolist(), "random")
    folder = make_run(tmp_path / "r", [*given, Given("oracle", [0.0] * 500, "oracle"), chance, dose])
    for k in range(16):
        for case in cases[:6]:
            picture(folder, f"{k:02d}", case, ["image", "truth", "map", "error"], side=120)
    start = time.process_time()
    page = html({"": read_results(folder)})
    assert time.process_time() - start < 5
    assert len(page.encode()) <= LIMIT and page.count("<image ") > 16
