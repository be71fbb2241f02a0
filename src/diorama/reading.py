"""The commands that read runs: report, cite, compare. None of them imports or builds a component."""

import json
from pathlib import Path

import click

from diorama.core.errors import InputError
from diorama.progress import say


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "out", type=click.Path(path_type=Path), help="File to write; without it text formats go to stdout.")
@click.option(
    "--format", "form", default="html", show_default=True, metavar="html|text|md|tex|csv|json|junit|parquet|svg|pdf"
)
@click.option("--columns", default="", metavar="LIST", help="Columns of text, md and tex, e.g. mx,interval,published.")
@click.option("--digits", type=click.IntRange(0, 12), help="Decimals of text, md and tex.")
@click.option("--name", "names", multiple=True, metavar="METHOD=NAME", help="A method's name in text, md and tex.")
def report(
    runs: tuple[Path, ...], out: Path | None, form: str, columns: str, digits: int | None, names: tuple[str, ...]
) -> None:
    """Report on finished or unfinished RUNs, and print what is missing. svg and pdf write a folder of figures."""
    from diorama.report.summary import lacking
    from diorama.report.tables import Style
    from diorama.report.write import write_report

    style = Style(tuple(filter(None, (c.strip() for c in columns.split(",")))), digits, dict(map(_parse_name, names)))
    print(write_report(list(runs), out, form, style))
    for folder in runs:
        for line in lacking(folder):
            say(line)


def _parse_name(text: str) -> tuple[str, str]:
    old, equals, new = text.rpartition("=")
    if not equals or not old or not new:
        raise InputError(f"--name {text}: write METHOD=NAME, e.g. --name input_x_gradient=I×G")
    return old, new


@click.command()
@click.argument("run_folder", metavar="RUN", type=click.Path(path_type=Path))
@click.option("--bib", is_flag=True, help="Print BibTeX entries instead of lines.")
def cite(run_folder: Path, bib: bool) -> None:
    """Print the references that a paper about a RUN should cite: the papers of its protocols first, Diorama last."""
    from diorama.report.cite import cited

    print(cited(run_folder, bib), end="")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--between", nargs=2, metavar="METHOD METHOD", help="Compare two methods of one run.")
@click.option("--json", "as_json", is_flag=True)
def compare(runs: tuple[Path, ...], between: tuple[str, str] | None, as_json: bool) -> None:
    """Compare RUN_A with RUN_B case by case, or two methods of one run with --between."""
    from diorama.report import compare as comparison
    from diorama.report.summary import read_results

    if len(runs) != (1 if between else 2):
        raise InputError("compare takes two runs, or one run and --between METHOD METHOD")
    found = comparison.compared(read_results(runs[0]), read_results(runs[-1]), between)
    names = between or (str(runs[0]), str(runs[1]))
    print(json.dumps(found, ensure_ascii=False, indent=1) if as_json else comparison.text(found, *names), end="")
