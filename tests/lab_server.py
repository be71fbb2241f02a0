"""The lab as a user starts it, for tests: a process of its own, its address, and how it ends."""

import os
import re
import subprocess
import sys
from pathlib import Path

TOKEN = "a-token-of-the-tests-0123456789"


class Served:
    """`diorama lab WORDS` in a folder."""

    def __init__(self, folder: Path, *words: str, port: int = 0, token: str = TOKEN) -> None:
        self.folder, self.words, self.token = folder, words, token
        self.start(port)

    def start(self, port: int) -> None:
        """Start it and wait until it says where it is."""
        command = [sys.executable, "-m", "diorama", "lab", *self.words, "--port", str(port), "--token", self.token]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, line + (self.process.stderr.read() if self.process.poll() is not None else "")
        self.port, self.address = int(found[1]), line.split("at ", 1)[1].strip()

    @property
    def host(self) -> str:
        """What a browser writes into Host."""
        return f"127.0.0.1:{self.port}"

    def socket(self, origin: str | None = None, token: str | None = None):
        """A connection as a page makes it."""
        from websockets.sync.client import connect

        address = f"ws://{self.host}/socket?token={self.token if token is None else token}"
        return connect(address, origin=origin or f"http://{self.host}", max_size=None, open_timeout=120, proxy=None)

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def end(self) -> None:
        """End it as Ctrl-C does."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
