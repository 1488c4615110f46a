"""The process that relays connections between the brokers of a local cluster."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.cluster.backends.processes import living_process, read_text
from kafkalab.cluster.ports import HOST
from kafkalab.errors import BrokerFailed, PortInUse
from kafkalab.lifeline import Run, started
from kafkalab.security.files import open_private

__all__ = ["RelayProcess"]


class RelayProcess:
    """A running relay: the port of its commands, its process id, and when that process started."""

    def __init__(self, run: Run, port: int, pid: int, since: int, child: subprocess.Popen[bytes] | None = None) -> None:
        self._run = run
        self._port = port
        self._pid = pid
        self._since = since
        self._child = child  # None if it's another process's child

    @classmethod
    def start(cls, run: Run) -> RelayProcess:
        """Start a relay. Raises `BrokerFailed` if it ends at once."""
        with open_private(run.directory / "relay.log") as errors:
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "kafkalab.cluster.relay"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=run.environment(),
                start_new_session=True,
                cwd="/",
            )
        assert child.stdout is not None
        line = child.stdout.readline()
        child.stdout.close()
        relay = cls(run, int(line or 0), child.pid, started(child.pid), child)
        if not line:
            child.wait()
            relay.check()
        return relay

    @property
    def state(self) -> dict[str, int]:
        """What another process needs to use this relay: arguments of this class."""
        return {"port": self._port, "pid": self._pid, "since": self._since}

    def check(self) -> None:
        """Raise `BrokerFailed` if it has ended: then no broker reaches another one."""
        status = self._child.poll() if self._child else None
        if status is None and living_process(self._pid, self._since):
            return
        log = read_text(self._run.directory / "relay.log")
        why = ended("the relay between brokers", status, {"relay.log": log})
        raise BrokerFailed(f"{why}\nIts last lines:\n{log_tail(log)}")

    def ask(self, **command: object) -> dict[str, Any]:
        """Send a command, and return the answer. Raises `PortInUse` if it can't take a port that the command insists on."""
        with socket.create_connection((HOST, self._port), 10) as connection:
            connection.sendall(json.dumps(command).encode() + b"\n")
            answer: dict[str, Any] = json.loads(connection.makefile().readline())
        if "port_in_use" in answer:
            raise PortInUse(answer["port_in_use"])
        return answer
