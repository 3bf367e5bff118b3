"""The servers of the store: started, asked what they are and who leads, and found by the part that a fault needs."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from pathlib import Path

import nats
from nats import Ports
from processes import Process, Startable, start

# What nodes write halts into: a bucket, which is a stream with this name.
STREAM = "KV_hookyard"


@dataclass
class Store(Startable):
    name: str
    ports: Ports
    directory: Path
    process: Process | None = None

    @property
    def log(self) -> Path:
        return self.directory / "log"

    def start(self, program: str, into: list[str]) -> None:
        command = [*into, program, "--config", str(self.directory / "nats.conf")]
        self.process = start(self.name, command, self.log, self.directory)

    def ready(self) -> bool:
        """In the cluster, with what it has of the streams."""
        try:
            return self._ask("/healthz")[0] == 200
        except OSError:
            return False

    def leads(self) -> bool:
        """Whether it leads the stream of halts by its own account: during a partition, two servers may."""
        return self.stream().get("cluster", {}).get("leader") == self.name

    def stream(self) -> dict:
        """What it says of the stream of halts; empty if it does not answer or has none."""
        try:
            status, told = self._ask("/jsz?accounts=true&streams=true&config=true")
        except OSError:
            return {}
        accounts = told.get("account_details", []) if status == 200 else []
        streams = [stream for account in accounts for stream in account.get("stream_detail", [])]
        return next((stream for stream in streams if stream["name"] == STREAM), {})

    def _ask(self, path: str) -> tuple[int, dict]:
        host, _, port = self.ports.monitor.rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=1)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()


def leader(stores: list[Store]) -> Store | None:
    """That of the stream of halts, if just one server says that it is."""
    leading = [store for store in stores if store.leads()]
    return leading[0] if len(leading) == 1 else None


def settings(stores: list[Store], unsure: str, halts: str, replicas: int = 3) -> dict[str, str]:
    """Those of nodes, to keep their halts there."""
    return {
        "cluster.store": _listed([f"nats://{store.ports.clients}" for store in stores]),
        # Where a node sees whether a server writes to its disk before it answers.
        "cluster.monitoring": _listed([f"http://{store.ports.monitor}" for store in stores]),
        "cluster.unsure": unsure,
        "cluster.halts": halts,
        "cluster.replicas": str(replicas),
    }


def _listed(addresses: list[str]) -> str:
    return f"[{', '.join(addresses)}]"


def configure(stores: list[Store], lazy: int, apart: bool) -> None:
    ports = {store.name: store.ports for store in stores}
    for number, store in enumerate(reversed(stores)):
        text = nats.configuration(store.name, ports, store.directory / "data", lazy=number < lazy)
        if apart:
            text = nats.without_cluster(text)
        (store.directory / "nats.conf").write_text(text)
