"""Speed: every benchmark that docs/results/speed.md is made of, one after the other, and the page from what they kept.

`scripts/bench speed` measures all that is not kept yet in benchmarks/results/*.json and writes the page; `--again` measures
everything, `--page` only writes the page. Each benchmark is a process of its own, on a machine that should be idle.
"""

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks._print import kept
from benchmarks._speed_page import NAMES, write_page


def main() -> int:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="measure also what is kept")
    parser.add_argument("--page", action="store_true", help="measure nothing")
    options = parser.parse_args()
    for name in () if options.page else NAMES:
        if options.again or kept(name) is None:
            print(f"bench: {name}", file=sys.stderr, flush=True)
            command = [sys.executable, str(Path(__file__).parent / f"{name}.py"), "--json"]
            if subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode:
                print(f"bench: {name} failed; the page leaves it out", file=sys.stderr)
    print(write_page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
