"""Runs on Ray: the same rows as on this machine, whatever dies; nothing listens to strangers, nothing stays behind."""

import importlib.util
import json
import os
import resource
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.part_files import rows
from tests.ray_cluster import WITHOUT_NICENESS, RayCluster

pytestmark = pytest.mark.slow  # it starts clusters

if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed (pip install 'diorama[ray]')", allow_module_level=True)

WORLD = "mondrian(size=24, patches=5)"
MINE = """
import os, signal, time
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from diorama import Layers
from helper import ones

@dataclass
class Mine:
    how: str = "good"

    def decompose(self, frames):
        if frames[0].image.mean() < float((Path(__file__).parent / "limit.txt").read_text()):
            getattr(self, self.how)()
        return Layers(ones(frames[0]), ones(frames[0]))

    def good(self): pass
    def sent(self): assert "diorama-place" in __file__, __file__
    def later(self):  # the first two answers come at once
        for name in ("one", "two"):
            try:
                return self.gate.joinpath(name).mkdir()
            except FileExistsError:
                pass
        self.held()
    def held(self):
        (self.gate / str(os.getpid())).touch()
        while not (self.gate / "open").exists(): time.sleep(0.02)
    @property
    def gate(self): return Path((Path(__file__).parent / "gate.txt").read_text())
    def abort(self): os.abort()
    def end(self): os.kill(os.getppid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with RayCluster(1) as made:
        yield made


@pytest.fixture(scope="module")
def wanted(tmp_path_factory) -> Callable[..., dict[str, list[str]]]:
    """The rows of a run on this machine, computed once."""

    @cache
    def call(how: str, limit: str, cases: int) -> dict[str, list[str]]:
        folder = _folder(tmp_path_factory.mktemp("local"), limit)
        if how in ("held", "later"):
            with_gate(folder)
            release(folder)
        result = finish(folder, how, "out", "local:2", cases=cases)
        assert result.returncode in (0, 3), result.stderr
        return rows(folder / "out")

    return call


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A user's folder."""
    return _folder(tmp_path, "0.088")


