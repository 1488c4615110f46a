"""Nodes as containers of the official image, started with testcontainers."""

from __future__ import annotations

import math
import re
import shlex
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from docker.errors import APIError
from docker.models.containers import Container
from testcontainers.core.docker_client import DockerClient

from kafkalab.cluster.backends.control import TIER_FULL, TIER_NOWHERE, TIER_STORE, Control, ManagedNode, holds_partition
from kafkalab.cluster.backends.docker_containers import (
    freeze,
    in_parallel,
    mirror_path,
    packed,
    put_files,
    remove,
    unless_gone,
)
from kafkalab.cluster.backends.docker_engine import ensure_image, expect_answers, image_of, require_resources
from kafkalab.cluster.backends.docker_networks import Networks
from kafkalab.cluster.backends.failure import broker_failed
from kafkalab.cluster.log_files import CHECKPOINTS
from kafkalab.cluster.ports import HOST, Reservation, reserve_port
from kafkalab.cluster.properties import TIER_FOLDER, Endpoint, Placement
from kafkalab.cluster.spec import CONTROLLER, INTERNAL, ClusterSpec, Node
from kafkalab.cluster.view import BrokerState
from kafkalab.distribution import JVM_OPTIONS
from kafkalab.errors import BackendUnavailable, PortInUse
from kafkalab.lifeline import RUN_LABEL, Run, reap
from kafkalab.security.files import private_folder, write_private
from kafkalab.settings import format_properties
from kafkalab.tar import unpack
from kafkalab.waiting import wait_until

__all__ = ["DockerBackend"]

_DATA = "/var/lib/kafka/data"
_TIER = "/var/lib/kafka/remote-tier"  # a volume that all nodes share
_TIER_JARS = Path("/mnt/shared/tiered-storage")
_CONTROLLER_PORT, _INTERNAL_PORT, _FIRST_CLIENT_PORT = 9090, 9091, 9092
_KILL_SECONDS = 30
_CHECKPOINT_SECONDS = 3.0
_PORT_ATTEMPTS = 5

# The image also reads settings from here, besides its environment.
_MOUNTED_SETTINGS = "/mnt/shared/config/server.properties"
_START = "/opt/kafka/bin/kafka-server-start.sh"
_IMAGE_USER = 1000
_KEY_TABLE = re.compile(r'keyTab="([^"]+)"')

# Folders of the image that hold files of ours.
_IMAGE_FOLDERS = ("/tmp", "/var", "/var/lib", "/var/lib/kafka", _DATA, "/mnt", "/mnt/shared", "/mnt/shared/config")


@dataclass
class _NodeContainer(ManagedNode):
    """A node that is a container."""

    ports: dict[str, int] = field(default_factory=dict)  # listener → port on this machine
    held: list[Reservation] = field(default_factory=list)  # keep the ports from others, also while the node is down
    container: Container | None = None  # none before its first start

    def release_ports(self) -> None:
        """Release the ports."""
        for reservation in self.held:
            reservation.close()
        self.held.clear()


