"""Ask a hub to start learners' servers, and run Python in them, as the learners would."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from kafkalab_hub.waiting import wait_until

__all__ = ["Hub", "HubError", "Kernel", "Server"]

_ANSWER_SECONDS = 60.0
_START_SECONDS = 180.0
# The hub's neighbours are on this machine, whatever proxy it has.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class HubError(RuntimeError):
    """The hub, or a learner's server, refused or didn't answer. The message says which, and what it said."""


@dataclass(frozen=True)
class Server:
    """A learner's server that runs.

    Attributes
    ----------
    learner
        The user's name.
    address
        Where the server is, through the hub's proxy.
    token
        One of the learner's. It lets whoever has it act as the learner.
    """

    learner: str
    address: str
    token: str

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Return the server's answer to a request of its REST interface. Raises `HubError`."""
        return _ask(f"{self.address}/api/{path}", self.token, body, method)

    @contextmanager
    def kernel(self) -> Iterator[Kernel]:
        """Start a kernel of the course. It ends afterwards, and with it the clusters that it started."""
        id = self.ask("kernels", {"name": "python3"})["id"]
        try:
            yield Kernel(self, id)
        finally:
            self.ask(f"kernels/{id}", method="DELETE")

    def run(self, code: str, timeout: float) -> str:
        """Run Python in a kernel of its own, and return what it printed. Raises like `Kernel.run`."""
        with self.kernel() as kernel:
            return kernel.run(code, timeout)


@dataclass(frozen=True)
class Kernel:
    """A kernel of a learner's server."""

    server: Server
    id: str

    def run(self, code: str, timeout: float) -> str:
        """Run Python, and return what it printed.

        Raises
        ------
        HubError
            If it raises, or isn't done within so many seconds.
        """
        try:
            return asyncio.run(asyncio.wait_for(self._run(code), timeout))
        except TimeoutError:
            raise HubError(f"{self.server.learner}'s kernel wasn't done after {timeout:g} s") from None

    async def _run(self, code: str) -> str:
        who = f"{self.server.learner}'s kernel"
        address = f"{self.server.address}/api/kernels/{self.id}/channels".replace("http", "ws", 1)
        headers = _headers(self.server.token)
        socket = await websocket_connect(HTTPRequest(address, headers=headers, connect_timeout=_ANSWER_SECONDS))
        request = uuid.uuid4().hex
        content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
        header = {"msg_id": request, "username": "", "session": request, "msg_type": "execute_request", "version": "5.3"}
        sent = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        await socket.write_message(json.dumps(sent))
        printed = ""
        while (received := await socket.read_message()) is not None:
            message = json.loads(received)
            kind, said = message["msg_type"], message["content"]
            if kind == "status" and said["execution_state"] in ("restarting", "dead"):
                raise HubError(f"{who} ended while it ran this. Perhaps it reached the memory limit.\n{printed}")
            if message["parent_header"].get("msg_id") != request:
                continue
            if kind == "stream" and said["name"] == "stdout":
                printed += said["text"]
            elif kind == "error":
                raise HubError(f"in {who}: {said['ename']}: {said['evalue']}\n{printed}")
            elif kind == "status" and said["execution_state"] == "idle":
                socket.close()
                return printed
        raise HubError(f"{who} ended\n{printed}")


@dataclass(frozen=True)
class Hub:
    """A hub that runs.

    Parameters
    ----------
    address
        What browsers call: ``https://hub.example.org``.
    token
        An administrator's, or a service's with the scopes ``admin:users``, ``admin:servers``, ``tokens`` and
        ``access:servers``.
    """

    address: str
    token: str

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Return the hub's answer to a request of its REST interface. Raises `HubError`."""
        return _ask(f"{self.address.rstrip('/')}/hub/api/{path}", self.token, body, method)

    def start(self, learner: str, timeout: float = _START_SECONDS) -> Server:
        """Start a learner's server unless it runs, wait until it answers, and return it.

        Raises
        ------
        HubError
            If the hub doesn't know the learner, or the server doesn't answer in time.
        """
        self.request_start(learner)
        self._wait(lambda: self._is_ready(learner), timeout, learner, "to answer")
        token = self.ask(f"users/{learner}/tokens", {"note": "kafkalab-hub", "expires_in": 24 * 3600})["token"]
        return Server(learner, f"{self.address.rstrip('/')}/user/{learner}", token)

    def request_start(self, learner: str) -> None:
        """Ask for a learner's server, and don't wait for it."""
        if not self.ask(f"users/{learner}")["servers"]:
            self.ask(f"users/{learner}/server", {})

    def stop(self, learner: str, timeout: float = _ANSWER_SECONDS) -> None:
        """Stop a learner's server, and wait until it has ended. Raises like `start`."""
        self.ask(f"users/{learner}/server", method="DELETE")
        self._wait(lambda: not self.ask(f"users/{learner}")["servers"], timeout, learner, "to end")

    def _wait(self, condition: Callable[[], bool], timeout: float, learner: str, what: str) -> None:
        try:
            wait_until(
                condition, timeout, f"{learner}'s server {what}", last_seen=lambda: self.ask(f"users/{learner}")["servers"]
            )
        except TimeoutError as error:
            raise HubError(str(error)) from None

    def _is_ready(self, learner: str) -> bool:
        user = self.ask(f"users/{learner}")
        if not user["servers"] and not user.get("pending"):
            raise HubError(f"{learner}'s server ended while it was starting. The hub's log says why.")
        return any(server["ready"] for server in user["servers"].values())


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"token {token}", "Content-Type": "application/json"}


def _ask(address: str, token: str, body: Any, method: str | None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, _headers(token), method=method)
    try:
        with _direct.open(request, timeout=_ANSWER_SECONDS) as answer:
            return json.loads(answer.read() or "null")
    except urllib.error.HTTPError as error:
        raise HubError(f"{address} says {error.code}: {error.read().decode(errors='replace')[:500]}") from None
    except OSError as error:
        raise HubError(f"{address} doesn't answer: {error}") from None
