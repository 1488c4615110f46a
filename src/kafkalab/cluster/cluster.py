"""`Cluster`: a real Kafka cluster from a notebook cell, and the verbs that break and mend it."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from kafkalab.cluster import standby
from kafkalab.cluster.backends import BackendChoice, choose
from kafkalab.cluster.backends.base import Backend
from kafkalab.cluster.groups import GroupReader
from kafkalab.cluster.properties import format_properties
from kafkalab.cluster.spec import ClusterSpec, Listener
from kafkalab.cluster.view import BrokerState, BrokerView, ClusterView, Fault, GroupView
from kafkalab.cluster.wire import NO_QUORUM, BrokerConnection, Metadata, Quorum
from kafkalab.distribution import keep_all_output, put_tools_on_path
from kafkalab.errors import (
    BrokerNotRunning,
    ClusterNotRunning,
    FaultsUnsupported,
    KafkaLabError,
    UnknownBroker,
)
from kafkalab.lifeline import Run
from kafkalab.security import CertificateAuthority, KeyRing, Security
from kafkalab.security.files import private_folder, write_private
from kafkalab.waiting import wait_until

__all__ = ["Cluster"]

T = TypeVar("T")

START_TIMEOUT = 90.0
STOP_TIMEOUT = 60.0

_RUNNING: tuple[BrokerState, ...] = ("up", "starting", "isolated")


class Cluster:
    """A Kafka cluster of one's own.

    Parameters
    ----------
    brokers
        How many brokers; their ids are 0, 1, 2 …
    controllers
        How many dedicated controllers (ids 100, 101 …). With 0, brokers are controllers as well.
    racks
        Rack of each broker in order of id; repeated when there are fewer than brokers.
    ports
        Ports of the brokers, of which no others will do; without them each listener's usual ones, or any free ones.
    settings
        Broker settings, for example ``{"min.insync.replicas": 2}``. They win over all that kafkalab sets.
    listeners
        Listeners for clients.
    heap
        Java heap of each node.
    security
        Certificates, users and rules; without it, everybody may do everything.
    java_options
        More options for each node's JVM.
    backend
        ``"local"`` (JVM processes), ``"docker"`` (containers), ``"attached"`` (a cluster that already runs). By
        default what ``KAFKALAB_BACKEND`` says, else Docker where an engine answers and has the image or can
        pull it, else local.
    name
        For titles; no two need differ.

    Examples
    --------
    >>> with Cluster(brokers=3) as cluster:  # doctest: +SKIP
    ...     cluster.kill(0)
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        controllers: int = 0,
        racks: Sequence[str] = (),
        ports: Sequence[int] = (),
        settings: Mapping[str, object] | None = None,
        listeners: Iterable[Listener] = (Listener(),),
        heap: str = "96m",
        security: Security | None = None,
        java_options: Sequence[str] = (),
        backend: str | None = None,
        name: str = "cluster",
    ) -> None:
        spec = ClusterSpec(
            brokers, controllers, tuple(racks), tuple(ports), tuple(listeners), settings or {}, heap, security, tuple(java_options)
        )
        self._set_up(choose(backend), spec, name)

    def _set_up(self, backend: BackendChoice, spec: ClusterSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.faults: list[Fault] = []
        self._make_backend = backend
        self._backend: Backend | None = None
        self._connections: dict[int, BrokerConnection] = {}
        self._asking = threading.Lock()  # a connection carries one question at a time
        self._groups = GroupReader(self._connect)
        self._on_stop: list[Callable[[], None]] = []

    @classmethod
    def attached(cls, bootstrap_servers: str, **client_settings: object) -> Cluster:
        """A cluster that already runs, somewhere: everything but faults works.

        Parameters
        ----------
        bootstrap_servers
            ``host:port`` of one or more of its brokers, separated by commas.
        **client_settings
            librdkafka settings for connecting to it, with underscores for dots: ``security_protocol="SSL"``.
        """
        settings = {key.replace("_", "."): value for key, value in client_settings.items()}
        cluster = cls.__new__(cls)
        cluster._set_up(choose("attached", bootstrap_servers, settings), ClusterSpec(), "attached")
        return cluster

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Cluster:
        """Start the cluster.

        On return every broker is registered and unfenced, a controller is active, and every broker answers with
        the same metadata; Kafka's command-line tools are on the ``PATH``. A running cluster is left as it is.
        When it fails, or is interrupted, nothing stays behind and `start` can be called again.

        Raises
        ------
        BackendUnavailable, BrokerFailed, PortInUse, NotEnoughResources, DownloadError, JavaError
            Why it could not start, and what to do about it.
        WaitTimeout
            When the brokers run but do not become one cluster in time.
        """
        if self.running:
            return self
        self._discard()  # what an interrupted start may have left
        try:
            put_tools_on_path()
            keep_all_output()
            taken = standby.take(self.spec, self._make_backend.name)
            if taken is not None:
                self._backend = taken
                self._wait_until_ready(START_TIMEOUT)
            else:
                self.launch_on(self._make_backend(self.spec, Run.create("cluster")))
            self.faults.clear()
        except BaseException:
            self._discard()
            raise
        atexit.register(self._stop_quietly)
        return self

    def launch_on(self, backend: Backend) -> None:
        """Start the cluster on a back end that was made for its spec; `start` is what learners call."""
        self._backend = backend
        backend.launch()
        self._wait_until_ready(START_TIMEOUT)

    def stop(self) -> None:
        """Stop the cluster and remove its data; on return no process, port, container or file of it is left.

        What was registered with `on_stop` (workers, widgets) is ended first. A stopped cluster is left as it is.
        """
        if self._backend is None:
            return
        callbacks, self._on_stop = self._on_stop, []
        for callback in callbacks:
            callback()
        self._discard()
        atexit.unregister(self._stop_quietly)

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        what = f"{self.spec.brokers} broker{'s' * (self.spec.brokers != 1)}"
        if self.backend == "attached":
            what = "attached"
        return f"<Cluster {self.name!r}: {what}, {'running' if self.running else 'not running'}>"

    @property
    def running(self) -> bool:
        """Whether `start` has returned and `stop` was not called since."""
        return self._backend is not None

    @property
    def backend(self) -> str:
        """Name of the back end: ``local``, ``docker`` or ``attached``."""
        return self._make_backend.name

    @property
    def run(self) -> Run:
        """The run to which workers of this cluster belong, so that they end with it."""
        return self._running().run

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Have something called once, when the cluster stops and before its brokers end."""
        self._on_stop.append(callback)

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self, broker: int) -> None:
        """Kill a node with SIGKILL: a crash. On return its process is gone; its peers have yet to notice.

        Raises
        ------
        BrokerNotRunning
            When it does not run.
        """
        backend = self._breakable(broker, "kill", (*_RUNNING, "paused"))
        with self._noting("kill", broker):
            backend.kill(broker)

    def stop_broker(self, broker: int) -> None:
        """Shut a node down in order (SIGTERM): it hands its leaderships over first. On return its process is gone.

        Raises
        ------
        BrokerNotRunning
            When it does not run.
        WaitTimeout
            When the controlled shutdown takes longer than a minute (without a controller it never ends).
        """
        backend = self._breakable(broker, "stop", _RUNNING)
        with self._noting("stop", broker):
            backend.terminate(broker, STOP_TIMEOUT)

    def pause(self, broker: int) -> None:
        """Freeze a node's process: its connections stay open, but nothing answers (a long garbage collection, say).

        Raises
        ------
        BrokerNotRunning
            When it does not run.
        """
        backend = self._breakable(broker, "pause", _RUNNING)
        with self._noting("pause", broker):
            backend.pause(broker)

    def resume(self, broker: int, timeout: float = 30.0) -> None:
        """Let a paused node go on. On return it is registered and unfenced again, and answers.

        Raises
        ------
        BrokerNotRunning
            When it is not paused.
        """
        backend = self._breakable(broker, "resume", ("paused",))
        with self._noting("resume", broker):
            backend.resume(broker)
        self._wait_until_back(broker, timeout)

    def restart(self, broker: int, timeout: float = START_TIMEOUT, *, settings: Mapping[str, object] | None = None) -> None:
        """Start a node again, with the same id, port and data; one that runs is shut down in order first.

        On return it is registered and unfenced, and answers with the same metadata as its peers. Its replicas may
        still be catching up: wait for that with `wait_for`.

        Parameters
        ----------
        broker
            Its id.
        timeout
            Seconds until it must be back.
        settings
            Broker settings that it has from now on, in place of those that it was started with.

        Raises
        ------
        BrokerFailed
            When it ends before it is ready.
        BrokerNotRunning
            When a fault verb ends it, from another thread, before it is ready.
        """
        backend = self._known(broker)
        if backend.state(broker) == "paused":
            backend.resume(broker)
        with self._noting("restart", broker):
            backend.terminate(broker, STOP_TIMEOUT)
            backend.revive(broker, {name: str(value) for name, value in (settings or {}).items()})
        self._wait_until_back(broker, timeout)

    def add_broker(self) -> int:
        """Start one more broker and return its id. On return it is registered and unfenced, and leads nothing yet."""
        backend = self._running()
        self._require_faults(backend)
        brokers = [i for i, node in backend.nodes().items() if node.broker]
        broker = max(brokers) + 1
        with self._noting("add", broker):
            backend.add(self.spec.broker(broker))
        self._wait_until_back(broker, START_TIMEOUT)
        return broker

    def isolate(self, broker: int) -> None:
        """Cut a node off from its peers, in both directions. Clients still reach it.

        As in a network partition nothing is closed: what is under way is held back, and flows on after `heal`.
        """
        backend = self._breakable(broker, "isolate", ("up", "starting"))
        with self._noting("isolate", broker):
            backend.isolate(broker)

    def heal(self, broker: int, timeout: float = 60.0) -> None:
        """Undo `isolate`. On return the node is registered and unfenced again.

        Raises
        ------
        BrokerNotRunning
            When it is not isolated.
        """
        backend = self._breakable(broker, "heal", ("isolated",))
        with self._noting("heal", broker):
            backend.heal(broker)
        self._wait_until_back(broker, timeout)

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker's first listener, separated by commas."""
        backend = self._running()
        return ",".join(self.bootstrap(i) for i, node in backend.nodes().items() if node.broker)

    def bootstrap(self, broker: int, listener: str | None = None) -> str:
        """``host:port`` of one broker's listener, by default of the first."""
        return self._known(broker).address(broker, listener or self.spec.listeners[0].name)

    def servers(self, listener: str) -> str:
        """``host:port`` of every broker's listener of that name, separated by commas.

        Raises
        ------
        UnknownListener
        """
        self.spec.listener(listener)
        return ",".join(self.bootstrap(i, listener) for i, node in self._running().nodes().items() if node.broker)

    def client_config(
        self, user: str | None = None, listener: str | None = None, mechanism: str | None = None, **more: object
    ) -> dict[str, object]:
        """A ready configuration for any client of ``confluent_kafka``.

        Parameters
        ----------
        user
            Of a secured cluster: who connects, with a password or a certificate as the listener asks for it.
        listener
            Where to connect; by default the first listener that asks who one is.
        mechanism
            How a user with a password logs in; by default the first one that the cluster accepts.
        **more
            Further settings, with underscores for dots: ``client_config(group_id="g")``.

        Returns
        -------
        dict
            Bootstrap servers, what the listener needs, and a log level that keeps librdkafka's own messages
            out of the cell (``error_cb`` still gets them). With neither user nor listener: what kafkalab itself uses,
            who may do everything.

        Raises
        ------
        UnknownUser, UnknownListener
        """
        backend = self._running()
        if user is None and listener is None:
            servers, settings = self._sight_servers(), backend.client_settings()
        else:
            name, protocol = self._listener(listener)
            known = backend.keyring.client(protocol, user, mechanism) if backend.keyring else {"security.protocol": protocol}
            servers, settings = self.servers(name), {**known, **self.spec.listener(name).client}
        return {
            "bootstrap.servers": servers,
            "log_level": 2,
            **settings,
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def java_config(self, user: str | None = None, listener: str | None = None, mechanism: str | None = None) -> dict[str, str]:
        """The same as `client_config`, for a Java client of a secured cluster: Kafka's tools, or Spark.

        Without a user it trusts the brokers, and proves nothing itself.
        """
        keyring = self._keyring()
        name, protocol = self._listener(listener)
        return {"bootstrap.servers": self.servers(name), **keyring.java_client(protocol, user, mechanism)}

    def command_config(self, user: str | None = None, listener: str | None = None, mechanism: str | None = None) -> Path:
        """`java_config` as a file, for the option ``--command-config`` of Kafka's tools. Its owner alone can read it.

        It goes with the cluster.
        """
        settings = self.java_config(user, listener, mechanism)
        folder = private_folder(self.run.directory / "secrets" / "clients")
        return write_private(folder / f"{user}-{listener}-{mechanism}.properties", format_properties(settings))

    @property
    def authority(self) -> CertificateAuthority:
        """Who signs the certificates of a secured cluster."""
        return self._keyring().authority

    def broker_login(self, mechanism: str) -> str:
        """The JAAS line with which the brokers of a secured cluster log in to each other by a mechanism.

        With ``PLAIN`` the line also holds the users that they accept. The SCRAM user has to be made on the running cluster
        before brokers use it: ``Security.between_brokers`` only makes it for the mechanism that they begin with.
        """
        return self._keyring().node_login(mechanism)

    @property
    def broker_password(self) -> str:
        """The password of the user that the brokers of a secured cluster are to each other."""
        return self._keyring().node_password

    def renew_certificate(self, broker: int) -> Path:
        """Make a new key and certificate for a node, and put them where it has its key store.

        On return the files are there. The node uses the old ones until it is told to look again (by an alteration of
        ``listener.name.<listener>.ssl.keystore.location``), or is restarted.

        Returns
        -------
        Path
            The key store, as the node knows it.
        """
        self._keyring()
        return self._known(broker).renew_certificate(broker)

    def wait_for_acls(self, number: int, timeout: float = 15.0) -> None:
        """Wait until every broker that runs knows so many ACL rules.

        An administrator is answered when the controller has a rule; brokers have it milliseconds later, each by itself.

        Raises
        ------
        WaitTimeout
            The message says how many rules each broker knows.
        """
        backend = self._running()
        seen: dict[int, int] = {}

        def known() -> bool:
            for broker, node in backend.nodes().items():
                if node.broker and backend.state(broker) == "up":
                    with self._asking:
                        seen[broker] = self._connection(broker).acl_rules()
            return set(seen.values()) == {number}

        wait_until(known, timeout, f"{number} ACL rules on every broker", last_seen=lambda: seen, ignore=(OSError,), interval=0.02)

    def describe(self, groups: bool = True, internal: bool = False) -> ClusterView:
        """What the cluster shows at this moment, as one of its live brokers knows it.

        Parameters
        ----------
        groups
            Ask for consumer groups, too.
        internal
            Show internal topics (``__consumer_offsets`` …), too.

        Raises
        ------
        WaitTimeout
            When no broker answers for five seconds.
        """
        backend = self._running()
        metadata, quorum = wait_until(self._ask_any, 5, "an answer from any broker", last_seen=self.states)
        brokers = {}
        for node_id, node in backend.nodes().items():
            state = backend.state(node_id)
            if state == "up" and node.broker and node_id not in metadata.brokers:
                state = "starting"
            brokers[node_id] = BrokerView(
                node_id,
                backend.address(node_id, self.spec.listeners[0].name) if node.broker else "",
                node.rack,
                state,
                controller=node_id == quorum.leader,
                voter=node_id in quorum.voters if quorum.voters else node.controller,
            )
        asked, silent = self._read_groups(metadata) if groups else ({}, frozenset())
        return ClusterView(
            metadata.cluster_id,
            quorum.leader,
            quorum.epoch,
            brokers,
            {name: parts for name, parts in metadata.topics.items() if internal or name not in metadata.internal},
            asked,
            silent,
        )

    def states(self) -> dict[int, BrokerState]:
        """State of every node's process, at once and without asking Kafka: registered or not, a running one is ``up``."""
        backend = self._running()
        return {i: backend.state(i) for i in backend.nodes()}

    def wait_for(
        self, condition: Callable[[ClusterView], T], what: str, timeout: float = 30.0, *, groups: bool = False
    ) -> T:
        """Wait until the cluster shows something, and return what `condition` returned.

        Parameters
        ----------
        condition
            Given `describe`'s view; "not yet" is anything false, and also a ``KeyError`` (no such topic yet).
        what
            Completes the sentence "waited N s for …".
        timeout
            Seconds.
        groups
            Whether the condition looks at consumer groups.
        """
        view: ClusterView | None = None

        def look() -> T:
            nonlocal view
            view = self.describe(groups=groups)
            return condition(view)

        return wait_until(look, timeout, what, last_seen=lambda: view, ignore=(KeyError,))

    def logs(self, broker: int) -> str:
        """A node's log so far."""
        return self._known(broker).logs(broker)

    def copy_log_dir(self, broker: int) -> Path:
        """Copy a node's data folder, as it is at this moment, to this machine and return the copy's folder.

        It holds one folder per partition, with the segments in it. It is removed with the cluster.

        Raises
        ------
        BackendUnavailable
            When the cluster was attached to.
        """
        backend = self._known(broker)
        target = backend.run.directory / f"copy-{broker}-{uuid.uuid4().hex[:6]}"
        backend.copy_log_dir(broker, target)
        return target

    # -- parts --------------------------------------------------------------------------------------------------

    def _running(self) -> Backend:
        if self._backend is None:
            raise ClusterNotRunning(f"the cluster {self.name!r} is not running: call start() first")
        return self._backend

    def _known(self, broker: int) -> Backend:
        backend = self._running()
        if broker not in backend.nodes():
            ids = ", ".join(str(i) for i in backend.nodes())
            raise UnknownBroker(f"there is no broker {broker} in this cluster; it has {ids}")
        return backend

    def _require_faults(self, backend: Backend) -> None:
        if not backend.breakable:
            raise FaultsUnsupported(
                "this cluster was attached to, not started by kafkalab, so it is not ours to break: "
                "use Cluster(backend='local') or Cluster(backend='docker') for experiments with faults"
            )

    def _breakable(self, broker: int, verb: str, states: tuple[BrokerState, ...]) -> Backend:
        backend = self._running()
        self._require_faults(backend)
        self._known(broker)
        state = backend.state(broker)
        if state not in states:
            raise BrokerNotRunning(f"cannot {verb} broker {broker}: it is {state}")
        return backend

    @contextlib.contextmanager
    def _noting(self, verb: str, broker: int) -> Iterator[None]:
        """Keep a fault that was carried out, with the time at which it began: its effects are seen at once."""
        began = time.time()
        yield
        self.faults.append(Fault(began, verb, broker))

    def _keyring(self) -> KeyRing:
        keyring = self._running().keyring
        if keyring is None:
            raise KafkaLabError("this cluster was not made with security=Security(…): its certificates and users are not kafkalab's")
        return keyring

    def _listener(self, name: str | None) -> tuple[str, str]:
        """Name and protocol of a listener; without a name, of the first that asks who one is, else of the first."""
        if name is not None:
            return name, self.spec.listener(name).protocol
        asking = [x for x in self.spec.listeners if x.protocol.startswith("SASL")] or [x for x in self.spec.listeners if x.protocol == "SSL"]
        chosen = (asking or list(self.spec.listeners))[0]
        return chosen.name, chosen.protocol

    def _sight_servers(self) -> str:
        backend = self._running()
        return ",".join(backend.control_address(i) for i, node in backend.nodes().items() if node.broker)

    def _connection(self, broker: int) -> BrokerConnection:
        address = self._running().control_address(broker)
        known = self._connections.get(broker)
        if known is None or known.address != address:
            known = self._connections[broker] = self._connect(address)
        return known

    def _connect(self, address: str) -> BrokerConnection:
        keyring = self._running().keyring
        return BrokerConnection(address, context=keyring.sight_context() if keyring else None)

    def _ask_any(self, *, but: int | None = None) -> tuple[Metadata, Quorum] | None:
        """What a broker (another than `but`) knows, or None while those that may know are slow to answer.

        A broker that is cut off, or back and not registered yet, answers with what it knew before. Its word counts only
        if nobody listens who may know better.
        """
        backend = self._running()
        states = {i: backend.state(i) for i, node in backend.nodes().items() if node.broker and i != but}
        outdated, slow = None, False
        for broker in sorted((i for i in states if states[i] in _RUNNING), key=lambda i: states[i] == "isolated"):
            if states[broker] == "isolated" and (outdated or slow):
                break
            try:
                metadata, quorum = self._ask(broker)
            except ConnectionRefusedError:
                continue
            except OSError:
                slow = True
                continue
            if broker in metadata.brokers and states[broker] != "isolated":
                return metadata, quorum
            outdated = outdated or (metadata, quorum)
        return None if slow else outdated

    def _ask(self, broker: int) -> tuple[Metadata, Quorum]:
        with self._asking:
            connection = self._connection(broker)
            metadata = connection.metadata()
            try:
                return metadata, connection.quorum()
            except OSError:
                return metadata, NO_QUORUM

    def _read_groups(self, metadata: Metadata) -> tuple[dict[str, GroupView], frozenset[int]]:
        backend = self._running()
        brokers = {b: backend.control_address(b) for b in metadata.brokers if b in backend.nodes()}
        return self._groups.read(brokers, [p for partitions in metadata.topics.values() for p in partitions])

    def _wait_until_ready(self, timeout: float) -> None:
        """Every broker registered, a controller active, the same metadata everywhere."""
        backend = self._running()
        seen: object = "no broker answered yet"

        def ready() -> bool:
            nonlocal seen
            for node_id in backend.nodes():
                backend.check_alive(node_id)
            brokers = {i for i, node in backend.nodes().items() if node.broker}
            answers = []
            for broker in sorted(brokers):
                with self._asking:
                    answers.append(self._connection(broker).metadata())
            seen = {b: sorted(a.brokers) for b, a in zip(sorted(brokers), answers, strict=True)}
            if any(set(a.brokers) != brokers for a in answers) or any(a.topics != answers[0].topics for a in answers):
                return False
            with self._asking:
                quorum = self._connection(min(brokers)).quorum()
            seen = quorum
            return quorum.leader is not None

        wait_until(
            ready, timeout, "all brokers to be registered and to agree", last_seen=lambda: seen, ignore=(OSError,), interval=0.02
        )

    def _wait_until_back(self, broker: int, timeout: float) -> None:
        """The node is a member again: registered, unfenced, and it knows what its peers know.

        A broker that was paused or cut off answers at once, but with what it knew before: it may still take itself
        for a leader. So it must first have the metadata log as far as it was committed when the wait began.
        """
        backend = self._known(broker)
        committed = -1
        seen: object = "no answer yet"

        def back() -> bool:
            nonlocal committed, seen
            backend.check_alive(broker)
            state = backend.state(broker)
            if state in ("dead", "stopped"):
                raise BrokerNotRunning(f"broker {broker} was ended ({state}) before it was ready")
            others = self._ask_any(but=broker) or self._ask_any()
            if others is None:
                return False
            metadata, quorum = others
            if committed < 0:
                committed = quorum.high_watermark
            seen = f"live brokers {sorted(metadata.brokers)}, {quorum}"
            if quorum.leader is None or quorum.end_offsets.get(broker, -1) < committed:
                return False
            if not backend.nodes()[broker].broker:
                return True
            with self._asking:
                own = self._connection(broker).metadata()
            return broker in metadata.brokers and own.brokers.keys() == metadata.brokers.keys() and own.topics == metadata.topics

        wait_until(back, timeout, f"broker {broker} to be back in the cluster", last_seen=lambda: seen, ignore=(OSError,))

    def _discard(self) -> None:
        backend, self._backend = self._backend, None
        self._groups.close()
        with self._asking:
            for connection in self._connections.values():
                connection.close()
            self._connections.clear()
        if backend is not None:
            backend.destroy()

    def _stop_quietly(self) -> None:
        try:
            self.stop()
        except KafkaLabError:
            pass  # the process is ending; the reaper takes care of what is left
