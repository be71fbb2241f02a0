"""One run in a process of its own, for `growth`: seconds of planning and of work once libraries are loaded, and memory.

Called with a plan as JSON; prints one JSON object. A first run of one case, in another folder, loads what is loaded once.
"""

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # before numpy is imported

from diorama.core.plan import Plan
from diorama.core.run import create, work


def measured(given: dict[str, Any], only_plan: bool) -> dict[str, float]:
    """Seconds to lay out and to compute a run, its cells, and the largest resident memory of this process in MB."""
    with tempfile.TemporaryDirectory() as folder:
        first = Plan(**{**given, "cases": 1, "methods": given["methods"][:1], "worlds": given["worlds"][:1]})
        warm = create(Path(folder) / "warm", first)
        if not only_plan:
            work(warm, 0, 1)
        start = time.perf_counter()
        run = create(Path(folder) / "run", Plan(**given))
        planned = time.perf_counter() - start
        start = time.perf_counter()
        if not only_plan:
            work(run, 0, 1)
        worked = time.perf_counter() - start
        failed = sum(row.status == "error" for cell in run.cells for row in run.rows(cell))
    if failed:
        raise RuntimeError(f"{failed} rows failed")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cells": len(run.cells), "planned": planned, "worked": worked, "megabytes": memory}


if __name__ == "__main__":
    print(json.dumps(measured(json.loads(sys.argv[1]), sys.argv[2] == "plan")))
