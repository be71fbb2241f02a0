"""The page kit of the studies: a table, and the line that says how a page was made."""

import doctest
import re
import subprocess

from studies import page_kit
from tests.conftest import REPOSITORY


def test_the_example_of_a_table():
    assert doctest.testmod(page_kit).failed == 0 < doctest.testmod(page_kit).attempted


def test_the_line_names_commit_seeds_versions_and_cpu_time():
    import numpy

    line = page_kit.made(("numpy",), "seed 7")
    assert f"numpy {numpy.__version__}" in line and "seed 7" in line
    assert re.search(r"commit ([0-9a-f]{7,}\+?|unknown), .* [\d.]+ CPU minutes", line)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    ).stdout
    assert not head or page_kit.commit().startswith(head[:7])


def test_every_page_says_how_it_was_made():
    for page in (REPOSITORY / "studies").glob("*/page.py"):
        assert "made(" in page.read_text(encoding="utf-8"), page
        assert re.search(r"\{(MADE|made)\}", page.with_suffix(".md").read_text(encoding="utf-8")), page
