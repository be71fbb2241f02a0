"""A launcher of your own: `diorama run … --on ./own_launcher.py:Processes:2`, or `:Processes:host1,host2` through ssh.
====================================================================================================================

A worker reads the opening, then one order per line, and answers each order with a line. `Remote` retries and writes rows.
"""

import queue
import subprocess
import sys
import threading
from contextlib import suppress

from diorama.core.errors import WorkerError
from diorama.launch.contract import Lost, Need, Remote
from diorama.launch.parcel import Answer

PLACE = [sys.executable, "-m", "diorama.launch.place"]


class Processes(Remote):
    """One worker for each host, or as many on this machine as the argument says."""

    def __init__(self, argument: str, need: Need) -> None:
        super().__init__(argument, need)
        count = int(argument) if argument.isdecimal() else 0
        self.commands = [PLACE] * count or [["ssh", host, *PLACE] for host in argument.split(",")]
        self.workers = len(self.commands)
        self.todo, self.back = queue.SimpleQueue(), queue.SimpleQueue()

    def start(self, opening: str) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.processes = [subprocess.Popen(command, **pipes) for command in self.commands]
        for process in self.processes:
            threading.Thread(target=self._serve, args=(process, opening), daemon=True).start()

    def _serve(self, process: "subprocess.Popen[str]", opening: str) -> None:
        print(opening, file=process.stdin, flush=True)
        while process.poll() is None:
            unit, order = self.todo.get()
            with suppress(BrokenPipeError):  # the worker has died: its answer is empty
                print(order, file=process.stdin, flush=True)
            answer = process.stdout.readline()
            self.back.put(Answer.read(answer) if answer else Lost(unit, "lost its worker", vanished=True))

    def room(self) -> int:
        return 2 * self.workers

    def send(self, unit: int, order: str, avoid: list[str]) -> None:
        self.todo.put((unit, order))

    def receive(self) -> list[Answer | Lost]:
        try:
            return [self.back.get(timeout=1)]
        except queue.Empty:
            if any(process.poll() is None for process in self.processes):
                return []
            raise WorkerError("all workers have ended; run the same command again to continue") from None

    def stop(self) -> None:
        for process in self.processes:
            process.kill(), process.communicate()
