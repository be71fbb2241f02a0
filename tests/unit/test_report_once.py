"""A run is read, summarised and judged once; page, text and JSON show the same verdicts."""

import json
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from diorama.cli import cli
from diorama.report import sections, summary

RUN = (
    "run",
    "-w",
    "mondrian(size=24, patches=6)",
    "-m",
    "constant",
    "-p",
    "lmse",
    "-p",
    "si_mse",
    "-n",
    "4",
    "--controls",
)


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """How often cells are read and sections judged by what follows."""
    calls = {"cells": 0, "verdicts": 0}

    def counting(module, name, what):
        plain = getattr(module, name)

        def call(*given):
            calls[what] += 1
            return plain(*given)

        monkeypatch.setattr(module, name, call)

    counting(summary, "_read_cell", "cells")
    counting(sections, "verdicts", "verdicts")
    monkeypatch.chdir(tmp_path)
    return calls


@pytest.mark.parametrize("json_too", [False, True])
def test_a_run_is_read_and_judged_once(counted, json_too):
    outcome = CliRunner().invoke(cli, [*RUN, *(["--json"] if json_too else [])], standalone_mode=False)
    assert outcome.exit_code == 0 and outcome.exception is None, outcome.output
    assert counted == {"cells": 8, "verdicts": 2}  # two protocols; a method, oracle, random and doses each
    assert Path("diorama-run/report.html").is_file()


@pytest.mark.slow
def test_page_text_and_document_show_the_same_verdicts(diorama, tmp_path):
    document = json.loads(diorama(*RUN, "--json").stdout)
    found = document["verdicts"]
    assert (
        document["schema"] == 1 and json.loads((tmp_path / "diorama-run/summary.json").read_text())["verdicts"] == found
    )
    assert {v["protocol"] for v in found} == {"lmse", "si_mse"} and {v["control"] for v in found} >= {
        "oracle",
        "random",
        "dose",
    }
    assert all(v["holds"] in ("holds", "fails", "unknown") and v["world"].startswith("mondrian") for v in found)
    page = unescape((tmp_path / "diorama-run/report.html").read_text(encoding="utf-8"))
    text = " ".join(diorama("report", "diorama-run", "--format", "text").stdout.split())
    for verdict in found:
        assert verdict["text"] in page and f"{verdict['control']} {verdict['holds']}: {verdict['text']}" in text
    again = json.loads(diorama("report", "diorama-run", "--format", "json").stdout)
    assert again["verdicts"] == found
