"""One command of Diorama in a forked child, and the rule that whatever it was given, it ends well.

The rule: exit code 0, 1, 2, 3, 4 or 130; where it fails, one line of at most 500 characters; no traceback; no hang over ten
seconds; no crash of the interpreter; no gigabytes. A fork costs milliseconds where a new process costs seconds, and a
child that crashes, hangs or eats memory hurts nobody.
"""

import faulthandler
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

SECONDS = 10.0
CODES = (0, 1, 2, 3, 4, 130)
LONGEST = 500
#: Memory that a child may ask for beyond what its parent has.
MEMORY = 3 * 2**30
#: Exit code of a child in which an exception was not caught.
UNCAUGHT = 99


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code (negative for a signal), what it wrote, and how long it took."""

    code: int
    out: str
    err: str
    seconds: float

    def violation(self) -> str:
        """What breaks the rule, in one line; empty where nothing does."""
        last = self.err.strip().splitlines()[-1:] or [""]
        if self.code == -signal.SIGKILL and self.seconds >= SECONDS:
            return f"hang of {self.seconds:.0f} s"
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}: {last[0][:200]}"
        if "Traceback (most recent call last)" in self.err:
            return f"traceback: {last[0][:300]}"
        if self.code not in CODES:
            return f"exit code {self.code}: {last[0][:200]}"
        lines = self.err.splitlines()
        if any(len(line) > LONGEST for line in lines):
            return f"a line of {max(map(len, lines))} characters: {max(lines, key=len)[:100]}"
        said = [line for line in lines if line.startswith("diorama: ")]
        if self.code in (1, 2) and len(said) != 1:
            return f"{len(said)} error lines for exit code {self.code}: {self.err[:200]!r}"
        return ""


def patience(seconds: float = SECONDS) -> float:
    """How long a child may take: longer on a machine whose processors are shared by many."""
    return seconds * max(1.0, 1.5 * os.getloadavg()[0] / (os.cpu_count() or 1))


def forked(call: Callable[[], int], folder: Path, seconds: float = SECONDS) -> Ended:
    """Call something in a child whose working folder is `folder`; it is killed when it takes too long."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        start = time.monotonic()
        child = os.fork()
        if child == 0:
            _become(call, folder, out.fileno(), err.fileno())
        status = _wait(child, start + patience(seconds))
        took = time.monotonic() - start
        out.seek(0), err.seek(0)
        texts = [stream.read(2**20).decode("utf-8", "replace") for stream in (out, err)]
    return Ended(os.waitstatus_to_exitcode(status), *texts, took)


def _wait(child: int, until: float) -> int:
    pause = 0.001
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
    os.killpg(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _become(call: Callable[[], int], folder: Path, out: int, err: int) -> None:
    """The child: never returns."""
    code = UNCAUGHT
    try:
        os.setpgid(0, 0)
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdin, sys.stdout, sys.stderr = (open(i, mode, errors=how) for i, mode, how in _STREAMS)  # noqa: SIM115
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        code = call()
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    except BaseException:  # noqa: BLE001 - whatever it is, it is what the fuzzer looks for
        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code & 0xFF)


_STREAMS = ((0, "r", "strict"), (1, "w", "strict"), (2, "w", "backslashreplace"))


def diorama(args: Sequence[str], folder: Path) -> Ended:
    """One command line in a child."""
    from diorama import cli

    def call() -> int:
        sys.argv = ["diorama", *args]
        cli.main()
        return 0

    return forked(call, folder)
