"""Every number of a page is one of `Results`, found by the names of its line and column; and the check would notice."""

import re
from pathlib import Path

import pytest

from diorama.report.html import html
from diorama.report.summary import read_results
from tests.report_page import Page, strange, unknown
from tests.unit.test_report import CASES, GOOD, POOR, RISING, Given, controls, make_run, picture

SLOPPY = Given("predictions(folder=somewhere/deep/and/long)", [0.21, ("error", "boom"), 0.19, 0.4])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = make_run(tmp_path / "run", [POOR, GOOD, SLOPPY, *controls(RISING)])
    for cell in ("00", "01", "02"):
        for case in CASES[:3]:
            picture(folder, cell, case, ["image", "map"])
    return folder


def test_every_number_of_the_tables_and_of_the_prose_is_one_of_the_results(run: Path) -> None:
    results = read_results(run)
    page = Page(html({"": results}))
    styles = [style.split()[0] for style, _ in page.tables]
    assert styles.count("results") == 1 and styles.count("heat") == 1 and styles.count("scores") == 1
    assert strange(page, results) == []
    assert unknown(page, results) == []
    said = " ".join(page.prose)
    assert "What this means" in said and len(re.findall(r"\d\.\d{4}", said)) > 20


def test_a_number_that_is_not_of_the_results_is_found(run: Path) -> None:
    results = read_results(run)
    text = html({"": results})
    mean = results.sections[0].methods[0].mean
    shown = f"{mean:.4f}"
    other = f"{mean + 0.0123:.4f}"
    assert shown in text
    wrong = Page(text.replace(f"<b>{shown}</b>", f"<b>{other}</b>"))
    assert any(other in one for one in strange(wrong, results))
    made_up = Page(text.replace("All controls hold.", "All controls hold at 0.7777."))
    assert unknown(made_up, results) == ["0.7777"] or "All controls hold." not in text


def test_a_case_under_another_method_is_found(run: Path) -> None:
    results = read_results(run)
    text = html({"": results})
    first, second = (m.name for m in results.sections[0].methods[:2])
    start = text.index('class="heat sortable"')
    table = text[start : text.index("</table>", start)]
    swapped = table.replace(first, "\0").replace(second, first).replace("\0", second)
    assert swapped != table
    assert len(strange(Page(text.replace(table, swapped)), results)) >= 4
