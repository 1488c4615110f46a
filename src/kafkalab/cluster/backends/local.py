"""Nodes as JVM processes on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import psutil

from kafkalab.cluster.backends.control import TIER_FULL, TIER_NOWHERE, TIER_STORE, Control, holds_partition
from kafkalab.cluster.backends.failure import broker_failed
from kafkalab.cluster.backends.processes import NodeProcess, copy_changing_tree, read_text
from kafkalab.cluster.backends.relay_process import RelayProcess
from kafkalab.cluster.ports import HOST
from kafkalab.cluster.properties import TIER_FOLDER, Endpoint, Placement
from kafkalab.cluster.spec import CONTROLLER, INTERNAL, ClusterSpec, Node
from kafkalab.cluster.view import BrokerState
from kafkalab.conditions import cache_executable, clock, localhost, open_files, processes, require, runs_executable
from kafkalab.distribution import (
    JVM_OPTIONS,
    NODE_LOG_SETTINGS,
    archive_options,
    classpath,
    gssapi_support,
    java_command,
)
from kafkalab.errors import ClusterNotRunning, PortInUse, WaitTimeout
from kafkalab.files import write_atomically
from kafkalab.lifeline import Run, reap, started
from kafkalab.limits import end_first, limit_kills
from kafkalab.resources import require_disk, require_memory
from kafkalab.security.files import open_private, write_private
from kafkalab.settings import format_properties
from kafkalab.waiting import wait_until

__all__ = ["LocalBackend"]

_MEMORY_OF_A_NODE = 170 << 20
_DISK_OF_A_NODE = 64 << 20
_SIGNAL_SECONDS = 10
_PORT_TAKEN = re.compile(r"failed to bind to \S*?:(\d+)")


class LocalBackend(Control):
    """Run each node as a JVM of its own, with its listeners on loopback and its data in the run's folder."""

    name = "local"

    def __init__(self, spec: ClusterSpec, run: Run) -> None:
        super().__init__(spec, run)
        self.managed: dict[int, NodeProcess] = {}
        self._relay: RelayProcess | None = None
        self._lock = threading.RLock()  # guards the fields; never held while waiting for a node to be ready
        self._destroyed = False

    # -- life ---------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        nodes = self.spec.nodes()
        require(localhost, runs_executable, cache_executable, open_files, lambda: processes(len(nodes)), clock)
        require_memory(len(nodes) * _MEMORY_OF_A_NODE, f"a cluster of {len(nodes)} nodes")
        require_disk(self.run.directory, len(nodes) * _DISK_OF_A_NODE)
        self._relay = RelayProcess.start(self.run)
        if self.spec.tiered_storage:
            (self._tier / TIER_STORE).mkdir(parents=True)
            (self._tier / TIER_NOWHERE).touch()
            (self._tier / TIER_FULL).symlink_to(TIER_STORE)
            self.point_tier_at(TIER_STORE)
        with self._lock:
            for node in nodes:
                self._prepare(node)
            for node in nodes:
                self._write_properties(self.managed[node.id])
                self._spawn(self.managed[node.id])

    def destroy(self) -> None:
        with self._lock:  # nothing is spawned after this
            self._destroyed = True
        reap(self.run)
        for process in self.managed.values():
            process.handle()  # collects the exit status of ended children

    def add(self, node: Node) -> None:
        require_memory(_MEMORY_OF_A_NODE, f"one more {'broker' if node.broker else 'controller'}")
        with self._lock:
            self._prepare(node)
            self._write_properties(self.managed[node.id])
            self._spawn(self.managed[node.id])

    def address(self, node_id: int, listener: str) -> str:
        return _joined(self.spec.host_of(listener), self.managed[node_id].advertised[listener])

    def state(self, node_id: int) -> BrokerState:
        process = self.managed[node_id]
        handle = process.handle()
        try:
            if handle is None:
                process.note_end()
                return process.ended_state
            if handle.status() == psutil.STATUS_STOPPED:
                return "paused"
        except psutil.NoSuchProcess:
            return "dead"
        return "isolated" if node_id in self.isolated else "up"

    def end(self, node_id: int) -> str:
        return self.managed[node_id].end or ""

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self, node_id: int) -> None:
        self._end(node_id, signal.SIGKILL, "kill", 10)

    def terminate(self, node_id: int, timeout: float) -> None:
        self._end(node_id, signal.SIGTERM, "stop", timeout)

    def _end(self, node_id: int, sign: signal.Signals, verb: str, timeout: float) -> None:
        process = self.managed[node_id]
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
            raise WaitTimeout(f"waited {timeout:g} s for {process.node.name} to end; its log ends:\n{tail}")
        process.handle()

    def pause(self, node_id: int) -> None:
        if handle := self.managed[node_id].handle():
            handle.suspend()
            self._await_signal(node_id, "freeze", lambda state: state not in ("up", "isolated"))

    def resume(self, node_id: int) -> None:
        if handle := self.managed[node_id].handle():
            handle.resume()
            self._await_signal(node_id, "go on", lambda state: state != "paused")

    def _await_signal(self, node_id: int, what: str, seen: Callable[[BrokerState], bool]) -> None:
        # A signal takes effect with a delay: a thread that waits for the disk finishes that first.
        name = self.managed[node_id].node.name
        wait_until(lambda: seen(self.state(node_id)), _SIGNAL_SECONDS, f"{name} to {what}", interval=0.005)

    def fetch(self, version: str) -> None:
        classpath(version)

    def revive(self, node_id: int, changed: Mapping[str, str], version: str | None) -> None:
        with self._lock:
            process = self.managed[node_id]
            if process.handle() is None:
                if changed:
                    process.changed |= changed
                    self._write_properties(process)
                process.version = version or process.version
                self._spawn(process)
                if self.isolated:
                    self._update_isolated()

    def isolate(self, node_id: int) -> None:
        with self._lock:
            self.isolated.add(node_id)
            self._update_isolated()

    def heal(self, node_id: int) -> None:
        with self._lock:
            self.isolated.discard(node_id)
            self._update_isolated()

    def check_alive(self, node_id: int) -> None:
        self._running_relay()
        process = self.managed[node_id]
        if process.ended_by or process.handle() is not None:
            return
        text = self._output(node_id)
        taken = _PORT_TAKEN.findall(text)
        if taken and self._move(process, int(taken[-1])):
            return
        raise broker_failed(process.node, self._outputs(node_id), process.child.poll() if process.child else None)

    def logs(self, node_id: int) -> str:
        return read_text(self._log(node_id))

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

    def delete_replica(self, node_id: int, name: str) -> None:
        shutil.rmtree(self._log_dir(node_id) / name, ignore_errors=True)

    def point_tier_at(self, target: str) -> None:
        draft = self._tier / "draft"
        draft.symlink_to(target)
        draft.replace(self._tier / TIER_FOLDER)

    def tier_data(self, mirrored: Path) -> Path:
        return self._tier / TIER_STORE

    def hosts(self, node: Node) -> tuple[str, ...]:
        return tuple(dict.fromkeys((HOST, "localhost", *(listener.host for listener in self.spec.listeners))))

    # -- handing over -------------------------------------------------------------------------------------------

    def write_state(self) -> None:
        """Save, in the run's folder, what another process needs to take over this cluster."""
        processes = [
            {"id": p.node.id, "bound": p.bound, "advertised": p.advertised, "pid": p.pid, "since": p.since}
            for p in self.managed.values()
        ]
        assert self._relay is not None, "the cluster was not launched"
        state = {"cluster_id": self.cluster_id, "relay": self._relay.state, "processes": processes}
        write_atomically(self.run.directory / "state.json", json.dumps(state))

    def read_state(self) -> None:
        """Take over a cluster of the same spec whose state another process saved."""
        state = json.loads((self.run.directory / "state.json").read_text())
        self.cluster_id = state["cluster_id"]
        self._relay = RelayProcess(self.run, **state["relay"])
        nodes = {node.id: node for node in self.spec.nodes()}
        self.managed = {p["id"]: NodeProcess(nodes[p.pop("id")], **p) for p in state["processes"]}

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

    def _running_relay(self) -> RelayProcess:
        """Return the relay. Raises `BrokerFailed` if it has ended, unless the cluster was stopped."""
        assert self._relay is not None, "the cluster was not launched"
        if not self._destroyed:
            self._relay.check()
        return self._relay

    def _update_isolated(self) -> None:
        pids = {i: p.pid for i, p in self.managed.items() if p.handle() is not None}
        self._running_relay().ask(do="isolate", nodes=sorted(self.isolated), pids=pids)

    def _prepare(self, node: Node) -> None:
        """Prepare ports, folder and storage of a node."""
        direct: dict[str, tuple[int, bool]] = {}
        relayed = [CONTROLLER] if node.controller else []
        if node.broker:
            direct = self.spec.wanted_ports(node.id)
            relayed = [INTERNAL, *relayed]
        ports = self._running_relay().ask(do="add", node=node.id, relayed=relayed, direct=direct)
        advertised = {**ports["advertised"], **{name: ports["bound"][name] for name in direct}}
        process = NodeProcess(node, self.spec.version, bound=ports["bound"], advertised=advertised)
        self.managed[node.id] = process
        self._temporary(node.id).mkdir(parents=True)
        if self.keyring:
            self._certify(process)
        self.format_data(node, self._log_dir(node.id))
        for file in self._log_dir(node.id).iterdir():  # one of them holds the first users' credentials
            file.chmod(0o600)

    def _write_properties(self, process: NodeProcess) -> None:
        endpoints = [
            Endpoint(name, _joined(self.spec.host_of(name), port), self.address(process.node.id, name))
            for name, port in process.bound.items()
        ]
        voters = {n.id: self.address(n.id, CONTROLLER) for n in self.spec.nodes() if n.controller}
        log_dir = self._log_dir(process.node.id)
        placement = Placement(endpoints, voters, str(log_dir), str(self._tier), [str(jar) for jar in self.tier_jars()])
        write_private(self.settings_file(process.node.id), format_properties(self.properties(process, placement)))

    def _spawn(self, process: NodeProcess) -> None:
        if self._destroyed:
            raise ClusterNotRunning(f"the cluster was stopped before {process.node.name} could start")
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
        process.ended_by, process.end, process.limit_kills = "", None, limit_kills()
        process.pid = process.child.pid
        end_first(process.pid)
        process.since = started(process.pid)

    def _move(self, process: NodeProcess, port: int) -> bool:
        """Start a node on another port if its port was taken before it could bind, unless the user asked for that port."""
        name = next((name for name, bound in process.bound.items() if bound == port), None)
        if name is None:
            return False
        if self.spec.wanted_ports(process.node.id).get(name) == (port, True):
            name = process.node.name
            raise PortInUse(f"port {port}, which was asked for {name}, was taken before it could listen there")
        with self._lock:
            moved = self._running_relay().ask(do="move", node=process.node.id, listener=name)["port"]
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
        return {output.name: read_text(output), log.name: read_text(log, self.managed[node_id].logged)}

    def _output(self, node_id: int) -> str:
        return "".join(self._outputs(node_id).values())


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
