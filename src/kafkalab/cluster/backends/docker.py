"""Nodes as containers of the official image, started with testcontainers.

A cluster has two networks. Nodes find each other on *peers* only, so taking a node off that network cuts it off from
its peers. Ports are published through *front*, so they stay reachable meanwhile. Nodes know each other by fixed
addresses instead of names, because Docker forgets the name of a container that is down, and can take seconds to say so.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
import shutil
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from docker.errors import APIError, NotFound
from docker.models.containers import Container
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool
from testcontainers.core.docker_client import DockerClient

from kafkalab.cluster.backends.base import TIER_FULL, TIER_NOWHERE, TIER_STORE, Backend, holds_partition
from kafkalab.cluster.backends.docker_engine import ensure_image, expect_answers, image_of, require_resources, why_unusable
from kafkalab.cluster.backends.failure import broker_failed, node_name
from kafkalab.cluster.log_files import CHECKPOINTS
from kafkalab.cluster.ports import HOST, Reservation, reserve_port
from kafkalab.cluster.properties import TIER_FOLDER, Endpoint, Tier, node_properties
from kafkalab.cluster.spec import CONTROLLER, INTERNAL, ClusterSpec, Node
from kafkalab.cluster.tier_jars import tier_jars
from kafkalab.cluster.view import BrokerState
from kafkalab.distribution import JVM_OPTIONS, KAFKA_VERSION, format_log_dir, random_uuid
from kafkalab.errors import BackendUnavailable, PortInUse
from kafkalab.lifeline import RUN_LABEL, Run, reap
from kafkalab.security.authority import Identity
from kafkalab.security.files import private_folder, write_private
from kafkalab.settings import format_properties
from kafkalab.tar import mirror, unpack
from kafkalab.waiting import wait_until

__all__ = ["DockerBackend", "why_unusable"]

_DATA = "/var/lib/kafka/data"
_TIER = "/var/lib/kafka/remote-tier"  # a volume that all nodes share
_TIER_JARS = Path("/mnt/shared/tiered-storage")
_CONTROLLER_PORT, _INTERNAL_PORT, _FIRST_CLIENT_PORT = 9090, 9091, 9092
_KILL_SECONDS = 30
_CHECKPOINT_SECONDS = 3.0
_FREEZE_SECONDS = 10
_PORT_ATTEMPTS = 5
_SUBNET_ATTEMPTS = 10
# Docker hands out addresses from the bottom of a subnet: node 0 gets the 17th.
_FIRST_ADDRESS = 16

# The image also reads settings from here, besides its environment.
_MOUNTED_SETTINGS = "/mnt/shared/config/server.properties"
_START = "/opt/kafka/bin/kafka-server-start.sh"
_IMAGE_USER = 1000
_KEY_TABLE = re.compile(r'keyTab="([^"]+)"')

# While a node is isolated, its connection attempts get no answer. A short timeout makes it try again soon after it's
# healed.
_SETTINGS = {"socket.connection.setup.timeout.ms": "1000", "socket.connection.setup.timeout.max.ms": "2000"}


@dataclass
class _Member:
    """A node, its ports and its container."""

    node: Node
    ports: dict[str, int] = field(default_factory=dict)  # listener → port on this machine
    held: list[Reservation] = field(default_factory=list)  # keep the ports from others, also while the node is down
    container: Container | None = None
    ended_by: str = ""  # the verb that ended it, "" while it should run
    identity: Identity | None = None  # its certificate, in a secured cluster
    changed: dict[str, str] = field(default_factory=dict)  # settings that a restart added
    version: str = KAFKA_VERSION

    def release_ports(self) -> None:
        """Release the ports."""
        for reservation in self.held:
            reservation.close()
        self.held.clear()


class DockerBackend(Backend):
    """Run each node in a container, with its client listeners published on loopback and its data in a volume."""

    name = "docker"

    def __init__(self, spec: ClusterSpec, run: Run) -> None:
        super().__init__(spec, run)
        # Our own reaper removes the containers with this process, and needs no image, unlike the one of testcontainers.
        self._testcontainers = DockerClient()
        self._client = self._testcontainers.client
        expect_answers(self._client)
        self._cluster_id = random_uuid()
        self._members: dict[int, _Member] = {}
        self._checkpoints_read: dict[Path, float] = {}  # when, for each mirror folder
        self._destroyed = threading.Event()

    # -- life ---------------------------------------------------------------------------------------------------

    def launch(self) -> None:
        nodes = self.spec.nodes()
        require_resources(self._client, len(nodes), f"a cluster of {len(nodes)} nodes")
        self.run.uses_docker()
        ensure_image(self._client, image_of(self.spec.version))
        for node in nodes:
            self._members[node.id] = self._reserve(node)
        _side_by_side([lambda: self._create_network("front"), self._create_peers])
        if self.spec.tiered_storage:
            self._create_tier()
        _side_by_side([partial(self._start, member) for member in self._members.values()])

    def add(self, node: Node) -> None:
        require_resources(self._client, 1, f"one more {'broker' if node.broker else 'controller'}")
        member = self._reserve(node)
        try:
            _side_by_side([lambda: self._start(member)])
        except BaseException:
            member.release_ports()
            raise
        self._members[node.id] = member

    def destroy(self) -> None:
        self._destroyed.set()
        label = {"label": f"{RUN_LABEL}={self.run.id}"}
        try:
            while containers := self._client.containers.list(all=True, filters=label, ignore_removed=True):
                _side_by_side([partial(_remove, container) for container in containers])
        except RuntimeError:
            pass  # the interpreter is ending and starts no threads; the next line removes one after the other
        reap(self.run)
        for member in self._members.values():
            member.release_ports()
        self._client.close()

    def nodes(self) -> dict[int, Node]:
        return {i: member.node for i, member in self._members.items()}

    def address(self, node_id: int, listener: str) -> str:
        return f"{HOST}:{self._members[node_id].ports[listener]}"

    def state(self, node_id: int) -> BrokerState:
        status = self._status(node_id)
        if status == "paused":
            return "paused"
        if status == "created":
            return "starting"
        if status == "running":
            return "isolated" if node_id in self.isolated else "up"
        return "stopped" if self._members[node_id].ended_by == "stop" else "dead"

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self, node_id: int) -> None:
        self._end(node_id, "SIGKILL", "kill", _KILL_SECONDS)

    def terminate(self, node_id: int, timeout: float) -> None:
        self._end(node_id, "SIGTERM", "stop", timeout)

    def _end(self, node_id: int, signal: str, verb: str, timeout: float) -> None:
        status = self._status(node_id)
        if status not in ("running", "paused"):
            return
        self._members[node_id].ended_by = verb
        container = self._container(node_id)
        if status == "paused":
            _unless_gone(container.unpause)  # a frozen process doesn't receive signals
        _unless_gone(lambda: container.kill(signal))
        wait_until(
            lambda: self._status(node_id) not in ("running", "paused"),
            timeout,
            f"{node_name(self._members[node_id].node)} to end",
            last_seen=lambda: self.logs(node_id)[-2000:],
            interval=0.02,
        )

    def pause(self, node_id: int) -> None:
        _freeze(self._container(node_id), node_name(self._members[node_id].node))

    def resume(self, node_id: int) -> None:
        _unless_gone(self._container(node_id).unpause)

    def version(self, node_id: int) -> str:
        return self._members[node_id].version

    def fetch(self, version: str) -> None:
        ensure_image(self._client, image_of(version))

    def revive(self, node_id: int, changed: Mapping[str, str], version: str | None) -> None:
        member = self._members[node_id]
        member.changed |= changed
        if version not in (None, member.version):
            self._change_version(member, version)
        self._launch(member, self._container(node_id))
        member.ended_by = ""

    def isolate(self, node_id: int) -> None:
        self._peers().disconnect(self._container(node_id))
        self.isolated.add(node_id)

    def heal(self, node_id: int) -> None:
        self._connect(self._container(node_id), node_id)
        self.isolated.discard(node_id)

    def check_alive(self, node_id: int) -> None:
        member = self._members[node_id]
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
        self._mirror(self._container(node_id), f"{_DATA}/meta.properties", folder)
        settings = {**self._settings(self._members[node_id]), "log.dirs": str(folder)}
        return write_private(folder / "server.properties", format_properties(settings))

    def copy_log_dir(self, node_id: int, target: Path, topics: Collection[str] = ()) -> None:
        with tempfile.TemporaryDirectory(dir=self.run.directory) as draft:
            whole = Path(draft, Path(_DATA).name)

            def unpacked() -> bool:
                shutil.rmtree(whole, ignore_errors=True)
                with self._packed(self._container(node_id), _DATA) as archive:
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
            self._mirror(container, f"{_DATA}/{path}", mirrored)
        return mirrored

    def _mirror(self, container: Container, path: str, folder: Path) -> None:
        try:
            # What stands before the place where an archive breaks off is correct.
            with contextlib.suppress(tarfile.ReadError), self._packed(container, path) as archive:
                mirror(archive, folder)
        except NotFound:
            there = folder / Path(path).name
            if there.is_dir():
                shutil.rmtree(there)
            else:
                there.unlink(missing_ok=True)

    @staticmethod
    @contextlib.contextmanager
    def _packed(container: Container, path: str) -> Iterator[tarfile.TarFile]:
        """Open the archive that the engine makes of a path in a container."""
        chunks, _ = container.get_archive(path)
        with tempfile.TemporaryFile() as spool:
            for chunk in chunks:
                spool.write(chunk)
            spool.seek(0)
            with tarfile.open(fileobj=spool) as archive:
                yield archive

    def lose_log(self, node_id: int, name: str) -> None:
        self._do_as_root(f"rm -rf {shlex.quote(f'{_DATA}/{name}')}", volumes_from=[self._container(node_id).id])

    def point_tier_at(self, target: str) -> None:
        self._do_in_tier(f"ln -sfn {target} {TIER_FOLDER}")

    def tier_data(self, mirrored: Path) -> Path:
        self._mirror(self._container(min(self._members)), f"{_TIER}/{TIER_STORE}", mirrored)
        return mirrored / TIER_STORE

    def renew_certificate(self, node_id: int) -> Path:
        if self.keyring is None:
            return super().renew_certificate(node_id)
        member = self._members[node_id]
        member.identity = self.keyring.node(node_id, self._hosts(member.node))
        self._put(self._container(node_id), self._files(member))
        return member.identity.keystore

    # -- parts --------------------------------------------------------------------------------------------------

    def _container(self, node_id: int) -> Container:
        container = self._members[node_id].container
        assert container is not None, f"node {node_id} was never started"
        return container

    def _status(self, node_id: int) -> str:
        """Return a container's state in the engine's words: ``created``, ``running``, ``paused``, ``exited``."""
        container = self._members[node_id].container
        return "created" if container is None else self._client.api.inspect_container(container.id)["State"]["Status"]

    def _network_name(self, kind: str) -> str:
        return f"kafkalab-{self.run.id}-{kind}"

    def _create_network(self, kind: str, ipam: IPAMConfig | None = None) -> Network:
        # A container's outgoing traffic and its published ports use the network whose name sorts first: *front*.
        return self._client.networks.create(self._network_name(kind), ipam=ipam, labels={RUN_LABEL: self.run.id})

    def _create_peers(self) -> None:
        """Create the nodes' network with a subnet we choose, because Docker allows fixed addresses only there."""
        for attempt in range(1, _SUBNET_ATTEMPTS + 1):
            free = self._create_network("peers")  # the engine knows which subnets are free
            free.reload()
            subnet = free.attrs["IPAM"]["Config"][0]["Subnet"]
            free.remove()
            try:
                self._create_network("peers", IPAMConfig(pool_configs=[IPAMPool(subnet=subnet)]))
            except APIError:  # another cluster got this subnet in between
                if attempt == _SUBNET_ATTEMPTS:
                    raise
            else:
                self._subnet = IPv4Network(subnet)
                return

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
            _remove(container)

    def _peers(self) -> Network:
        return self._client.networks.get(self._network_name("peers"))

    def _peer_address(self, node_id: int) -> str:
        return str(self._subnet[_FIRST_ADDRESS + node_id])

    def _connect(self, container: Container, node_id: int) -> None:
        self._peers().connect(container, ipv4_address=self._peer_address(node_id))

    def _reserve(self, node: Node) -> _Member:
        """Reserve ports for a node."""
        member = _Member(node, version=self.spec.version)
        self._take_ports(member)
        return member

    def _take_ports(self, member: _Member) -> None:
        member.release_ports()
        if not member.node.broker:
            return
        for listener, (port, insist) in self.spec.wanted_ports(member.node.id).items():
            reservation = reserve_port(port, insist=insist)
            member.ports[listener] = reservation.port
            member.held.append(reservation)

    def _start(self, member: _Member) -> None:
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
                _remove(container)
                self._take_ports(member)  # another process took one between choosing and publishing: choose others
        self._adopt(member, container)

    def _launch(self, member: _Member, container: Container, storage: Mapping[str, bytes] = {}) -> None:
        """Copy a node's files into its container, and its formatted data folder if there is one. Start the container."""
        self._put(container, {**self._files(member), **storage})
        try:
            container.start()
        except APIError as error:
            raise self._start_failed(member, error) from error

    def _adopt(self, member: _Member, container: Container) -> None:
        self._connect(container, member.node.id)
        member.container = container
        if self._destroyed.is_set():
            _remove(container)

    def _is_first(self, node: Node) -> bool:
        """Return whether the image's own scripts can start this node: they only know a quorum of fixed voters."""
        return node.broker or node in self.spec.nodes()

    def _create(self, member: _Member, heir_of: Container | None = None) -> Container:
        """Create a node's container without starting it. It gets the data of another container, or none."""
        name = f"node-{member.node.id}" if heir_of is None else f"node-{member.node.id}-{member.version}"
        return self._testcontainers.create(
            image_of(member.version),
            None if self._is_first(member.node) else [_START, _MOUNTED_SETTINGS],
            name=self._network_name(name),
            environment=self._environment(),
            ports={f"{_FIRST_CLIENT_PORT + i}/tcp": (HOST, port) for i, port in enumerate(member.ports.values())},
            labels={RUN_LABEL: self.run.id},
            network=self._network_name("front"),
            use_config_proxy=False,  # it talks to nobody outside this machine
            init=True,  # passes SIGTERM on, also while the image's scripts still prepare the start
            volumes=self._tier_volume(),
            volumes_from=[heir_of.id] if heir_of is not None else [],
        )

    def _change_version(self, member: _Member, version: str) -> None:
        """Give a node that is down a container of another version, with the same data."""
        old = self._container(member.node.id)
        member.version = version
        container = self._create(member, heir_of=old)
        if member.node.id not in self.isolated:
            self._peers().disconnect(old)  # the new one needs its address
            self._connect(container, member.node.id)
        member.container = container
        old.remove()  # not its volume, which the new one uses

    # A node's settings, and its own files such as key stores, are copied into its container before each start. The
    # settings hold passwords, and in the container's environment everybody could see them.

    def _hosts(self, node: Node) -> tuple[str, ...]:
        return (HOST, "localhost", self._peer_address(node.id))

    def _files(self, member: _Member) -> dict[str, bytes]:
        """Return the files a node needs besides its data, by path: the same path in the container as here."""
        if self.keyring is not None and member.identity is None:
            member.identity = self.keyring.node(member.node.id, self._hosts(member.node))
        settings = self._settings(member)
        files = {str(path): path.read_bytes() for path in [*_named_files(settings), *_option_files(self.spec.java_options)]}
        if self.spec.tiered_storage:
            files |= {str(_TIER_JARS / jar.name): jar.read_bytes() for jar in tier_jars()}
        return {**files, _MOUNTED_SETTINGS: format_properties(settings).encode()}

    def _storage(self, node: Node) -> dict[str, bytes]:
        """Return a formatted data folder if the image's own scripts can't make one."""
        first_users = self.keyring.first_scram() if self.keyring else ()
        if not first_users and self._is_first(node):
            return {}
        with tempfile.TemporaryDirectory(dir=self.run.directory) as folder:
            formatted = Path(folder, "data")
            format_log_dir(formatted, self._cluster_id, node.id, first_users, version=self.spec.version)
            return {f"{_DATA}/{path.name}": path.read_bytes() for path in formatted.iterdir()}

    def _put(self, container: Container, files: Mapping[str, bytes]) -> None:
        """Put files into a container, readable only by its user."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            there = ("/", "/tmp", "/var", "/var/lib", "/mnt", _DATA)
            made = {*there, str(Path(_MOUNTED_SETTINGS).parent), str(Path(_DATA).parent)}
            for path, content in files.items():
                for parent in reversed(Path(path).parents):
                    if str(parent) not in made:
                        made.add(str(parent))
                        tar.addfile(_entry(str(parent), 0o755, tarfile.DIRTYPE))
                entry = _entry(path, 0o600)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        container.put_archive("/", archive.getvalue())

    def _start_failed(self, member: _Member, error: APIError) -> Exception:
        text = str(error.explanation)
        if "port is already allocated" in text or "address already in use" in text:
            ports = ", ".join(str(port) for port in member.ports.values())
            return PortInUse(f"a port of {node_name(member.node)} was taken before it could listen there ({ports})")
        return BackendUnavailable(f"the Docker engine could not start {node_name(member.node)}: {text}")

    def _settings(self, member: _Member) -> dict[str, str]:
        node, ports = member.node, member.ports
        endpoints = []
        own_address = self._peer_address(node.id)
        if node.broker:
            for i, listener in enumerate(self.spec.opened()):
                endpoints.append(Endpoint(listener, f":{_FIRST_CLIENT_PORT + i}", f"{HOST}:{ports[listener]}"))
            endpoints.append(Endpoint(INTERNAL, f":{_INTERNAL_PORT}", f"{own_address}:{_INTERNAL_PORT}"))
        if node.controller:
            endpoints.append(Endpoint(CONTROLLER, f":{_CONTROLLER_PORT}", f"{own_address}:{_CONTROLLER_PORT}"))
        # An isolated broker still reaches its own controller.
        voters = {
            n.id: f"{HOST if n.id == node.id and node.broker else self._peer_address(n.id)}:{_CONTROLLER_PORT}"
            for n in self.spec.nodes()
            if n.controller
        }
        secured = (self.keyring, member.identity) if self.keyring is not None and member.identity is not None else None
        tier = Tier([str(_TIER_JARS / jar.name) for jar in tier_jars()], _TIER) if self.spec.tiered_storage else None
        return {**_SETTINGS, **node_properties(self.spec, node, endpoints, voters, _DATA, secured, member.changed, tier)}

    def _environment(self) -> dict[str, str]:
        return {
            "CLUSTER_ID": self._cluster_id,
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


def _entry(path: str, mode: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.mode, entry.type = mode, kind
    entry.mtime = int(time.time())  # a broker recognizes a new key store by its time
    entry.uid = entry.gid = _IMAGE_USER
    return entry


def _side_by_side(tasks: Iterable[Callable[[], None]]) -> None:
    """Run tasks in parallel. When this returns, also after an interrupt, none of them is running."""
    tasks = list(tasks)
    with ThreadPoolExecutor(len(tasks)) as pool:
        for future in [pool.submit(task) for task in tasks]:
            future.result()


def _remove(container: Container) -> None:
    """Remove a container and its volumes, also if another process is already removing it."""
    try:
        container.remove(force=True, v=True)
    except NotFound:
        pass
    except APIError as error:
        if error.status_code != 409:  # its removal is already in progress
            raise


def _freeze(container: Container, name: str) -> None:
    """Pause a container. Leave one alone that has ended or is already paused.

    With version 1 of control groups, runc tries only for a few milliseconds and then lets all threads continue. A
    thread that waits for the disk can't be frozen before that is done.
    """
    told = ""

    def frozen() -> bool:
        nonlocal told
        try:
            _unless_gone(container.pause)
        except APIError as error:
            told = str(error.explanation)
            if "unable to freeze" not in told:
                raise
            return False
        return True

    wait_until(frozen, _FREEZE_SECONDS, f"{name} to freeze", last_seen=lambda: told)


def _unless_gone(act: Callable[[], None]) -> None:
    """Act on a container. It's no error if the container has ended meanwhile or is already in the wanted state."""
    try:
        act()
    except APIError as error:
        harmless = ("is not running", "is not paused", "already paused")
        if error.status_code != 409 and not any(words in str(error.explanation) for words in harmless):
            raise
