"""Writing a report: one or several run directories in, one file or text out."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from diorama.core.errors import InputError, did_you_mean
from diorama.report.sections import name_runs
from diorama.report.summary import Results, read_results
from diorama.report.tables import TEXTS, Runs, text, write_parquet

FORMATS = ("html", "md", "tex", "csv", "json", "parquet", "text")


def write_report(given: Sequence[Path | Results], out: Path | None = None, format: str = "html") -> Path | str:
    """The report of some runs, named by their folders or read already.

    HTML and Parquet become a file, by default in the first run's folder. The other formats are returned as text, or
    written where `out` is given; then the path is returned.
    """
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}; {did_you_mean(format, list(FORMATS))}")
    runs = name_runs(_read(given))
    if format in TEXTS and out is None:
        return text(runs, shutil.get_terminal_size((120, 40)).columns) if format == "text" else TEXTS[format](runs)
    path = out or next(iter(runs.values())).folder / f"report.{format}"
    try:
        _write(runs, path, format)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}; choose another place with -o") from error
    return path


def _read(given: Sequence[Path | Results]) -> list[Results]:
    """Every run once."""
    if not given:
        raise InputError("no run was named: give the directory of at least one run")
    folders = {(one if isinstance(one, Path) else one.folder).resolve(): one for one in given}
    return [read_results(one) if isinstance(one, Path) else one for one in folders.values()]


def _write(runs: Runs, path: Path, format: str) -> None:
    """Write beside the place and move there, so that a failure never leaves half a report.

    A link is followed to what it names; what is there and no regular file (a device, a pipe) is written to, not replaced.
    """
    path = path.resolve() if path.is_symlink() else path
    if path.is_dir():
        raise IsADirectoryError(21, "it is a directory")
    if path.exists() and not path.is_file():
        return _pour(runs, path, format)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if format == "parquet":
            write_parquet(runs, temporary)
        else:
            temporary.write_text(_text(runs, format), encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _pour(runs: Runs, path: Path, format: str) -> None:
    """Write into a device or a pipe: the whole report, made before it is opened."""
    if format == "parquet":
        with TemporaryDirectory() as folder:
            write_parquet(runs, Path(folder, "report"))
            data = Path(folder, "report").read_bytes()
    else:
        data = _text(runs, format).encode()
    with open(path, "wb", buffering=0) as file:
        left = memoryview(data)
        while left:
            left = left[file.write(left) or 0 :]


def _text(runs: Runs, format: str) -> str:
    if format != "html":
        return TEXTS[format](runs)
    from diorama.report.html import html

    return html(runs)
