"""`Cluster`: a real Kafka cluster from a notebook cell, and the verbs that break and mend it."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from kafkalab.cluster import running, standby
from kafkalab.cluster.backends import BackendChoice, choose
from kafkalab.cluster.backends.base import Backend
from kafkalab.cluster.log_reader import LogReader
from kafkalab.cluster.observer import RUNNING, Observer
from kafkalab.cluster.remote_tier import RemoteTier
from kafkalab.cluster.secured import ClusterSecurity
from kafkalab.cluster.spec import FIRST_CONTROLLER_ID, ClusterSpec, Listener, Node, require_version
from kafkalab.cluster.view import BrokerState, ClusterView, Fault, PartitionView, ShareGroupView
from kafkalab.cluster.wire import Features
from kafkalab.distribution import KAFKA_VERSION, keep_all_output, put_tools_on_path
from kafkalab.errors import (
    BrokerNotRunning,
    ClusterNotRunning,
    FaultsUnsupported,
    KafkaLabError,
    NoReplica,
    UnknownBroker,
    UnknownPartition,
    UnknownTopic,
    UnknownUser,
    WaitTimeout,
)
from kafkalab.lifeline import Owner, Run
from kafkalab.security.config import Security
from kafkalab.security.files import private_folder, write_private
from kafkalab.settings import as_text, dotted, format_properties

__all__ = ["Cluster"]

T = TypeVar("T")

START_TIMEOUT = 90.0
STOP_TIMEOUT = 60.0


class Cluster:
    """A Kafka cluster of one's own.

    Several threads may use it at once. A second `start` waits for the first one, and so does a `stop`. A verb that is under
    way when another thread stops the cluster raises `ClusterNotRunning`. Only the process that started a cluster stops it: the
    end of one that was forked off leaves it running.

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
        Listeners for clients. Where the port that one of them wants is taken, it has another one, and the cluster's ``repr``
        says so.
    heap
        Java heap of each node, as in ``-Xmx``: ``"96m"``.
    security
        Certificates, users and rules; without it, everybody may do everything.
    java_options
        More options for each node's JVM.
    version
        The version of Kafka that the nodes run, for example ``"4.2.1"``; by default the course's.
    tiered_storage
        Whether topics may have a remote tier (KIP-405): those with ``remote.storage.enable=true``. It is a folder that all
        brokers share, looked after by the class that Kafka's own tests use for it. Not for production.
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
        listeners: Sequence[Listener] = (Listener(),),
        heap: str = "96m",
        security: Security | None = None,
        java_options: Sequence[str] = (),
        version: str | None = None,
        tiered_storage: bool = False,
        backend: str | None = None,
        name: str = "cluster",
    ) -> None:
        spec = ClusterSpec(
            brokers,
            controllers,
            racks,
            ports,
            listeners,
            settings or {},
            heap,
            security,
            java_options,
            version or KAFKA_VERSION,
            tiered_storage,
        )
        self._set_up(choose(backend), spec, name)

    def _set_up(self, backend: BackendChoice, spec: ClusterSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.faults: list[Fault] = []
        self._make_backend = backend
        self._backend: Backend | None = None  # of a cluster that runs, or is being started
        self._observer: Observer | None = None  # of a cluster that runs
        self._on_stop: list[Callable[[], None]] = []
        self._life = threading.RLock()  # held while the cluster starts, and while it stops
        self._owner = Owner()

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
        cluster = cls.__new__(cls)
        cluster._set_up(choose("attached", bootstrap_servers, dotted(client_settings)), ClusterSpec(), "attached")
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
        with self._life:
            if self.running:
                return self
            try:
                put_tools_on_path()
                keep_all_output()
                taken = standby.take(self.spec, self._make_backend.name)
                if taken is not None:
                    self._open(taken)
                else:
                    self._backend = self._make_backend(self.spec, Run.create("cluster"))
                    self._backend.launch()
                    self._open(self._backend)
            except BaseException:
                self._discard()
                raise
            atexit.register(self._stop_quietly)
        running.announce(self)
        return self

    def _open(self, backend: Backend) -> None:
        """Go on with a back end whose nodes were started."""
        self._backend, self._owner = backend, Owner()
        observer = Observer(backend)
        observer.wait_until_ready(START_TIMEOUT)
        self.faults.clear()
        self._observer = observer

    def stop(self) -> None:
        """Stop the cluster and remove its data; on return no process, port, container or file of it is left.

        What was registered with `on_stop` (workers, widgets) is ended first. A stopped cluster is left as it is. In a process
        that was forked off after `start`, nothing is ended: the cluster is its parent's.
        """
        if not self._owner.is_me:
            return
        with self._life:
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
        moved = self._backend.moved_ports() if self._backend is not None and self.running else []
        return f"<Cluster {self.name!r}: {what}, {'; '.join(['running' if self.running else 'not running', *moved])}>"

    @property
    def running(self) -> bool:
        """Whether `start` has returned and `stop` was not called since."""
        return self._observer is not None

    @property
    def backend(self) -> str:
        """Name of the back end: ``local``, ``docker`` or ``attached``."""
        return self._make_backend.name

    @property
    def run(self) -> Run:
        """The run to which workers of this cluster belong, so that they end with it."""
        return self._running()[0].run

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
        with self._fault("kill", broker, (*RUNNING, "paused")) as (backend, _):
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
        with self._fault("stop", broker, RUNNING) as (backend, _):
            backend.terminate(broker, STOP_TIMEOUT)

    def pause(self, broker: int) -> None:
        """Freeze a node's process: its connections stay open, but nothing answers (a long garbage collection, say).

        Raises
        ------
        BrokerNotRunning
            When it does not run.
        """
        with self._fault("pause", broker, RUNNING) as (backend, _):
            backend.pause(broker)

    def resume(self, broker: int, timeout: float = 30.0) -> None:
        """Let a paused node go on. On return it is registered and unfenced again, and answers.

        Raises
        ------
        BrokerNotRunning
            When it is not paused.
        """
        with self._fault("resume", broker, ("paused",)) as (backend, observer):
            backend.resume(broker)
            observer.wait_until_back(broker, timeout)

    def restart(
        self,
        broker: int,
        timeout: float = START_TIMEOUT,
        *,
        settings: Mapping[str, object] | None = None,
        version: str | None = None,
    ) -> None:
        """Start a node again, with the same id, port and data; one that runs is shut down in order first.

        A node that was paused goes on first. A node that was cut off is back on the network: `restart` undoes `isolate`, too.

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
        version
            The version of Kafka that it runs from now on. Restart all nodes in turn, and you have a rolling upgrade.

        Raises
        ------
        BrokerFailed
            When it ends before it is ready.
        BrokerNotRunning
            When a fault verb ends it, from another thread, before it is ready.
        ValueError, DownloadError, BackendUnavailable
            When the version cannot be had; the node is left as it is.
        """
        changed = as_text(settings or {})
        if version is not None:
            require_version(version)
            self._running()[0].fetch(version)
        with self._fault("restart", broker, (*RUNNING, "paused", "stopped", "dead")) as (backend, observer):
            if backend.state(broker) == "paused":
                backend.resume(broker)
            if broker in backend.isolated:
                backend.heal(broker)
            backend.terminate(broker, STOP_TIMEOUT)
            backend.revive(broker, changed, version)
            observer.wait_until_back(broker, timeout)

    def add_broker(self) -> int:
        """Start one more broker and return its id. On return it is registered and unfenced, and leads nothing yet."""
        return self._add(self.spec.broker, lambda node: node.broker)

    def add_controller(self) -> int:
        """Start one more dedicated controller and return its id. On return it has the metadata log, and doesn't vote.

        ``kafka-metadata-quorum.sh add-controller`` makes it a voter, where the cluster's ``kraft.version`` is 1: see
        `controller_config`.
        """
        return self._add(self.spec.controller, lambda node: not node.broker)

    def _add(self, make: Callable[[int], Node], is_like: Callable[[Node], bool]) -> int:
        """Start one more node, with the id that follows those of the nodes like it."""
        backend, observer = self._running()
        self._require_faults(backend)
        with self._unless_stopped(backend, "a node was added"):
            with self._life:  # else two threads would give two nodes the same id
                like = [i for i, node in backend.nodes().items() if is_like(node)]
                added = max(like, default=FIRST_CONTROLLER_ID - 1) + 1  # there is always a broker
                with self._noted("add", added):
                    backend.add(make(added))
            observer.wait_until_back(added, START_TIMEOUT)
        return added

    def isolate(self, broker: int) -> None:
        """Cut a node off from its peers, in both directions. Clients still reach it.

        As in a network partition nothing is closed: what is under way is held back, and flows on after `heal`.
        """
        with self._fault("isolate", broker, ("up", "starting")) as (backend, _):
            backend.isolate(broker)

    def heal(self, broker: int, timeout: float = 60.0) -> None:
        """Undo `isolate`. On return the node is registered and unfenced again.

        Raises
        ------
        BrokerNotRunning
            When it is not isolated.
        """
        with self._fault("heal", broker, ("isolated",)) as (backend, observer):
            backend.heal(broker)
            observer.wait_until_back(broker, timeout)

    def lose_log(self, broker: int, topic: str, partition: int = 0) -> None:
        """Remove a partition's folder from the disk of a broker that is down, as if that disk had been replaced.

        Raises
        ------
        BrokerNotRunning
            When the broker isn't down: its files are open.
        UnknownTopic, UnknownPartition, UnknownBroker, NoReplica
            As for `log_reader`.
        """
        self._placed(topic, partition, broker)
        with self._fault("lose a log of", broker, ("stopped", "dead")) as (backend, _):
            backend.lose_log(broker, f"{topic}-{partition}")

    # -- looking ------------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker's first listener, separated by commas."""
        return self.servers(self.spec.listeners[0].name)

    def bootstrap(self, broker: int, listener: str | None = None) -> str:
        """``host:port`` of one broker's listener, by default of the first.

        Raises
        ------
        UnknownBroker, UnknownListener
        """
        backend = self._known(broker)
        if not backend.nodes()[broker].broker:
            raise UnknownBroker(f"node {broker} is a dedicated controller: it has no listener for clients")
        return backend.address(broker, self.spec.listener(listener).name if listener else self.spec.listeners[0].name)

    def servers(self, listener: str) -> str:
        """``host:port`` of every broker's listener of that name, separated by commas.

        Raises
        ------
        UnknownListener
        """
        backend, _ = self._running()
        name = self.spec.listener(listener).name
        return ",".join(backend.address(i, name) for i, node in backend.nodes().items() if node.broker)

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
        backend, _ = self._running()
        if user is not None and backend.keyring is None:
            raise UnknownUser(f"there is no user {user!r}: this cluster has none, for it was made without security=…")
        if user is None and listener is None:
            servers = ",".join(backend.control_address(i) for i, node in backend.nodes().items() if node.broker)
            settings = backend.client_settings()
        else:
            name, protocol = self._listener(listener)
            known = backend.keyring.client(protocol, user, mechanism) if backend.keyring else {"security.protocol": protocol}
            servers, settings = self.servers(name), {**known, **self.spec.listener(name).client}
        return {
            "bootstrap.servers": servers,
            "log_level": 2,
            **settings,
            **dotted(more),
        }

    def java_config(self, user: str | None = None, listener: str | None = None, mechanism: str | None = None) -> dict[str, str]:
        """The same as `client_config`, for a Java client of a secured cluster: Kafka's tools, or Spark.

        Without a user it trusts the brokers, and proves nothing itself.
        """
        keyring = self.security.keyring
        name, protocol = self._listener(listener)
        return {"bootstrap.servers": self.servers(name), **keyring.java_client(protocol, user, mechanism)}

    def command_config(self, user: str | None = None, listener: str | None = None, mechanism: str | None = None) -> Path:
        """`java_config` as a file, for the option ``--command-config`` of Kafka's tools. Its owner alone can read it.

        It goes with the cluster.
        """
        settings = self.java_config(user, listener, mechanism)
        folder = private_folder(self.run.directory / "secrets" / "clients")
        return write_private(folder / f"{user}-{listener}-{mechanism}.properties", format_properties(settings))

    def controller_config(self, controller: int) -> Path:
        """A controller's own settings as a file, for ``kafka-metadata-quorum.sh --command-config … add-controller``.

        The tool reads from it who the controller is: its id, its listener, and, in its data folder, the folder's id.

        Raises
        ------
        UnknownBroker
            When there is no node of that id.
        """
        return self._known(controller).settings_file(controller)

    @property
    def security(self) -> ClusterSecurity:
        """What only a secured cluster has: its certificate authority, its users' secrets, its ACL rules.

        Raises
        ------
        KafkaLabError
            When the cluster was not made with ``security=Security(…)``.
        """
        backend, observer = self._running()
        if backend.keyring is None:
            raise KafkaLabError(
                "this cluster was not made with security=Security(…): its certificates and users are not kafkalab's"
            )
        return ClusterSecurity(backend, observer, backend.keyring, self._known)

    @property
    def remote_tier(self) -> RemoteTier:
        """The remote tier: what it holds, and the means to put it out of reach.

        Raises
        ------
        KafkaLabError
            When the cluster was not made with ``tiered_storage=True``.
        """
        backend, _ = self._running()
        if not self.spec.tiered_storage:
            raise KafkaLabError("this cluster was not made with tiered_storage=True: it has no remote tier")
        return RemoteTier(backend)

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
        with self._observing() as observer:
            return observer.describe(groups, internal)

    def features(self) -> dict[int, Features]:
        """Feature levels (KIP-584) as each broker that runs tells them: what its software supports, and what is finalized.

        Raises
        ------
        OSError
            When a broker does not answer in time.
        """
        with self._observing() as observer:
            return observer.features()

    def eligible_leaders(self, topic: str) -> dict[int, tuple[int, ...]]:
        """The eligible leader replicas (KIP-966) of each partition of a topic: not in the ISR, but with all that is committed.

        Raises
        ------
        OSError
            When the broker that was asked does not answer in time.
        """
        with self._observing() as observer:
            return observer.eligible_leaders(topic)

    def share_group(self, id: str) -> ShareGroupView | None:
        """A share group as its coordinator knows it at this moment, or None if there is none of that id.

        Raises
        ------
        OSError
            When a broker that was asked does not answer in time: its coordinator may be moving.
        """
        with self._observing() as observer:
            return observer.share_group(id)

    def states(self) -> dict[int, BrokerState]:
        """State of every node's process, at once and without asking Kafka: registered or not, a running one is ``up``."""
        with self._observing() as observer:
            return observer.states()

    def wait_for(self, condition: Callable[[ClusterView], T], what: str, timeout: float = 30.0, *, groups: bool = False) -> T:
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
        with self._observing() as observer:
            return observer.wait_for(condition, what, timeout, groups=groups)

    def logs(self, broker: int) -> str:
        """A node's log so far."""
        return self._known(broker).logs(broker)

    def copy_log_dir(self, broker: int, *topics: str) -> Path:
        """Copy a node's data folder, as it is at this moment, to this machine and return the copy's folder.

        It holds one folder per partition, with the segments in it. It is removed with the cluster.

        Parameters
        ----------
        broker
            Which node; it may be down.
        *topics
            Copy only the folders of these topics' partitions. The whole folder has much more in it: each partition's indexes
            take two megabytes, and the files of a deleted topic stay for a minute.

        Raises
        ------
        BackendUnavailable
            When the cluster was attached to.
        """
        backend = self._known(broker)
        target = backend.run.directory / f"copy-{broker}-{uuid.uuid4().hex[:6]}"
        backend.copy_log_dir(broker, target, topics)
        return target

    def log_reader(self, topic: str, partition: int = 0, broker: int | None = None) -> LogReader:
        """A reader of one partition's log: its files on a broker's disk, and the offsets that brokers tell.

        It changes nothing. Where the cluster was attached to, it sees offsets only.

        Parameters
        ----------
        topic, partition
            Which log; internal topics have one, too.
        broker
            On whose disk, also if it is down; by default that of whoever leads the partition at each look.

        Raises
        ------
        UnknownTopic, UnknownPartition, UnknownBroker
            When the cluster has none of that name or number.
        NoReplica
            When that broker has no replica of the partition.
        """
        placed = self._placed(topic, partition, broker)
        backend, observer = self._running()
        return LogReader(backend, observer.connect, placed, broker)

    # -- parts --------------------------------------------------------------------------------------------------

    def _placed(self, topic: str, partition: int, broker: int | None) -> PartitionView:
        """Where a partition is placed, which must have a replica on that broker."""
        if broker is not None:
            self._known(broker)
        topics = self.describe(groups=False, internal=True).topics
        if topic not in topics:
            known = ", ".join(topics) or "none yet"
            raise UnknownTopic(f"there is no topic {topic!r} in this cluster; it has {known}")
        placed = next((p for p in topics[topic] if p.partition == partition), None)
        if placed is None:
            numbers = f"0 to {len(topics[topic]) - 1}" if len(topics[topic]) > 1 else "only 0"
            raise UnknownPartition(f"{topic} has no partition {partition!r}; it has {numbers}")
        if broker is not None and broker not in placed.replicas:
            there = ", ".join(map(str, sorted(placed.replicas)))
            raise NoReplica(
                f"broker {broker} has no replica of partition {partition} of {topic}; these brokers have one: {there}"
            )
        return placed

    def _running(self) -> tuple[Backend, Observer]:
        backend, observer = self._backend, self._observer
        if backend is None or observer is None:
            what = "is still starting, in another thread" if backend is not None else "is not running: call start() first"
            raise ClusterNotRunning(f"the cluster {self.name!r} {what}")
        return backend, observer

    def _known(self, broker: int) -> Backend:
        backend, _ = self._running()
        if not isinstance(broker, int) or isinstance(broker, bool) or broker not in backend.nodes():
            ids = ", ".join(str(i) for i in backend.nodes())
            raise UnknownBroker(f"there is no broker {broker!r} in this cluster; it has {ids}")
        return backend

    def _require_faults(self, backend: Backend) -> None:
        if not backend.breakable:
            raise FaultsUnsupported(
                "this cluster was attached to, not started by kafkalab, so it is not ours to break: "
                "use Cluster(backend='local') or Cluster(backend='docker') for experiments with faults"
            )

    @contextlib.contextmanager
    def _fault(self, verb: str, broker: int, states: tuple[BrokerState, ...]) -> Iterator[tuple[Backend, Observer]]:
        """What a fault verb works with, once it is clear that the node can be treated so."""
        backend, observer = self._running()
        self._require_faults(backend)
        self._known(broker)
        with self._unless_stopped(backend, f"the {verb} of broker {broker} was under way"):
            state = backend.state(broker)
            if state not in states:
                raise BrokerNotRunning(f"cannot {verb} broker {broker}: it is {state}")
            with self._noted(verb, broker):
                yield backend, observer

    @contextlib.contextmanager
    def _noted(self, verb: str, broker: int) -> Iterator[None]:
        """Note a fault when it begins, for its effects are seen before the verb returns. One that fails is taken out again."""
        fault = Fault(time.time(), verb, broker)
        self.faults.append(fault)
        try:
            yield
        except WaitTimeout:  # the node was told, and may still follow
            raise
        except Exception:
            with contextlib.suppress(ValueError):  # another thread started the cluster anew, and so cleared the list
                self.faults.remove(fault)
            raise

    @contextlib.contextmanager
    def _observing(self) -> Iterator[Observer]:
        backend, observer = self._running()
        with self._unless_stopped(backend, "it was looked at"):
            yield observer

    @contextlib.contextmanager
    def _unless_stopped(self, backend: Backend, meanwhile: str) -> Iterator[None]:
        """Say plainly when something failed only because another thread stopped the cluster."""
        try:
            yield
        except Exception as error:
            if self._backend is backend:
                raise
            raise ClusterNotRunning(f"the cluster {self.name!r} was stopped while {meanwhile}") from error

    def _listener(self, name: str | None) -> tuple[str, str]:
        """Name and protocol of a listener; without a name, of the first that asks who one is, else of the first."""
        if name is not None:
            return name, self.spec.listener(name).protocol
        listeners = self.spec.listeners
        by_password = [x for x in listeners if x.protocol.startswith("SASL")]
        by_certificate = [x for x in listeners if x.protocol == "SSL"]
        chosen = [*by_password, *by_certificate, *listeners][0]
        return chosen.name, chosen.protocol

    def _discard(self) -> None:
        backend, observer = self._backend, self._observer
        self._observer = self._backend = None
        if observer is not None:
            observer.close()
        if backend is not None:
            backend.destroy()

    def _stop_quietly(self) -> None:
        with contextlib.suppress(KafkaLabError):  # the process is ending; the reaper takes care of what is left
            self.stop()