class DockerBackend(Control):
    """Run each node in a container, with its client listeners published on loopback and its data in a volume."""

    name = "docker"

    def __init__(self, spec: ClusterSpec, run: Run) -> None:
        super().__init__(spec, run)
        # Our own reaper removes the containers with this process, and needs no image, unlike the one of testcontainers.
        self._testcontainers = DockerClient()
        self._client = self._testcontainers.client
        expect_answers(self._client)
        self._networks = Networks(self._client, run)
        self.managed: dict[int, _NodeContainer] = {}
        self._checkpoints_read: dict[Path, float] = {}  # when, for each mirror folder
        self._destroyed = threading.Event()

    # -- life ---------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        nodes = self.spec.nodes()
        if elsewhere := [listener.host for listener in self.spec.listeners if listener.host != HOST]:
            raise BackendUnavailable(f'containers listen on loopback only, not at {elsewhere[0]}; use backend="local"')
        require_resources(self._client, len(nodes), f"a cluster of {len(nodes)} nodes")
        self.run.uses_docker()
        ensure_image(self._client, image_of(self.spec.version))
        for node in nodes:
            self.managed[node.id] = self._reserve(node)
        in_parallel([self._networks.create_front, self._networks.create_peers])
        if self.spec.tiered_storage:
            self._create_tier()
        in_parallel([partial(self._start, member) for member in self.managed.values()])

    def add(self, node: Node) -> None:
        require_resources(self._client, 1, f"one more {'broker' if node.broker else 'controller'}")
        member = self._reserve(node)
        try:
            in_parallel([lambda: self._start(member)])
        except BaseException:
            member.release_ports()
            raise
        self.managed[node.id] = member

    def destroy(self) -> None:
        self._destroyed.set()
        label = {"label": f"{RUN_LABEL}={self.run.id}"}
        try:
            while containers := self._client.containers.list(all=True, filters=label, ignore_removed=True):
                in_parallel([partial(remove, container) for container in containers])
        except RuntimeError:
            pass  # the interpreter is ending and starts no threads; the next line removes one after the other
        reap(self.run)
        for member in self.managed.values():
            member.release_ports()
        self._client.close()

    def address(self, node_id: int, listener: str) -> str:
        return f"{HOST}:{self.managed[node_id].ports[listener]}"

    def state(self, node_id: int) -> BrokerState:
        status = self._status(node_id)
        if status == "paused":
            return "paused"
        if status == "created":
            return "starting"
        if status == "running":
            return "isolated" if node_id in self.isolated else "up"
        return self.managed[node_id].ended_state

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self, node_id: int) -> None:
        self._end(node_id, "SIGKILL", "kill", _KILL_SECONDS)

    def terminate(self, node_id: int, timeout: float) -> None:
        self._end(node_id, "SIGTERM", "stop", timeout)

    def _end(self, node_id: int, signal: str, verb: str, timeout: float) -> None:
        status = self._status(node_id)
        if status not in ("running", "paused"):
            return
        self.managed[node_id].ended_by = verb
        container = self._container(node_id)
        if status == "paused":
            unless_gone(container.unpause)  # a frozen process doesn't receive signals
        unless_gone(lambda: container.kill(signal))
        wait_until(
            lambda: self._status(node_id) not in ("running", "paused"),
            timeout,
            f"{self.managed[node_id].node.name} to end",
            last_seen=lambda: self.logs(node_id)[-2000:],
            interval=0.02,
        )

    def pause(self, node_id: int) -> None:
        freeze(self._container(node_id), self.managed[node_id].node.name)

    def resume(self, node_id: int) -> None:
        unless_gone(self._container(node_id).unpause)

    def fetch(self, version: str) -> None:
        ensure_image(self._client, image_of(version))

    def revive(self, node_id: int, changed: Mapping[str, str], version: str | None) -> None:
        member = self.managed[node_id]
        member.changed |= changed
        if version not in (None, member.version):
            self._change_version(member, version)
        self._launch(member, self._container(node_id))
        member.ended_by = ""

    def isolate(self, node_id: int) -> None:
        self._networks.disconnect(self._container(node_id))
        self.isolated.add(node_id)

    def heal(self, node_id: int) -> None:
        self._networks.connect(self._container(node_id), node_id)
        self.isolated.discard(node_id)

    def check_alive(self, node_id: int) -> None:
        member = self.managed[node_id]
        if not member.ended_by and self._status(node_id) == "exited":
            state = self._client.api.inspect_container(self._container(node_id).id)["State"]
            raise broker_failed(member.node, {"the container's log": self._output(node_id)}, state["ExitCode"])

    def logs(self, node_id: int) -> str:
        return str(self._container(node_id).logs(), errors="replace")

    def _output(self, node_id: int) -> str:
        """Return the node's output since its last start."""
        container = self._container(node_id)
        began = self._client.api.inspect_container(container.id)["State"]["StartedAt"]
        return str(container.logs(since=datetime.fromisoformat(began).timestamp()), errors="replace")

    def settings_file(self, node_id: int) -> Path:
        folder = private_folder(self.run.directory / f"node-{node_id}")
        mirror_path(self._container(node_id), f"{_DATA}/meta.properties", folder)
        return write_private(
            folder / "server.properties", format_properties(self._settings(self.managed[node_id], str(folder)))
        )

    def copy_log_dir(self, node_id: int, target: Path, topics: Collection[str] = ()) -> None:
        with tempfile.TemporaryDirectory(dir=self.run.directory) as draft:
            whole = Path(draft, Path(_DATA).name)

            def unpacked() -> bool:
                shutil.rmtree(whole, ignore_errors=True)
                with packed(self._container(node_id), _DATA) as archive:
                    unpack(archive, Path(draft))
                return True

            # If a file grows while the engine packs it, the archive breaks off there.
            wait_until(unpacked, 60, f"a whole copy of broker {node_id}'s data", ignore=(tarfile.ReadError,))
            if not topics:
                whole.rename(target)
                return
            target.mkdir()
            for folder in whole.iterdir():
                if holds_partition(folder.name, topics):
                    folder.rename(target / folder.name)

    def partition_data(self, node_id: int, name: str, mirrored: Path) -> Path:
        container, now = self._container(node_id), time.monotonic()
        paths = [name]
        if now - self._checkpoints_read.get(mirrored, -math.inf) > _CHECKPOINT_SECONDS:  # each file costs a request
            self._checkpoints_read[mirrored] = now
            paths += CHECKPOINTS
        for path in paths:
            mirror_path(container, f"{_DATA}/{path}", mirrored)
        return mirrored

    def delete_replica(self, node_id: int, name: str) -> None:
        self._do_as_root(f"rm -rf {shlex.quote(f'{_DATA}/{name}')}", volumes_from=[self._container(node_id).id])

    def point_tier_at(self, target: str) -> None:
        self._do_in_tier(f"ln -sfn {target} {TIER_FOLDER}")

    def tier_data(self, mirrored: Path) -> Path:
        mirror_path(self._container(min(self.managed)), f"{_TIER}/{TIER_STORE}", mirrored)
        return mirrored / TIER_STORE

    def renew_certificate(self, node_id: int) -> Path:
        keystore = super().renew_certificate(node_id)
        put_files(self._container(node_id), self._files(self.managed[node_id]), _IMAGE_FOLDERS, _IMAGE_USER)
        return keystore

    def hosts(self, node: Node) -> tuple[str, ...]:
        return HOST, "localhost", self._networks.peer_address(node.id)

    # -- parts --------------------------------------------------------------------------------------------------

    def _container(self, node_id: int) -> Container:
        container = self.managed[node_id].container
        assert container is not None, f"node {node_id} was never started"
        return container

    def _status(self, node_id: int) -> str:
        """Return a container's state in the engine's words: ``created``, ``running``, ``paused``, ``exited``."""
        container = self.managed[node_id].container
        return "created" if container is None else self._client.api.inspect_container(container.id)["State"]["Status"]

    def _network_name(self, kind: str) -> str:
        return f"kafkalab-{self.run.id}-{kind}"

    def _create_tier(self) -> None:
        self._client.volumes.create(self._network_name("tier"), labels={RUN_LABEL: self.run.id})
        targets = f"mkdir {TIER_STORE} && touch {TIER_NOWHERE} && ln -s {TIER_STORE} {TIER_FULL}"
        self._do_in_tier(f"{targets} && chown {_IMAGE_USER} . {TIER_STORE}")
        self.point_tier_at(TIER_STORE)

    def _tier_volume(self) -> dict[str, dict[str, str]]:
        return {self._network_name("tier"): {"bind": _TIER, "mode": "rw"}} if self.spec.tiered_storage else {}

    def _do_in_tier(self, script: str) -> None:
        self._do_as_root(f"cd {_TIER} && {script}", volumes=self._tier_volume())

    def _do_as_root(self, script: str, **volumes: Any) -> None:
        """Run a shell script on volumes, in a container that ends with it."""
        container = self._testcontainers.create(
            image_of(self.spec.version),
            command=["-c", script],
            entrypoint="sh",
            user="root",
            labels={RUN_LABEL: self.run.id},
            network_disabled=True,
            **volumes,
        )
        try:
            container.start()
            status = container.wait()["StatusCode"]
            if status:
                raise BackendUnavailable(f"{script!r} failed in a container: {container.logs().decode(errors='replace')}")
        finally:
            remove(container)

    def _reserve(self, node: Node) -> _NodeContainer:
        """Reserve ports for a node."""
        member = _NodeContainer(node, version=self.spec.version)
        self._take_ports(member)
        return member

    def _take_ports(self, member: _NodeContainer) -> None:
        member.release_ports()
        if not member.node.broker:
            return
        for listener, (port, insist) in self.spec.wanted_ports(member.node.id).items():
            reservation = reserve_port(port, insist=insist)
            member.ports[listener] = reservation.port
            member.held.append(reservation)

    def _start(self, member: _NodeContainer) -> None:
        """Create a node's container and start it."""
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            container = self._create(member)
            try:
                self._launch(member, container, self._storage(member.node))
                break
            except PortInUse:
                insisted = any(insist for _, insist in self.spec.wanted_ports(member.node.id).values())
                if insisted or attempt == _PORT_ATTEMPTS:
                    raise
                remove(container)
                self._take_ports(member)  # another process took one between choosing and publishing: choose others
        self._adopt(member, container)

    def _launch(self, member: _NodeContainer, container: Container, storage: Mapping[str, bytes] = {}) -> None:
        """Copy a node's files into its container, and its formatted data folder if there is one. Start the container."""
        put_files(container, {**self._files(member), **storage}, _IMAGE_FOLDERS, _IMAGE_USER)
        try:
            container.start()
        except APIError as error:
            raise self._start_failed(member, error) from error

    def _adopt(self, member: _NodeContainer, container: Container) -> None:
        self._networks.connect(container, member.node.id)
        member.container = container
        if self._destroyed.is_set():
            remove(container)

    def _is_first(self, node: Node) -> bool:
        """Return whether the image's own scripts can start this node: they only know a quorum of fixed voters."""
        return node.broker or node in self.spec.nodes()

    def _create(self, member: _NodeContainer, heir_of: Container | None = None) -> Container:
        """Create a node's container without starting it. It gets the data of another container, or none."""
        name = f"node-{member.node.id}" if heir_of is None else f"node-{member.node.id}-{member.version}"
        return self._testcontainers.create(
            image_of(member.version),
            None if self._is_first(member.node) else [_START, _MOUNTED_SETTINGS],
            name=self._network_name(name),
            environment=self._environment(),
            ports={f"{_FIRST_CLIENT_PORT + i}/tcp": (HOST, port) for i, port in enumerate(member.ports.values())},
            labels={RUN_LABEL: self.run.id},
            network=self._networks.front,
            use_config_proxy=False,  # it talks to nobody outside this machine
            init=True,  # passes SIGTERM on, also while the image's scripts still prepare the start
            volumes=self._tier_volume(),
            volumes_from=[heir_of.id] if heir_of is not None else [],
        )

    def _change_version(self, member: _NodeContainer, version: str) -> None:
        """Give a node that is down a container of another version, with the same data."""
        old = self._container(member.node.id)
        member.version = version
        container = self._create(member, heir_of=old)
        if member.node.id not in self.isolated:
            self._networks.disconnect(old)  # the new one needs its address
            self._networks.connect(container, member.node.id)
        member.container = container
        old.remove()  # not its volume, which the new one uses

    # A node's settings, and its own files such as key stores, are copied into its container before each start. The
    # settings hold passwords, and in the container's environment everybody could see them.

    def _files(self, member: _NodeContainer) -> dict[str, bytes]:
        """Return the files a node needs besides its data, by path: the same path in the container as here."""
        if self.keyring is not None and member.identity is None:
            self._certify(member)
        settings = self._settings(member)
        files = {str(path): path.read_bytes() for path in [*_named_files(settings), *_option_files(self.spec.java_options)]}
        files |= {str(_TIER_JARS / jar.name): jar.read_bytes() for jar in self.tier_jars()}
        return {**files, _MOUNTED_SETTINGS: format_properties(settings).encode()}

    def _storage(self, node: Node) -> dict[str, bytes]:
        """Return a formatted data folder if the image's own scripts can't make one."""
        if self._is_first(node) and not (self.keyring and self.keyring.first_scram()):
            return {}
        with tempfile.TemporaryDirectory(dir=self.run.directory) as folder:
            formatted = Path(folder, "data")
            self.format_data(node, formatted)
            return {f"{_DATA}/{path.name}": path.read_bytes() for path in formatted.iterdir()}

    def _start_failed(self, member: _NodeContainer, error: APIError) -> Exception:
        text = str(error.explanation)
        if "port is already allocated" in text or "address already in use" in text:
            ports = ", ".join(str(port) for port in member.ports.values())
            return PortInUse(f"a port of {member.node.name} was taken before it could listen there ({ports})")
        return BackendUnavailable(f"the Docker engine could not start {member.node.name}: {text}")

    def _settings(self, member: _NodeContainer, log_dir: str = _DATA) -> dict[str, str]:
        node, ports = member.node, member.ports
        endpoints = []
        own_address = self._networks.peer_address(node.id)
        if node.broker:
            for i, listener in enumerate(self.spec.opened()):
                endpoints.append(Endpoint(listener, f":{_FIRST_CLIENT_PORT + i}", f"{HOST}:{ports[listener]}"))
            endpoints.append(Endpoint(INTERNAL, f":{_INTERNAL_PORT}", f"{own_address}:{_INTERNAL_PORT}"))
        if node.controller:
            endpoints.append(Endpoint(CONTROLLER, f":{_CONTROLLER_PORT}", f"{own_address}:{_CONTROLLER_PORT}"))
        # An isolated broker still reaches its own controller.
        voters = {
            n.id: f"{HOST if n.id == node.id and node.broker else self._networks.peer_address(n.id)}:{_CONTROLLER_PORT}"
            for n in self.spec.nodes()
            if n.controller
        }
        tier_jars = [str(_TIER_JARS / jar.name) for jar in self.tier_jars()]
        return self.properties(member, Placement(endpoints, voters, log_dir, _TIER, tier_jars, loses_packets=True))

    def _environment(self) -> dict[str, str]:
        return {
            "CLUSTER_ID": self.cluster_id,
            "KAFKA_HEAP_OPTS": f"-Xmx{self.spec.heap}",
            "KAFKA_JVM_PERFORMANCE_OPTS": " ".join(JVM_OPTIONS),
            "KAFKA_OPTS": " ".join(self.spec.java_options),
            # By default the image doesn't log denied requests.
            "KAFKA_LOG4J_LOGGERS": "kafka.authorizer.logger=INFO",
        }


def _named_files(settings: Mapping[str, str]) -> list[Path]:
    """Return the files on this machine that settings name: key stores, trust stores, key tables."""
    named = [value for name, value in settings.items() if name.endswith(".location")]
    named += [path for value in settings.values() for path in _KEY_TABLE.findall(value)]
    return [Path(path) for path in named if Path(path).is_file()]


def _option_files(options: Iterable[str]) -> list[Path]:
    """Return the files on this machine that a JVM's options name."""
    return [path for option in options if (path := Path(option.partition("=")[2])).is_file()]
