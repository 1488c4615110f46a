"""Questions about Connect and its connectors, over REST."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.errors import ConnectFailed, WaitTimeout
from kafkalab.services import ConnectCluster
from kafkalab.services.answers import direct
from kafkalab.waiting import wait_until

__all__ = ["RUN_AGAIN", "SENT", "answer_of", "config_of", "errors_of", "runs", "target_lines"]

SENT = "Does the connector that writes it run with its task, what does it read, and to which topic does it write?"
"""Asked when a topic is empty."""

RUN_AGAIN = "Correct the settings, and run the connector's cell again: it takes away what the first attempt left."

_SECONDS = 20
_UNDER_WAY = {"UNASSIGNED", "RESTARTING"}  # for a moment, when its settings have changed


def answer_of(ctx: CheckContext, path: str) -> Any:
    """Return a worker's answer to a GET. While workers share out their work, or take in new settings, ask again.

    Raises
    ------
    urllib.error.HTTPError
        If the worker answers with an error.
    """
    return _answer(urllib.request.Request(_url(ctx) + path))


def _answer(request: urllib.request.Request) -> Any:
    def answer() -> list[Any]:
        try:
            with direct.open(request, timeout=_SECONDS) as response:
                return [json.load(response)]
        except urllib.error.HTTPError as error:
            # A request that a worker has begun when a rebalance is due fails with 500, and one that comes later with 409.
            if error.code != HTTPStatus.CONFLICT and b"rebalance is expected" not in error.read():
                raise
            return []

    return wait_until(answer, _SECONDS, "a worker's answer", interval=0.3)[0]


def _url(ctx: CheckContext) -> str:
    connect = ctx.answer("connect", ConnectCluster, "the ConnectCluster of this lab", may_be_empty=True)
    try:
        url: str = connect.url
    except ConnectFailed:
        raise Unmet("No worker runs. Start one with connect.start(), and look again.") from None
    return url


def config_of(ctx: CheckContext, connector: str) -> dict[str, str]:
    """Return the settings of a connector. Raise `Unmet` if it doesn't exist."""
    connectors = answer_of(ctx, "/connectors")
    if connector not in connectors:
        raise Unmet(f"There is no connector {connector!r} yet. The workers know: {', '.join(sorted(connectors)) or 'none'}.")
    return dict(answer_of(ctx, f"/connectors/{connector}/config"))


def errors_of(ctx: CheckContext, config: Mapping[str, str]) -> dict[str, list[str]]:
    """Return what a worker has to say against the settings of a connector: errors by setting. It makes no connector.

    Raises
    ------
    urllib.error.HTTPError
        If the worker answers with an error.
    """
    path = f"/connector-plugins/{config['connector.class']}/config/validate"
    body, kind = json.dumps(dict(config)).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(_url(ctx) + path, body, kind, method="PUT")
    fields = [field["value"] for field in _answer(request)["configs"]]
    return {field["name"]: field["errors"] for field in fields if field["errors"]}


def runs(ctx: CheckContext, connector: str) -> None:
    """Raise `Unmet` unless a connector runs with all its tasks."""
    config_of(ctx, connector)
    status: dict[str, Any] = {}

    def settled() -> bool:
        status.update(answer_of(ctx, f"/connectors/{connector}/status"))
        states = {part["state"] for part in (status["connector"], *status["tasks"])}
        # One that is stopped, paused or failed doesn't run, whatever becomes of the others.
        return bool(states - _UNDER_WAY - {"RUNNING"}) or not states & _UNDER_WAY

    try:
        with suppress(WaitTimeout):
            wait_until(settled, 15, f"{connector} to start again", interval=0.3)
    except urllib.error.HTTPError:  # 404: it was just created
        raise Unmet(f"{connector} has no state yet. Wait until it runs, and check again.") from None
    if not status:
        raise Unmet(f"The workers still share out their work. Wait until {connector} runs, and check again.")
    for part in sorted((status["connector"], *status["tasks"]), key=lambda part: part["state"] in _UNDER_WAY):
        name = f"task {part['id']} of {connector}" if "id" in part else connector
        if part["state"] != "RUNNING":
            raise Unmet(f"The state of {name} is {part['state']}. What does GET /connectors/{connector}/status say?")
    if not status["tasks"]:
        raise Unmet(f"{connector} has no task yet. Wait until it runs, and check again.")


def target_lines(ctx: CheckContext, connector: str) -> list[str]:
    """Return the lines of a file sink's file. Raise `Unmet` if there are none."""
    target = Path(config_of(ctx, connector).get("file", ""))
    lines = target.read_text(errors="replace").splitlines() if target.is_file() else []
    if not lines:
        raise Unmet(f"{connector} hasn't written a line to its file yet. Which topic does it read, and does its task run?")
    return lines
