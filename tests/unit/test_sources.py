"""What is remembered of source files between processes: used while a file is as it was, never after it changed."""

import json
import os
import subprocess
import sys
import time

import pytest

from diorama.core import sources

CODE = "import numpy\nA = 1\n"


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("DIORAMA_CACHE", str(tmp_path / "cache"))
    return lambda: monkeypatch.setattr(sources, "CACHE", sources.Cache())


def settled(path):
    """A file that has not changed for a while, as far as its times say; its ctime cannot be set, so the clock is moved."""
    path.write_text(CODE)
    return path


def later(monkeypatch):
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 3 * 10**9)


def test_facts_of_a_settled_file_are_kept_for_the_next_process(tmp_path, memory, monkeypatch):
    path = settled(tmp_path / "a.py")
    later(monkeypatch)
    memory()
    first = sources.facts(path)
    sources.CACHE.write()
    memory()  # as in a new process
    monkeypatch.setattr(sources.ast, "parse", lambda *a, **k: pytest.fail("the file was parsed again"))
    assert sources.facts(path) == first and first.imports == ("numpy",)


def test_a_file_of_the_same_size_with_its_times_restored_is_read_again(tmp_path, memory, monkeypatch):
    path = settled(tmp_path / "a.py")
    before = path.stat()
    later(monkeypatch)
    memory()
    first = sources.facts(path)
    sources.CACHE.write()
    time.sleep(0.02)
    with open(path, "r+") as file:
        file.write(CODE.replace("1", "2"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    memory()
    assert sources.facts(path).syntax != first.syntax


def test_a_young_file_is_not_trusted(tmp_path, memory):
    path = settled(tmp_path / "a.py")
    memory()
    sources.facts(path)
    sources.CACHE.write()
    assert not (tmp_path / "cache" / "sources.json").exists()


@pytest.mark.parametrize("content", ["", "{", '{"version": 1}', '{"version": 1, "files": {"x": 3}}', "[]", "7"])
def test_a_damaged_memory_is_no_memory(tmp_path, memory, content, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "sources.json").write_text(content)
    memory()
    assert sources.facts(settled(tmp_path / "a.py")).imports == ("numpy",)


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path, memory, monkeypatch):
    (tmp_path / "cache").write_text("a file in the place of the folder")
    later(monkeypatch)
    memory()
    sources.facts(settled(tmp_path / "a.py"))
    sources.CACHE.write()


@pytest.mark.slow
def test_a_known_run_imports_neither_torch_nor_scipy_stats_nor_starts_a_worker(tmp_path):
    words = [
        "-w",
        "birds(size=64)",
        "-M",
        f"{tmp_path}/net.py:build",
        "-m",
        "random",
        "-p",
        "single_deletion",
        "-n",
        "2",
    ]
    (tmp_path / "net.py").write_text(
        "import numpy as np\n\n\ndef build():\n    return logits\n\n\n"
        "def logits(images):\n    return images.mean(axis=(1, 2, 3))[:, None] * np.arange(50)\n\n\nlogits.size = 64\n"
    )
    words[3] = f"{tmp_path}/net.py:logits"
    ours = ["-m", "diorama", "run", *words, "-o", str(tmp_path / "run")]
    subprocess.run([sys.executable, *ours], check=True, capture_output=True)
    code = (
        "import sys, json; sys.argv = json.loads(sys.argv[1])\nfrom diorama import cli\n"
        "from diorama.launch import supervise\nsupervise.Child = None\n"
        "try:\n    cli.main()\nexcept SystemExit as left:\n    assert not left.code, left.code\n"
        "print([m for m in ('torch', 'scipy.stats') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(["diorama", *ours[2:]])], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stderr.strip().endswith("[]"), done.stderr
