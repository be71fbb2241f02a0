"""Writes a report of one or several run directories: a file, a folder of figures, or text."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from diorama.core.errors import InputError, did_you_mean, importing
from diorama.report.sections import name_runs, sections
from diorama.report.summary import Results, read_results
from diorama.report.tables import DEFAULT_STYLE, Runs, Style, as_json, long_csv, markdown, parquet, text

#: Text formats, those that take a style, and those that are a folder of figures.
TEXTS = ("text", "md", "tex", "csv", "json", "junit")
SHAPED, FIGURES = ("text", "md", "tex"), ("svg", "pdf")
FORMATS = ("html", *TEXTS, "parquet", *FIGURES)
ENDINGS = {"junit": "xml", "text": "txt"}


def write_report(
    given: Sequence[Path | Results], out: Path | None = None, format: str = "html", style: Style = DEFAULT_STYLE
) -> Path | str:
    """The report of some runs, given by their folders or as results.

    HTML and Parquet are written to a file, by default in the first run's folder; svg and pdf to a folder of figures, by
    default `figures` in the first run's folder. Other formats are returned as text, or written to `out`. Returns the path
    of what was written.
    """
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}; {did_you_mean(format, list(FORMATS))}")
    if style != DEFAULT_STYLE and format not in SHAPED:
        raise InputError(f"--columns, --digits and --name shape tables of {', '.join(SHAPED)}, not {format}")
    runs = name_runs(_read(given))
    if format in TEXTS and out is None:
        width = shutil.get_terminal_size((120, 40)).columns
        return text(runs, style, width) if format == "text" else _text(runs, format, style)
    first = next(iter(runs.values())).folder
    if format in FIGURES:
        return _guarded(out or first / "figures", lambda place: _draw(runs, place, format))
    path = out or first / f"report.{ENDINGS.get(format, format)}"
    return _guarded(path, lambda place: _write(runs, place, format, style))


def _guarded(path: Path, write: Callable[[Path], None]) -> Path:
    try:
        write(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}; choose another place with -o") from error
    return path


def _read(given: Sequence[Path | Results]) -> list[Results]:
    """The results of every run, without duplicates."""
    if not given:
        raise InputError("no run was named: give the directory of at least one run")
    folders = {(one if isinstance(one, Path) else one.folder).resolve(): one for one in given}
    return [read_results(one) if isinstance(one, Path) else one for one in folders.values()]


def _draw(runs: Runs, folder: Path, format: str) -> None:
    """Write the figures of a paper: methods, dose curves if there are any, and cases."""
    with importing():
        from diorama.report.plots import Plots
    plots = Plots(sections(runs))
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in (("methods", plots.methods), ("doses", plots.doses), ("cases", plots.cases)):
        if name != "doses" or plots.has_doses:
            draw().savefig(folder / f"{name}.{format}")


def _write(runs: Runs, path: Path, format: str, style: Style) -> None:
    """Write a temporary file and rename it, so that a failure never leaves half a report.

    A symbolic link is followed; a device or a pipe is written to, not replaced.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.is_dir():
        raise IsADirectoryError(21, "it is a directory")
    data = parquet(runs) if format == "parquet" else _text(runs, format, style).encode()
    if path.exists() and not path.is_file():
        return _write_stream(data, path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_stream(data: bytes, path: Path) -> None:
    """Write a whole report into a device or a pipe."""
    with open(path, "wb", buffering=0) as file:
        left = memoryview(data)
        while left:
            left = left[file.write(left) or 0 :]


def _text(runs: Runs, format: str, style: Style) -> str:
    if format == "html":
        from diorama.report.html import html

        return html(runs)
    if format == "tex":
        from diorama.report.latex import tex

        return tex(runs, style)
    if format == "junit":
        from diorama.report.junit import junit

        return junit(runs)
    if format == "csv":
        return long_csv(runs)
    return as_json(runs) if format == "json" else {"text": text, "md": markdown}[format](runs, style)
