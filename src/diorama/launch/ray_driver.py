"""The process that talks to Ray for a run: it reads units and writes answers as lines of JSON. When it ends, Ray ends.

Tasks take and return bytes, which Ray does not pickle. A task never raises: if it is lost, its machine was lost.
"""

import json
import queue
import shutil
import threading
import time
from typing import Any

import ray
from ray.exceptions import NodeDiedError, OutOfMemoryError, RayError, RayTaskError

from diorama.core.errors import shortened
from diorama.core.guard import attempt
from diorama.launch.place import carry_out
from diorama.launch.worker import pipes

#: Bytes of the object store of a Ray that we start: rows and plans are small.
_STORE = 128 * 2**20
_openings: dict[str, str] = {}


def carried_out(number: str, opening: list[Any], order: bytes) -> bytes:
    """The Ray task: computes a unit as a place does. The opening is fetched once per process."""
    if number not in _openings:
        _openings.clear()
        _openings[number] = ray.get(opening[0]).decode()
    node = ray.get_runtime_context().get_node_id()
    return carry_out(_openings[number], order.decode(), f"{ray.util.get_node_ip_address()} ({node})").encode()


class Driver:
    """Ray with the tasks that are running."""

    def __init__(self, first: dict[str, Any], report: Any) -> None:
        self.report, self.first = report, first
        self._start()
        self.opening = ray.put(first["opening"].encode())
        self.each = {"num_cpus": first["cpus"], "num_gpus": first["gpus"], "memory": first["memory"]}
        self.task = ray.remote(max_retries=0, max_calls=0)(carried_out)
        self.out: dict[Any, int] = {}
        self.slots, self.looked, self.nodes = 0, 0.0, list[dict[str, Any]]()

    def _start(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if self.first["address"]:
            ray.init(address=self.first["address"], **quiet)
            return
        ray.init(
            num_cpus=self.first["workers"] * self.first["cpus"],
            include_dashboard=False,
            object_store_memory=_STORE + 2 * len(self.first["opening"]),
            _node_ip_address="127.0.0.1",
            _temp_dir=self.first["folder"],
            **quiet,
        )

    def count(self) -> None:
        """Report how many workers fit on the machines of the cluster, if that has changed."""
        if time.monotonic() - self.looked < 1.0:
            return
        self.looked, self.nodes = time.monotonic(), [node for node in ray.nodes() if node["Alive"]]
        slots = sum(self._fitting(node["Resources"]) for node in self.nodes)
        if slots != self.slots:
            self.slots = slots
            self.report({"slots": slots})

    def _fitting(self, has: dict[str, float]) -> int:
        names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
        asked = {names[key]: value for key, value in self.each.items() if value}
        return int(min((has.get(name, 0) // value for name, value in asked.items()), default=1))

    def send(self, unit: int, order: str, avoid: list[str]) -> None:
        """Make a task of a unit, on other machines than those to avoid if there are any."""
        nodes = [node["NodeID"] for node in self.nodes if self._fitting(node["Resources"])]
        avoided = [node for node in nodes if any(node in place for place in avoid)]
        asked: dict[str, Any] = dict(self.each)
        if 0 < len(avoided) < len(nodes):
            asked["label_selector"] = {"ray.io/node-id": f"!in({','.join(avoided)})"}
        made = self.task.options(**asked)
        self.out[made.remote(str(self.opening.hex()), [self.opening], order.encode())] = unit

    def look(self) -> None:
        """Report the tasks that have ended; waits 0.2 s at most."""
        done, _ = ray.wait(list(self.out), num_returns=len(self.out), timeout=0.2) if self.out else ([], [])
        for one in done:
            self._ended(self.out.pop(one), attempt(lambda one=one: ray.get(one)))  # type: ignore[misc]

    def _ended(self, unit: int, outcome: Any) -> None:
        error = outcome.error
        if error is None:
            self.report({"unit": unit, "answer": outcome.value.decode()})
        elif isinstance(error, RayTaskError):
            self.report({"failed": shortened(f"diorama cannot work on a machine of the cluster: {_last(error)}", 300)})
        elif isinstance(error, RayError):
            why = "ran out of memory" if isinstance(error, OutOfMemoryError) else f"was lost ({type(error).__name__})"
            self.report({"unit": unit, "lost": why, "vanished": isinstance(error, NodeDiedError)})
        else:
            raise error


def _last(error: BaseException) -> str:
    return next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)


def main() -> None:
    """Carry out orders from stdin until it is closed, which ends the run."""
    orders, reports = pipes()

    def report(value: dict[str, Any]) -> None:
        reports.write(json.dumps(value).encode() + b"\n")
        reports.flush()

    first = json.loads(orders.readline())
    started = attempt(lambda: Driver(first, report))
    if started.error:
        report({"failed": f"Ray cannot be used: {shortened(started.reason, 300)}"})
        return
    waiting: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    threading.Thread(target=lambda: _listen(orders, waiting), daemon=True).start()
    try:
        _serve(started.value, waiting)
    finally:
        ray.shutdown()
        if first["folder"]:
            shutil.rmtree(first["folder"], ignore_errors=True)


def _listen(orders: Any, waiting: "queue.SimpleQueue[dict[str, Any] | None]") -> None:
    for line in orders:
        waiting.put(json.loads(line))
    waiting.put(None)


def _serve(driver: Driver, waiting: "queue.SimpleQueue[dict[str, Any] | None]") -> None:
    while True:
        driver.count()
        try:
            while order := waiting.get(timeout=0.0 if driver.out else 0.2):
                driver.send(order["unit"], order["order"], order["avoid"])
            return
        except queue.Empty:
            driver.look()


if __name__ == "__main__":
    # imported again: Ray finds the task by the name of its module, which must not be __main__
    from diorama.launch.ray_driver import main as main_of_module

    main_of_module()
