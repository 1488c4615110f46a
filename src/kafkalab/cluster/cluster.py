"""`Cluster`: a real Kafka cluster in a notebook cell, with verbs that break and repair it."""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from kafkalab import running
from kafkalab.cluster import standby
from kafkalab.cluster.backends import BackendChoice, choose
from kafkalab.cluster.backends.base import Backend
from kafkalab.cluster.backends.failure import node_name
from kafkalab.cluster.downgrade import is_older, require_readable
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
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.security.config import Security
from kafkalab.security.files import private_folder, write_private
from kafkalab.settings import as_text, dotted, format_properties

__all__ = ["Cluster"]

T = TypeVar("T")

START_TIMEOUT = 90.0
STOP_TIMEOUT = 60.0


class Cluster:
    """A Kafka cluster of your own.

    Several threads may use it at once. A second `start` or a `stop` waits for a `start` in progress. If another thread
    stops the cluster while a verb runs, that verb raises `ClusterNotRunning`. Only the process that started a cluster
    stops it: a forked process leaves it running when it ends.

    Parameters
    ----------
    brokers
        The number of brokers. Their ids are 0, 1, 2 …
    controllers
        The number of dedicated controllers (ids 100, 101 …). With 0, brokers also act as controllers.
    racks
        Rack of each broker in order of id. The list repeats if it's shorter than the number of brokers.
    ports
        Fixed ports of the brokers; `start` fails if one is taken. Without them, each listener uses its usual ports, or
        free ones.
    settings
        Broker settings, for example ``{"min.insync.replicas": 2}``. They override everything that kafkalab sets.
    listeners
        Listeners for clients. If the port that a listener wants is taken, it gets another one. The cluster's ``repr``
        shows it.
    heap
        Java heap of each node, as in ``-Xmx``: ``"96m"``.
    security
        Certificates, users and rules. Without it, everybody may do everything.
    java_options
        More options for each node's JVM.
    version
        The Kafka version that the nodes run, for example ``"4.2.1"``. By default the course's version.
    tiered_storage
        Whether topics may use a remote tier (KIP-405): those with ``remote.storage.enable=true``. The tier is a folder
        that all brokers share, managed by the class that Kafka's own tests use. Not for production.
    backend
        ``"local"`` (JVM processes), ``"docker"`` (containers), ``"attached"`` (a cluster that already runs). By default
        ``KAFKALAB_BACKEND`` decides. If it isn't set, kafkalab uses Docker if an engine answers and has or can pull the
        image, else local.
    name
        A name for titles. Two clusters may share it.

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
            KAFKA_VERSION if version is None else version,
            tiered_storage,
        )
        self._set_up(choose(backend), spec, name)
        end_nameless()

    def _set_up(self, backend: BackendChoice, spec: ClusterSpec, name: str) -> None:
        self.spec = spec
        self.name = name
        self.faults: list[Fault] = []
        self._make_backend = backend
        self._backend: Backend | None = None  # of a cluster that runs or is starting
        self._observer: Observer | None = None  # of a cluster that runs
        self._on_stop: list[Callable[[], None]] = []
        self._life = threading.RLock()  # held while the cluster starts, and while it stops
        self._owner = Owner()

    @classmethod
    def attached(cls, bootstrap_servers: str, **client_settings: object) -> Cluster:
        """Connect to a cluster that already runs somewhere: everything but faults works.

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

        When it returns, every broker is registered and unfenced, a controller is active, and every broker answers with
        the same metadata. Kafka's command-line tools are on the ``PATH``. If the cluster already runs, nothing happens.
        If `start` fails or is interrupted, nothing stays behind and you can call it again.

        Raises
        ------
        BackendUnavailable, BrokerFailed, PortInUse, NotEnoughResources, DownloadError, JavaError
            Why the cluster couldn't start, and what to do about it.
        WaitTimeout
            If the brokers run but don't form one cluster in time.
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
        running.clusters.announce(self)
        note_started(self, "cluster", lambda: self.running, self.stop)
        return self

    def _open(self, backend: Backend) -> None:
        """Continue with a back end whose nodes have started."""
        self._backend, self._owner = backend, Owner()
        observer = Observer(backend)
        observer.wait_until_ready(START_TIMEOUT)
        self.faults.clear()
        self._observer = observer

    def stop(self) -> None:
        """Stop the cluster and remove its data. When it returns, no process, port, container or file is left.

        It first ends everything registered with `on_stop` (workers, widgets). If the cluster is already stopped,
        nothing happens. In a process that was forked after `start` it ends nothing, because the cluster belongs to the
        parent.
        """
        if not self._owner.is_me:
            return
        with self._life:
            if self._backend is None:
                return
            callbacks, self._on_stop = self._on_stop, []
            # Each is called, whatever the one before raises: the last one that is added first.
            with contextlib.ExitStack() as ending:
                ending.callback(atexit.unregister, self._stop_quietly)
                ending.callback(self._discard)
                for callback in reversed(callbacks):
                    ending.callback(callback)

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
        """Whether the cluster runs: `start` has returned, and `stop` wasn't called since."""
        return self._observer is not None

    @property
    def backend(self) -> str:
        """Name of the back end: ``local``, ``docker`` or ``attached``."""
        return self._make_backend.name

    @property
    def run(self) -> Run:
        """The run that workers of this cluster belong to, so that they end with it."""
        return self._running()[0].run

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a function that is called once, when the cluster stops and before its brokers end."""
        self._on_stop.append(callback)

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self, broker: int) -> None:
        """Kill a node with SIGKILL, as in a crash. When it returns, the process is gone, but its peers haven't noticed yet.

        Raises
        ------
        BrokerNotRunning
            If the node isn't running.
        """
        with self._fault("kill", broker, (*RUNNING, "paused")) as (backend, _):
            backend.kill(broker)

    def stop_broker(self, broker: int) -> None:
        """Shut a node down cleanly (SIGTERM): it hands over its leaderships first. When it returns, its process is gone.

        Raises
        ------
        BrokerNotRunning
            If the node isn't running.
        WaitTimeout
            If the controlled shutdown takes longer than a minute (without a controller it never ends).
        """
        with self._fault("stop", broker, RUNNING) as (backend, _):
            backend.terminate(broker, STOP_TIMEOUT)

    def pause(self, broker: int) -> None:
        """Freeze a node's process, like a long garbage collection: its connections stay open, but nothing answers.

        Raises
        ------
        BrokerNotRunning
            If the node isn't running.
        """
        with self._fault("pause", broker, RUNNING) as (backend, _):
            backend.pause(broker)

    def resume(self, broker: int, timeout: float = 30.0) -> None:
        """Continue a paused node. When it returns, the node is registered and unfenced again, and answers.

        Raises
        ------
        BrokerNotRunning
            If the node isn't paused.
        """
        with self._fault("resume", broker, ("paused",)) as (backend, observer):
            backend.resume(broker)
            observer.wait_until_back(broker, timeout)

    def restart(
        self,
        broker: int,
        *,
        timeout: float = START_TIMEOUT,
        settings: Mapping[str, object] | None = None,
        version: str | None = None,
    ) -> None:
        """Start a node again, with the same id, port and data. If it runs, shut it down cleanly first.

        A paused node is resumed first. An isolated node gets its network back: `restart` also undoes `isolate`.

        When it returns, the node is registered and unfenced, and answers with the same metadata as its peers. Its
        replicas may still be catching up. Use `wait_for` to wait for that.

        Parameters
        ----------
        broker
            Its id.
        timeout
            Seconds until it must be back.
        settings
            Broker settings that apply from now on and override those it started with.
        version
            The Kafka version that it runs from now on. Restart all nodes in turn for a rolling upgrade.

        Raises
        ------
        BrokerFailed
            If the node ends before it's ready.
        BrokerNotRunning
            If a fault verb in another thread ends it before it's ready.
        DowngradeRefused
            If the version is too old for the cluster's finalized feature levels. The node is left as it is.
        ValueError, DownloadError, BackendUnavailable
            If the version isn't available. The node is left as it is.
        """
        changed = as_text(settings or {})
        if version is not None:
            require_version(version)
            self._running()[0].fetch(version)
        with self._fault("restart", broker, (*RUNNING, "paused", "stopped", "dead")) as (backend, observer):
            if version is not None and is_older(version, backend.version(broker)):
                require_readable(node_name(backend.nodes()[broker]), version, observer.features())
            if backend.state(broker) == "paused":
                backend.resume(broker)
            if broker in backend.isolated:
                backend.heal(broker)
            backend.terminate(broker, STOP_TIMEOUT)
            backend.revive(broker, changed, version)
            observer.wait_until_back(broker, timeout)

    def add_broker(self) -> int:
        """Start one more broker and return its id. It is then registered and unfenced, and leads nothing yet."""
        return self._add(self.spec.broker, lambda node: node.broker)

    def add_controller(self) -> int:
        """Start one more dedicated controller and return its id. It then has the metadata log, but doesn't vote.

        If the cluster's ``kraft.version`` is 1, ``kafka-metadata-quorum.sh add-controller`` makes it a voter: see
        `controller_config`.
        """
        return self._add(self.spec.controller, lambda node: not node.broker)

    def _add(self, make: Callable[[int], Node], is_like: Callable[[Node], bool]) -> int:
        """Start one more node, with the next id after the nodes like it."""
        backend, observer = self._running()
        self._require_faults(backend)
        with self._unless_stopped(backend, "a node was added"):
            with self._life:  # else two threads could give two nodes the same id
                like = [i for i, node in backend.nodes().items() if is_like(node)]
                added = max(like, default=FIRST_CONTROLLER_ID - 1) + 1  # there is always a broker
                with self._noted("add", added):
                    backend.add(make(added))
            observer.wait_until_back(added, START_TIMEOUT)
        return added

    def isolate(self, broker: int) -> None:
        """Cut a node off from its peers, in both directions. Clients still reach it.

        As in a network partition, no connection closes: data in flight is held back, and flows again after `heal`.
        """
        with self._fault("isolate", broker, ("up", "starting")) as (backend, _):
            backend.isolate(broker)

    def heal(self, broker: int, timeout: float = 60.0) -> None:
        """Undo `isolate`. When it returns, the node is registered and unfenced again.

        Raises
        ------
        BrokerNotRunning
            If the node isn't isolated.
        """
        with self._fault("heal", broker, ("isolated",)) as (backend, observer):
            backend.heal(broker)
            observer.wait_until_back(broker, timeout)

    def lose_log(self, broker: int, topic: str, partition: int = 0) -> None:
        """Remove a partition's folder from the disk of a stopped broker, as if its disk had been replaced.

        Raises
        ------
        BrokerNotRunning
            If the broker isn't down, because its files are open.
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
        """Return ``host:port`` of one broker's listener, by default the first.

        Raises
        ------
        UnknownBroker, UnknownListener
        """
        backend = self._known(broker)
        if not backend.nodes()[broker].broker:
            raise UnknownBroker(f"node {broker} is a dedicated controller: it has no listener for clients")
        return backend.address(broker, self.spec.listener(listener).name if listener else self.spec.listeners[0].name)

    def servers(self, listener: str) -> str:
        """Return ``host:port`` of every broker's listener of that name, separated by commas.

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
        """Return a complete configuration for any client of ``confluent_kafka``.

        Parameters
        ----------
        user
            In a secured cluster: the user who connects, with a password or a certificate as the listener requires.
        listener
            The listener to connect to. By default the first one that authenticates clients.
        mechanism
            The SASL mechanism of a user with a password. By default the first one that the cluster accepts.
        **more
            Further settings, with underscores for dots: ``client_config(group_id="g")``.

        Returns
        -------
        dict
            Bootstrap servers, what the listener needs, and a log level that keeps librdkafka's own messages out of the
            cell (``error_cb`` still gets them). With neither user nor listener: what kafkalab itself uses, which may do
            everything.

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
        """Return the same as `client_config` for a Java client of a secured cluster: Kafka's tools, or Spark.

        Without a user, the client trusts the brokers but doesn't authenticate itself.
        """
        keyring = self.security.keyring
        name, protocol = self._listener(listener)
        return {"bootstrap.servers": self.servers(name), **keyring.java_client(protocol, user, mechanism)}

    def command_config(self, user: str | None = None, listener: str | None = None, mechanism: str | None = None) -> Path:
        """Write `java_config` to a file for the option ``--command-config`` of Kafka's tools. Only its owner can read it.

        The file is removed with the cluster.
        """
        settings = self.java_config(user, listener, mechanism)
        folder = private_folder(self.run.directory / "secrets" / "clients")
        return write_private(folder / f"{user}-{listener}-{mechanism}.properties", format_properties(settings))

    def controller_config(self, controller: int) -> Path:
        """Return a controller's own settings as a file.

        Use it for ``kafka-metadata-quorum.sh --command-config … add-controller``.

        The tool reads from it which controller to add: its id, its listener and its data folder, which holds the
        folder's id.

        Raises
        ------
        UnknownBroker
            If no node has that id.
        """
        return self._known(controller).settings_file(controller)

    @property
    def security(self) -> ClusterSecurity:
        """The parts of a secured cluster: its certificate authority, its users' secrets, its ACL rules.

        Raises
        ------
        KafkaLabError
            If the cluster was made without ``security=Security(…)``.
        """
        backend, observer = self._running()
        if backend.keyring is None:
            raise KafkaLabError(
                "this cluster was not made with security=Security(…): its certificates and users are not kafkalab's"
            )
        return ClusterSecurity(backend, observer, backend.keyring, self._known)

    @property
    def remote_tier(self) -> RemoteTier:
        """The remote tier: its content, and verbs that cut it off and reconnect it.

        Raises
        ------
        KafkaLabError
            If the cluster was made without ``tiered_storage=True``.
        """
        backend, _ = self._running()
        if not self.spec.tiered_storage:
            raise KafkaLabError("this cluster was not made with tiered_storage=True: it has no remote tier")
        return RemoteTier(backend)

    def describe(self, groups: bool = True, internal: bool = False) -> ClusterView:
        """Return the cluster's current state, as one of its live brokers knows it.

        Parameters
        ----------
        groups
            Also ask for consumer groups.
        internal
            Also show internal topics (``__consumer_offsets`` …).

        Raises
        ------
        WaitTimeout
            If no broker answers for five seconds.
        """
        with self._observing() as observer:
            return observer.describe(groups, internal)

    def features(self) -> dict[int, Features]:
        """Return the feature levels (KIP-584) of each running broker: what its software supports, and what is finalized.

        Raises
        ------
        WaitTimeout
            If a broker doesn't answer within 10 s.
        """
        with self._observing() as observer:
            return observer.features()

    def eligible_leaders(self, topic: str) -> dict[int, tuple[int, ...]]:
        """Return a topic's eligible leader replicas (KIP-966) by partition: outside the ISR, but with all committed records.

        Raises
        ------
        WaitTimeout
            If the broker doesn't answer within 10 s.
        """
        with self._observing() as observer:
            return observer.eligible_leaders(topic)

    def share_group(self, id: str) -> ShareGroupView | None:
        """Return a share group as its coordinator knows it now, or None if there is no group with that id.

        Raises
        ------
        OSError
            If a broker doesn't answer in time. The coordinator may be moving.
        """
        with self._observing() as observer:
            return observer.share_group(id)

    def states(self) -> dict[int, BrokerState]:
        """Return the state of every node's process without asking Kafka: a running one is ``up``, registered or not."""
        with self._observing() as observer:
            return observer.states()

    def wait_for(self, condition: Callable[[ClusterView], T], what: str, timeout: float = 30.0, *, groups: bool = False) -> T:
        """Wait until the cluster shows something, and return what `condition` returned.

        On return it holds for the topics as each broker knows them that is up and answers: a client may ask any.

        Parameters
        ----------
        condition
            Gets `describe`'s view, and then the same with the topics as each broker knows them. Any false value means
            "not yet", and so does a ``KeyError`` (no such topic yet).
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
        """Return a node's log so far."""
        return self._known(broker).logs(broker)

    def copy_log_dir(self, broker: int, *topics: str) -> Path:
        """Copy a node's data folder in its current state to this machine, and return the copy's folder.

        The copy has one folder per partition with its segments. It's removed with the cluster.

        Parameters
        ----------
        broker
            Which node. It may be down.
        *topics
            Copy only the folders of these topics' partitions. The whole folder holds much more: each partition's
            indexes take two megabytes, and the files of a deleted topic stay for a minute.

        Raises
        ------
        BackendUnavailable
            If the cluster was attached to.
        """
        backend = self._known(broker)
        target = backend.run.directory / f"copy-{broker}-{uuid.uuid4().hex[:6]}"
        backend.copy_log_dir(broker, target, topics)
        return target

    def log_reader(self, topic: str, partition: int = 0, broker: int | None = None) -> LogReader:
        """Return a reader of one partition's log: its files on a broker's disk, and the offsets that brokers report.

        It changes nothing. For an attached cluster it sees offsets only.

        Parameters
        ----------
        topic, partition
            Which log. Internal topics have one, too.
        broker
            The broker whose disk to read; it may be down. By default the partition's current leader.

        Raises
        ------
        UnknownTopic, UnknownPartition, UnknownBroker
            If the cluster has none of that name or number.
        NoReplica
            If that broker has no replica of the partition.
        """
        placed = self._placed(topic, partition, broker)
        backend, observer = self._running()
        return LogReader(backend, observer.connect, placed, broker)

    # -- parts --------------------------------------------------------------------------------------------------

    def _placed(self, topic: str, partition: int, broker: int | None) -> PartitionView:
        """Return where a partition is placed, after a check that this broker has a replica."""
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
        """Check that the verb suits the node's state, and yield what the verb works with."""
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
        """Note a fault when it begins, because its effects show before the verb returns. Remove one that fails."""
        fault = Fault(time.time(), verb, broker)
        self.faults.append(fault)
        try:
            yield
        except WaitTimeout:  # the node got the signal, and may still follow it
            raise
        except Exception:
            with contextlib.suppress(ValueError):  # another thread restarted the cluster, which cleared the list
                self.faults.remove(fault)
            raise

    @contextlib.contextmanager
    def _observing(self) -> Iterator[Observer]:
        backend, observer = self._running()
        with self._unless_stopped(backend, "it was looked at"):
            yield observer

    @contextlib.contextmanager
    def _unless_stopped(self, backend: Backend, meanwhile: str) -> Iterator[None]:
        """Raise a plain error if something failed only because another thread stopped the cluster."""
        try:
            yield
        except Exception as error:
            if self._backend is backend:
                raise
            raise ClusterNotRunning(f"the cluster {self.name!r} was stopped while {meanwhile}") from error

    def _listener(self, name: str | None) -> tuple[str, str]:
        """Return name and protocol of a listener; without a name, of the first that authenticates, else of the first."""
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
        with contextlib.suppress(KafkaLabError):  # the process is ending, and the reaper removes what is left
            self.stop()
