"""Reports: views of rows and manifests; nothing here knows a world, a model or a method."""

from pathlib import Path


def write_report(folders: list[Path], out: Path | None = None, format: str = "html") -> Path | str:
    """See `diorama.report.write.write_report`; imported only when a report is written."""
    from diorama.report.write import write_report as write

    return write(folders, out, format)
