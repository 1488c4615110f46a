"""Nodes as JVM processes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from kafkalab.cluster.backends.base import TIER_FULL, TIER_NOWHERE, TIER_STORE, Backend, holds_partition
from kafkalab.cluster.backends.failure import broker_failed, ended, log_tail, node_name
from kafkalab.cluster.ports import HOST
from kafkalab.cluster.properties import TIER_FOLDER, Endpoint, Tier, node_properties
from kafkalab.cluster.spec import CONTROLLER, INTERNAL, ClusterSpec, Node
from kafkalab.cluster.tier_jars import tier_jars
from kafkalab.cluster.view import BrokerState
from kafkalab.conditions import cache_executable, clock, localhost, open_files, processes, require, runs_executable
from kafkalab.distribution import (
    JVM_OPTIONS,
    KAFKA_VERSION,
    NODE_LOG_SETTINGS,
    archive_options,
    classpath,
    format_log_dir,
    gssapi_support,
    java_command,
    random_uuid,
)
from kafkalab.errors import BrokerFailed, ClusterNotRunning, PortInUse, WaitTimeout
from kafkalab.lifeline import Run, reap, started
from kafkalab.resources import require_disk, require_memory
from kafkalab.security.authority import Identity
from kafkalab.security.files import open_private, write_private
from kafkalab.settings import format_properties
from kafkalab.waiting import wait_until

__all__ = ["LocalBackend", "copy_changing_tree"]

_MEMORY_OF_A_NODE = 170 << 20
_DISK_OF_A_NODE = 64 << 20
_SIGNAL_SECONDS = 10
_HOSTS = (HOST, "localhost")
_PORT_TAKEN = re.compile(r"failed to bind to \S*?:(\d+)")


@dataclass
class _Process:
    """A node's process and ports. Every field can be saved, so that another process can take over."""

    node: Node
    bound: dict[str, int]  # listener → port on which the node listens
    advertised: dict[str, int]  # listener → port that others use (the relay's, for listeners between brokers)
    pid: int = 0
    started: int = 0
    version: str = KAFKA_VERSION
    logged: int = 0  # bytes of its log from before its last start
    ended_by: str = ""  # the verb that ended it, "" while it should run
    child: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def handle(self) -> psutil.Process | None:
        """Return the process, or None if it's gone."""
        if self.child is not None:
            self.child.poll()  # collects the exit status if it ended, so that no zombie stays behind
        return _alive(self.pid, self.started)


def _alive(pid: int, since: int) -> psutil.Process | None:
    """Return the process that got this id then, or None if it's gone."""
    try:
        process = psutil.Process(pid)
        return process if started(pid) == since and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.NoSuchProcess:
        return None


