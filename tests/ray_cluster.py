"""A Ray cluster of several nodes on this machine, in a process of its own that is told what to do."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
from typing import Any

#: Ray's workers are nice by 15: beside other tests on all cores they would get next to no time.
WITHOUT_NICENESS = {"RAY_worker_niceness": "0"}


class RayCluster:
    """Nodes with one core each, listening on 127.0.0.1; a driver needs `variables`. The head has no core for work."""

    def __init__(self, nodes: int) -> None:
        self.variables = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "RAY_health_check_period_ms": "500",
            "RAY_health_check_failure_threshold": "3",
            **WITHOUT_NICENESS,
        }
        self.place = tempfile.TemporaryDirectory(prefix="rc-", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [sys.executable, __file__, self.place.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **self.variables, "TMPDIR": self.place.name, "RAY_TMPDIR": self.place.name},
            text=True,
            start_new_session=True,
        )
        self.address, self.nodes = self.tell("head"), 0
        self.grow(nodes)

    def grow(self, nodes: int) -> None:
        """Add nodes until there are so many."""
        while self.nodes < nodes:
            self.tell("add")
            self.nodes += 1

    def tell(self, order: str) -> Any:
        """`head`, `add`, `other FOLDER` (a node with it on its path), `kill` (the oldest, without grace) or `behead`."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(order + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self) -> "RayCluster":
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        self.place.cleanup()


def main(place: str) -> None:
    """Do what is told, line by line."""
    from ray.cluster_utils import Cluster

    os.mkdir(f"{place}/ray")  # where Ray writes the address of the cluster
    cluster, added = Cluster(), []
    answers, sys.stdout = sys.stdout, sys.stderr
    small = {"object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}
    for order in map(str.strip, sys.stdin):
        answer = None
        if order == "head":
            cluster.add_node(num_cpus=0, include_dashboard=False, **small)
            answer = cluster.address
        elif order == "add":
            added.append(cluster.add_node(num_cpus=1, **small))
        elif order.startswith("other "):
            before = os.environ.get("PYTHONPATH", "")
            os.environ["PYTHONPATH"] = f"{order.split()[1]}{os.pathsep}{before}"
            added.append(cluster.add_node(num_cpus=1, **small))
            os.environ["PYTHONPATH"] = before
        elif order == "kill":
            cluster.remove_node(added.pop(0), allow_graceful=False)
        elif order == "behead":
            cluster.remove_node(cluster.head_node, allow_graceful=False)
        print(json.dumps(answer), file=answers, flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(sys.argv[1])
