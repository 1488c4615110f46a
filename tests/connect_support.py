"""What tests of Connect use: requests to its workers."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from kafkalab import ConnectCluster, wait_until
from kafkalab.services.answers import direct
from kafkalab.services.connect import ConnectWorker
from support import PATIENCE

__all__ = ["SMT", "TEXT", "ask", "put"]

TEXT = {f"{part}.converter": "org.apache.kafka.connect.storage.StringConverter" for part in ("key", "value")}
PLAIN_JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": False}
NOT_YET = (b"STOPPED state", b"tasks haven't stopped completely yet", b"rebalance is expected")
SMT = "org.apache.kafka.connect.transforms"


def ask(who: ConnectCluster | ConnectWorker, method: str, path: str, body: object = None) -> Any:
    """What a worker answers; asked again while workers share out their work, and while a connector stops."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(who.url + path, data, {"Content-Type": "application/json"}, method=method)

    def answer() -> bytes | None:
        try:
            with direct.open(request, timeout=PATIENCE) as response:
                return response.read() or b"null"
        except urllib.error.HTTPError as error:
            said = error.read()
            assert error.code == 409 or any(reason in said for reason in NOT_YET), said
            return None

    return json.loads(wait_until(answer, PATIENCE, f"{method} {path} to be answered"))


def put(connect: ConnectCluster, name: str, config: dict[str, object]) -> None:
    """Create a connector, or change its settings."""
    ask(connect, "PUT", f"/connectors/{name}/config", config)


def wait_until_failed(connect: ConnectCluster, name: str) -> None:
    """Wait until the only task of a connector has failed."""
    states = connect.states
    wait_until(
        lambda: states().get(f"{name} task 0") == "FAILED", PATIENCE, "the task to fail", last_seen=states, ignore=(OSError,)
    )