class LocalBackend(Backend):
    """Run each node as a JVM of its own, with its listeners on loopback and its data in the run's folder."""

    name = "local"

    def __init__(self, spec: ClusterSpec, run: Run) -> None:
        super().__init__(spec, run)
        self._processes: dict[int, _Process] = {}
        self._identities: dict[int, Identity] = {}
        self._changed: dict[int, dict[str, str]] = {}  # settings that a restart added, by node
        self._cluster_id = random_uuid()
        self._relay_port = 0
        self._relay: subprocess.Popen[bytes] | None = None  # None for a cluster that was taken over: it's another's child
        self._relay_process = (0, 0)  # its pid and its start time
        self._lock = threading.RLock()  # guards the fields; never held while waiting for a node to be ready
        self._destroyed = False

    # -- life ---------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        nodes = self.spec.nodes()
        require(localhost, runs_executable, cache_executable, open_files, lambda: processes(len(nodes)), clock)
        require_memory(len(nodes) * _MEMORY_OF_A_NODE, f"a cluster of {len(nodes)} nodes")
        require_disk(self.run.directory, len(nodes) * _DISK_OF_A_NODE)
        self._start_relay()
        if self.spec.tiered_storage:
            (self._tier / TIER_STORE).mkdir(parents=True)
            (self._tier / TIER_NOWHERE).touch()
            (self._tier / TIER_FULL).symlink_to(TIER_STORE)
            self.point_tier_at(TIER_STORE)
        with self._lock:
            for node in nodes:
                self._prepare(node)
            for node in nodes:
                self._write_properties(self._processes[node.id])
                self._spawn(self._processes[node.id])

    def destroy(self) -> None:
        with self._lock:  # nothing is spawned after this
            self._destroyed = True
        reap(self.run)
        for process in self._processes.values():
            process.handle()  # collects the exit status of ended children

    def add(self, node: Node) -> None:
        require_memory(_MEMORY_OF_A_NODE, f"one more {'broker' if node.broker else 'controller'}")
        with self._lock:
            self._prepare(node)
            self._write_properties(self._processes[node.id])
            self._spawn(self._processes[node.id])

    def nodes(self) -> dict[int, Node]:
        return {i: p.node for i, p in self._processes.items()}

    def address(self, node_id: int, listener: str) -> str:
        return f"{HOST}:{self._processes[node_id].advertised[listener]}"

    def state(self, node_id: int) -> BrokerState:
        process = self._processes[node_id]
        handle = process.handle()
        try:
            if handle is None:
                return "stopped" if process.ended_by == "stop" else "dead"
            if handle.status() == psutil.STATUS_STOPPED:
                return "paused"
        except psutil.NoSuchProcess:
            return "dead"
        return "isolated" if node_id in self.isolated else "up"

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self, node_id: int) -> None:
        self._end(node_id, signal.SIGKILL, "kill", 10)

    def terminate(self, node_id: int, timeout: float) -> None:
        self._end(node_id, signal.SIGTERM, "stop", timeout)

    def _end(self, node_id: int, sign: signal.Signals, verb: str, timeout: float) -> None:
        process = self._processes[node_id]
        handle = process.handle()
        if handle is None:
            return
        process.ended_by = verb
        with contextlib.suppress(psutil.NoSuchProcess):  # it's gone, and another thread has collected its exit status
            handle.send_signal(sign)
            handle.send_signal(signal.SIGCONT)  # a paused process receives SIGTERM only after it continues
        _, alive = psutil.wait_procs([handle], timeout)
        if alive and process.handle() is not None:
            tail = self._output(node_id)[-2000:]
            raise WaitTimeout(f"waited {timeout:g} s for {node_name(process.node)} to end; its log ends:\n{tail}")
        process.handle()

    def pause(self, node_id: int) -> None:
        if handle := self._processes[node_id].handle():
            handle.suspend()
            self._await_signal(node_id, "freeze", lambda state: state not in ("up", "isolated"))

    def resume(self, node_id: int) -> None:
        if handle := self._processes[node_id].handle():
            handle.resume()
            self._await_signal(node_id, "go on", lambda state: state != "paused")

    def _await_signal(self, node_id: int, what: str, seen: Callable[[BrokerState], bool]) -> None:
        # A signal takes effect with a delay: a thread that waits for the disk finishes that first.
        name = node_name(self._processes[node_id].node)
        wait_until(lambda: seen(self.state(node_id)), _SIGNAL_SECONDS, f"{name} to {what}", interval=0.005)

    def version(self, node_id: int) -> str:
        return self._processes[node_id].version

    def fetch(self, version: str) -> None:
        classpath(version)

    def revive(self, node_id: int, changed: Mapping[str, str], version: str | None) -> None:
        with self._lock:
            process = self._processes[node_id]
            if process.handle() is None:
                if changed:
                    self._changed[node_id] = {**self._changed.get(node_id, {}), **changed}
                    self._write_properties(process)
                process.version = version or process.version
                self._spawn(process)
                if self.isolated:
                    self._tell_isolated()

    def isolate(self, node_id: int) -> None:
        with self._lock:
            self.isolated.add(node_id)
            self._tell_isolated()

    def heal(self, node_id: int) -> None:
        with self._lock:
            self.isolated.discard(node_id)
            self._tell_isolated()

    def check_alive(self, node_id: int) -> None:
        self._check_relay()
        process = self._processes[node_id]
        if process.ended_by or process.handle() is not None:
            return
        text = self._output(node_id)
        taken = _PORT_TAKEN.findall(text)
        if taken and self._move(process, int(taken[-1])):
            return
        raise broker_failed(process.node, self._outputs(node_id), process.child.poll() if process.child else None)

    def logs(self, node_id: int) -> str:
        return _read(self._log(node_id))

    def settings_file(self, node_id: int) -> Path:
        return self._folder(node_id) / "server.properties"

    def copy_log_dir(self, node_id: int, target: Path, topics: Collection[str] = ()) -> None:
        if not topics:
            copy_changing_tree(self._log_dir(node_id), target)
            return
        target.mkdir()
        for folder in self._log_dir(node_id).iterdir():
            if holds_partition(folder.name, topics):
                copy_changing_tree(folder, target / folder.name)

    def partition_data(self, node_id: int, name: str, mirrored: Path) -> Path:
        return self._log_dir(node_id)

    def lose_log(self, node_id: int, name: str) -> None:
        shutil.rmtree(self._log_dir(node_id) / name, ignore_errors=True)

    def point_tier_at(self, target: str) -> None:
        draft = self._tier / "draft"
        draft.symlink_to(target)
        draft.replace(self._tier / TIER_FOLDER)

    def tier_data(self, mirrored: Path) -> Path:
        return self._tier / TIER_STORE

    def renew_certificate(self, node_id: int) -> Path:
        if self.keyring is None:
            return super().renew_certificate(node_id)
        self._identities[node_id] = self.keyring.node(node_id, _HOSTS)
        return self._identities[node_id].keystore

    # -- handing over -------------------------------------------------------------------------------------------

    def write_state(self) -> None:
        """Save, in the run's folder, what another process needs to take over this cluster."""
        processes = [
            {"id": p.node.id, "bound": p.bound, "advertised": p.advertised, "pid": p.pid, "started": p.started}
            for p in self._processes.values()
        ]
        relay = {"relay_port": self._relay_port, "relay_process": self._relay_process}
        state = {"cluster_id": self._cluster_id, **relay, "processes": processes}
        draft = self.run.directory / "state.draft"
        draft.write_text(json.dumps(state))
        draft.replace(self.run.directory / "state.json")

    def read_state(self) -> None:
        """Take over a cluster of the same spec whose state another process saved."""
        state = json.loads((self.run.directory / "state.json").read_text())
        self._cluster_id, self._relay_port = state["cluster_id"], state["relay_port"]
        self._relay_process = tuple(state["relay_process"])
        nodes = {node.id: node for node in self.spec.nodes()}
        self._processes = {p["id"]: _Process(nodes[p.pop("id")], **p) for p in state["processes"]}

    # -- parts --------------------------------------------------------------------------------------------------

    def _folder(self, node_id: int) -> Path:
        return self.run.directory / f"node-{node_id}"

    def _log_dir(self, node_id: int) -> Path:
        return self._folder(node_id) / "data"

    @property
    def _tier(self) -> Path:
        return self.run.directory / "remote-tier"

    def _temporary(self, node_id: int) -> Path:
        return self._folder(node_id) / "tmp"

    def _log(self, node_id: int) -> Path:
        return self._folder(node_id) / "node.log"

    def _start_relay(self) -> None:
        with open_private(self.run.directory / "relay.log") as errors:
            relay = subprocess.Popen(
                [sys.executable, "-P", "-m", "kafkalab.cluster.relay"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.run.environment(),
                start_new_session=True,
                cwd="/",
            )
        assert relay.stdout is not None
        line = relay.stdout.readline()
        relay.stdout.close()
        self._relay, self._relay_process = relay, (relay.pid, started(relay.pid))
        if not line:
            relay.wait()
            self._check_relay()
        self._relay_port = int(line)

    def _check_relay(self) -> None:
        """Raise `BrokerFailed` if the relay has ended: then no broker reaches another one."""
        status = self._relay.poll() if self._relay else None
        if self._destroyed or (status is None and _alive(*self._relay_process)):
            return
        log = _read(self.run.directory / "relay.log")
        why = ended("the relay between brokers", status, {"relay.log": log})
        raise BrokerFailed(f"{why}\nIts last lines:\n{log_tail(log)}")

    def _ask_relay(self, **command: object) -> dict[str, Any]:
        self._check_relay()
        with socket.create_connection((HOST, self._relay_port), 10) as connection:
            connection.sendall(json.dumps(command).encode() + b"\n")
            answer: dict[str, Any] = json.loads(connection.makefile().readline())
        if "port_in_use" in answer:
            raise PortInUse(answer["port_in_use"])
        return answer

    def _tell_isolated(self) -> None:
        pids = {i: p.pid for i, p in self._processes.items() if p.handle() is not None}
        self._ask_relay(do="isolate", nodes=sorted(self.isolated), pids=pids)

    def _prepare(self, node: Node) -> None:
        """Prepare ports, folder and storage of a node."""
        direct: dict[str, tuple[int, bool]] = {}
        relayed = [CONTROLLER] if node.controller else []
        if node.broker:
            direct = self.spec.wanted_ports(node.id)
            relayed = [INTERNAL, *relayed]
        ports = self._ask_relay(do="add", node=node.id, relayed=relayed, direct=direct)
        advertised = {**ports["advertised"], **{name: ports["bound"][name] for name in direct}}
        self._processes[node.id] = _Process(node, ports["bound"], advertised, version=self.spec.version)
        self._temporary(node.id).mkdir(parents=True)
        if self.keyring:
            self._identities[node.id] = self.keyring.node(node.id, _HOSTS)
        format_log_dir(
            self._log_dir(node.id),
            self._cluster_id,
            node.id,
            self.keyring.first_scram() if self.keyring else (),
            version=self.spec.version,
        )
        for file in self._log_dir(node.id).iterdir():  # one of them holds the first users' credentials
            file.chmod(0o600)

    def _write_properties(self, process: _Process) -> None:
        endpoints = [
            Endpoint(name, f"{HOST}:{port}", f"{HOST}:{process.advertised[name]}") for name, port in process.bound.items()
        ]
        voters = {n.id: self.address(n.id, CONTROLLER) for n in self.spec.nodes() if n.controller}
        node = process.node
        secured = (self.keyring, self._identities[node.id]) if self.keyring else None
        tier = Tier([str(jar) for jar in tier_jars()], str(self._tier)) if self.spec.tiered_storage else None
        settings = node_properties(
            self.spec, node, endpoints, voters, str(self._log_dir(node.id)), secured, self._changed.get(node.id), tier
        )
        write_private(self.settings_file(node.id), format_properties(settings))

    def _spawn(self, process: _Process) -> None:
        if self._destroyed:
            raise ClusterNotRunning(f"the cluster was stopped before {node_name(process.node)} could start")
        folder, log, version = self._folder(process.node.id), self._log(process.node.id), process.version
        options = (f"-Xmx{self.spec.heap}", *JVM_OPTIONS, *archive_options(version), *self.spec.java_options)
        classes = classpath(version)
        if "GSSAPI" in (folder / "server.properties").read_text():
            jars, more = gssapi_support()
            classes, options = os.pathsep.join([classes, *map(str, jars)]), (*options, *more)
        process.logged = log.stat().st_size if log.exists() else 0
        with open_private(folder / "output.log") as output:
            process.child = subprocess.Popen(
                [str(java_command()), *options,
                 f"-Dlog4j2.configurationFile={NODE_LOG_SETTINGS}", f"-Dkafkalab.log={log}",
                 # Libraries unpack native code there, and leave it behind if they are killed.
                 f"-Djava.io.tmpdir={self._temporary(process.node.id)}",
                 "-cp", classes, "kafka.Kafka", str(folder / "server.properties")],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=self.run.environment(), start_new_session=True, cwd=folder, umask=0o077,
            )  # fmt: skip
        process.ended_by = ""
        process.pid = process.child.pid
        process.started = started(process.pid)

    def _move(self, process: _Process, port: int) -> bool:
        """Start a node on another port if its port was taken before it could bind, unless the user asked for that port."""
        name = next((name for name, bound in process.bound.items() if bound == port), None)
        if name is None:
            return False
        if self.spec.wanted_ports(process.node.id).get(name) == (port, True):
            name = node_name(process.node)
            raise PortInUse(f"port {port}, which was asked for {name}, was taken before it could listen there")
        with self._lock:
            moved = self._ask_relay(do="move", node=process.node.id, listener=name)["port"]
            process.bound[name] = moved
            if process.advertised[name] == port:
                process.advertised[name] = moved
            self._log(process.node.id).unlink(missing_ok=True)
            self._write_properties(process)
            self._spawn(process)
        return True

    def _outputs(self, node_id: int) -> dict[str, str]:
        """Return the node's output since its last start, by the name of the file."""
        output, log = self._folder(node_id) / "output.log", self._log(node_id)
        return {output.name: _read(output), log.name: _read(log, self._processes[node_id].logged)}

    def _output(self, node_id: int) -> str:
        return "".join(self._outputs(node_id).values())


def copy_changing_tree(source: Path, target: Path) -> None:
    """Copy a folder even if others remove files and folders from it meanwhile."""

    def unless_gone(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for folder, _, names in os.walk(source, onerror=unless_gone):
        there = target / Path(folder).relative_to(source)
        there.mkdir(parents=True)
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(Path(folder, name), there / name)


def _read(path: Path, start: int = 0) -> str:
    return path.read_bytes()[start:].decode(errors="replace") if path.exists() else ""