def _folder(tmp_path: Path, limit: str) -> Path:
    """A method with a neighbour that it imports and a file that it reads."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "helper.py").write_text(
        "import numpy as np\n\n\ndef ones(frame):\n    return np.ones((*frame.image.shape[:2], 1))\n"
    )
    (tmp_path / "limit.txt").write_text(limit)
    return tmp_path


def with_gate(place: Path) -> None:
    """Say where the gate is, in a file that travels; it counts for the key of the cell, as all that a method reads."""
    (place / "gate").mkdir()
    (place / "gate.txt").write_text(str(place / "gate"))


def words(how: str, out: str, on: str, cases: int = 6) -> list[str]:
    asked = ["-w", WORLD, "-p", "lmse", "-m", f"./mine.py:Mine(how={how})", "-m", "weiss", "-n", str(cases)]
    return [sys.executable, "-m", "diorama", "run", *asked, "-o", out, "--on", on, "--json"]


def finish(
    place: Path, how: str, out: str, on: str, cluster: RayCluster | None = None, cases: int = 6
) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, **(cluster.variables if cluster else {})}
    command = words(how, out, on, cases)
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=600, check=False)


def started(place: Path, out: str, on: str, variables: dict[str, str], cases: int = 8) -> "subprocess.Popen[str]":
    """A run of which the first rows have come home, and the others wait for `release`."""
    process = begun(place, "later", out, on, variables, cases)
    wait_for_rows(process, place / out, 1)
    return process


def release(place: Path) -> None:
    """Let all answers come."""
    (place / "gate" / "open").touch()


def begun(place: Path, how: str, out: str, on: str, variables: dict[str, str], cases: int) -> "subprocess.Popen[str]":
    """A run whose method does `how` in every case, and stands still at a gate if that is `held` or `later`."""
    with_gate(place)
    (place / "limit.txt").write_text("2")
    pipe, environment = subprocess.PIPE, {**os.environ, **variables}
    command = words(how, out, on, cases)
    return subprocess.Popen(command, cwd=place, env=environment, stdout=pipe, stderr=pipe, text=True)


def same(found: dict[str, list[str]], expected: dict[str, list[str]]) -> bool:
    """Whether rows are equal although their cells have other keys: parameters differ, or the gate that a folder names."""
    return sorted(found.values()) == sorted(expected.values())


def wait_for_rows(process: "subprocess.Popen[str]", out: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(out.glob("cells/*/*/rows/*.jsonl"))) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f"{out} lacks rows"
        time.sleep(0.05)


def wait_for_held(process: "subprocess.Popen[str]", gate: Path, count: int) -> None:
    """Wait until so many workers are in the middle of a unit, where they stay until the gate is opened."""
    deadline = time.monotonic() + 120
    while len(list(gate.iterdir())) < count:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f"{len(list(gate.iterdir()))} of {count} workers have begun a unit"
        time.sleep(0.02)


def wait_for_dead(gate: Path, left: int) -> None:
    """Wait until at most so many of the workers that stand at the gate live: one that still lives could answer after all."""
    deadline = time.monotonic() + 60
    while sum(Path("/proc", worker.name).exists() for worker in gate.iterdir()) > left:
        assert time.monotonic() < deadline, "workers of killed nodes go on living"
        time.sleep(0.02)


def gone(mark: str) -> bool:
    """Whether no process names `mark` in its command line or environment any more, after some seconds."""
    deadline = time.monotonic() + 60
    while found := _naming(mark):
        if time.monotonic() > deadline:
            print(found)
            return False
        time.sleep(0.1)
    return True


def _naming(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            said = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in said and int(path.name) != os.getpid():
            found.append(f"{path.name} {said[:200]!r}")
    return found


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_rows_are_those_of_this_machine_and_files_travel(cluster, place, wanted, nodes):
    cluster.grow(nodes)
    how = "sent" if nodes == 3 else "good"  # the method then insists on running from a copy of the user's folder
    result = finish(place, how, "out", f"ray:{cluster.address}", cluster)
    assert result.returncode == 0, result.stderr
    expected = wanted("good", "0.088", 6)
    if how == "good":
        assert rows(place / "out") == expected
    else:
        assert same(rows(place / "out"), expected)


def test_a_node_killed_in_the_middle_of_a_unit_costs_nothing_twice(cluster, place, wanted):
    cluster.grow(3)
    process = begun(place, "held", "out", f"ray:{cluster.address}", cluster.variables, 18)
    wait_for_held(process, place / "gate", 3)
    for _ in range(2):
        cluster.tell("kill")
    wait_for_dead(place / "gate", 1)
    release(place)
    cluster.grow(5)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert said.count("tried again elsewhere") == 2, said
    assert same(rows(place / "out"), wanted("held", "2", 18))


def test_a_component_that_aborts_gives_the_same_error_rows_as_here(cluster, place, wanted):
    result = finish(place, "abort", "out", f"ray:{cluster.address}", cluster)
    assert result.returncode == 3, result.stderr
    assert rows(place / "out") == wanted("abort", "0.088", 6)
    reasons = [row["reason"] for row in _listed(place / "out") if row["status"] == "error"]
    assert reasons and {"killed by signal 6 (SIGABRT)" in reason for reason in reasons} == {True}
    assert len(list((place / "out").glob("cells/*/*/errors/*"))) == len(
        {row["case"] for row in _listed(place / "out") if row["status"] == "error"}
    )


def _listed(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for lines in rows(folder).values() for line in lines]


def test_a_worker_of_ray_that_is_killed_twice_costs_its_unit_and_says_so(cluster, place):
    """As the system kills it when memory is short: the unit is tried elsewhere, then given up, and the rest goes on."""
    result = finish(place, "end", "out", f"ray:{cluster.address}", cluster)
    assert result.returncode == 3, result.stderr
    errors = [row for row in _listed(place / "out") if row["status"] == "error"]
    assert errors and {"in 2 attempts the unit of this case was lost" in row["reason"] for row in errors} == {True}
    assert any(row["status"] == "ok" for row in _listed(place / "out"))
    assert json.loads(result.stdout)["missing"] == 0


def test_a_worker_with_another_library_is_refused_by_name_and_a_head_that_vanishes_is_one_line(
    place, wanted, tmp_path_factory
):
    other = tmp_path_factory.mktemp("other")
    (other / "numpy-1.0.dist-info").mkdir()
    (other / "numpy-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 1.0\n")
    with RayCluster(0) as alone:
        alone.tell(f"other {other}")
        refused = finish(place, "good", "out", f"ray:{alone.address}", alone)
        assert refused.returncode == 1 and "numpy 1.0 instead of" in refused.stderr.splitlines()[-1]
        alone.tell("add")
        patience = {"RAY_gcs_rpc_server_reconnect_timeout_s": "5"}
        process = started(place, "later", f"ray:{alone.address}", alone.variables | patience)
        alone.tell("behead")
        _, said = process.communicate(timeout=300)
    assert "numpy 1.0 instead of" in said  # the other node did all the work
    assert process.returncode == 1 and "Traceback" not in said
    assert "Ray has gone" in said.splitlines()[-1] and "run the same command again" in said.splitlines()[-1]
    release(place)
    again = finish(place, "later", "later", "local:2", cases=8)
    assert again.returncode == 0 and json.loads(again.stdout)["known"] > 0
    assert same(rows(place / "later"), wanted("later", "2", 8))


def test_a_ray_of_our_own_hears_only_this_machine_refuses_strangers_and_ends_with_its_run(place):
    mark = f"session-of-{place.name}"
    process = started(place, "out", "ray", {"DIORAMA_SESSION": mark, **WITHOUT_NICENESS})
    assert _listening(mark) == {"127.0.0.1"}
    assert _stranger(_address(mark)) == "refused"
    second = finish(place, "good", "out", "ray")
    assert second.returncode == 2 and "is being written by process" in second.stderr
    process.kill()  # as by kill -9
    release(place)
    process.communicate(timeout=300)
    assert gone(mark)
    again = finish(place, "later", "out", "local:2", cases=8)
    assert again.returncode == 0 and json.loads(again.stdout)["known"] > 0


def test_a_full_disk_here_is_one_line_and_no_worker_stays(cluster, place, wanted):
    """A limit on the size of files, set on the running command alone, stands in for the disk: writing beyond it fails."""
    mark = f"session-of-{place.name}"
    process = started(place, "out", f"ray:{cluster.address}", {**cluster.variables, "DIORAMA_SESSION": mark})
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    release(place)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1 and "Traceback" not in said, said
    assert "No space left on device" in said.splitlines()[-1] and "run the same command again" in said.splitlines()[-1]
    assert gone(mark)
    assert finish(place, "later", "out", "local:2", cases=8).returncode == 0
    assert same(rows(place / "out"), wanted("later", "2", 8))


def _stranger(address: str) -> str:
    """What becomes of somebody on this machine who knows the address and has another token."""
    ask = f"import ray; ray.init(address={address!r}, log_to_driver=False); print('let in')"
    environment = os.environ | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    pipe, command = subprocess.PIPE, [sys.executable, "-c", ask]
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            if "InvalidAuthToken" in line or "let in" in line:
                process.kill()  # it would go on trying
                return "let in" if "let in" in line else "refused"
    return "did not say"


def _address(mark: str) -> str:
    found = [part for line in _naming(mark) if "gcs_server" in line for part in [line.split()[0]]]
    words_ = Path(f"/proc/{found[0]}/cmdline").read_text().split("\0")
    port = next(word.partition("=")[2] for word in words_ if word.startswith("--gcs_server_port"))
    port = port if port != "0" else str(sorted(_ports(found[0]))[0])
    return f"127.0.0.1:{port}"


def _sockets() -> dict[str, tuple[str, int]]:
    """Listening sockets by inode: address and port."""
    found = {}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words_ = line.split()
            if words_[3] == "0A":
                host, port = words_[1].split(":")
                four = bytes.fromhex(host[-8:])[::-1]
                found[words_[9]] = (".".join(map(str, four)), int(port, 16))
    return found


def _inodes(process: str) -> set[str]:
    links = [os.readlink(path) for path in Path(f"/proc/{process}/fd").iterdir() if path.is_symlink()]
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def _ports(process: str) -> list[int]:
    known = _sockets()
    return [known[inode][1] for inode in _inodes(process) if inode in known]


def _listening(mark: str) -> set[str]:
    known = _sockets()
    processes = [line.split()[0] for line in _naming(mark)]
    return {known[inode][0] for process in processes for inode in _inodes(process) if inode in known}
