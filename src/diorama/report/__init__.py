"""Reports: views of rows and manifests; nothing here knows a world, a model or a method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from diorama.report.summary import Results
    from diorama.report.tables import Style


def write_report(
    given: Sequence[Path | Results], out: Path | None = None, format: str = "html", style: Style | None = None
) -> Path | str:
    """See `diorama.report.write.write_report`; imported only when a report is written."""
    from diorama.report.tables import AS_IT_IS
    from diorama.report.write import write_report as write

    return write(given, out, format, style or AS_IT_IS)
