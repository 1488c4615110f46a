"""`Cluster`: a real Kafka cluster in a notebook cell, with verbs that break and repair it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from kafkalab import running
from kafkalab.cluster.backends import BackendChoice, choose
from kafkalab.cluster.backends.control import require_breakable
from kafkalab.cluster.clients import Clients, client_config, require_keyring
from kafkalab.cluster.disk import Disk
from kafkalab.cluster.downgrade import is_older, require_readable
from kafkalab.cluster.faults import Faults
from kafkalab.cluster.lifecycle import START_TIMEOUT, Lifecycle
from kafkalab.cluster.nodes import Nodes
from kafkalab.cluster.observer import RUNNING
from kafkalab.cluster.secured import ClusterSecurity
from kafkalab.cluster.spec import ClusterSpec, Listener, require_version
from kafkalab.cluster.view import ClusterView
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.security.config import Security
from kafkalab.settings import as_text, dotted

__all__ = ["Cluster"]

T = TypeVar("T")

_STOP_TIMEOUT = 60.0


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
        The number of dedicated controllers, with ids 100, 101 … With 0, the first three brokers also act as
        controllers, or only the first of fewer than three.
    racks
        Rack of each broker in order of id. The list repeats if it's shorter than the number of brokers.
    ports
        Fixed ports of the first listener in order of broker id; `start` fails if one is taken. Without them, each
        `Listener` decides.
    settings
        Broker settings, for example ``{"min.insync.replicas": 2}``. They override everything that kafkalab sets.
    listeners
        Listeners for clients. `bootstrap_servers` lists the addresses of the first one.
    heap
        Java heap of each node, as in ``-Xmx``: ``"96m"``.
    security
        Certificates, users and rules. Without it, everybody may do everything.
    java_options
        More options for each node's JVM, such as ``-Djava.security.krb5.conf=…``.
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

    Attributes
    ----------
    name
        The name.
    clients
        How clients reach it: addresses and configurations for each broker, listener and user.
    disk
        Its data: folders and logs on the brokers' disks, and the remote tier.
    nodes
        Its brokers and controllers: how they run, their logs, and what they know.

    Examples
    --------
    >>> with Cluster(brokers=3) as cluster:  # doctest: +SKIP
    ...     cluster.kill(0)
    """

    def __init__(
        self,
        brokers: int = ClusterSpec.brokers,
        *,
        controllers: int = ClusterSpec.controllers,
        racks: Sequence[str] = ClusterSpec.racks,
        ports: Sequence[int] = ClusterSpec.ports,
        settings: Mapping[str, object] | None = None,
        listeners: Sequence[Listener] = ClusterSpec.listeners,
        heap: str = ClusterSpec.heap,
        security: Security | None = ClusterSpec.security,
        java_options: Sequence[str] = ClusterSpec.java_options,
        version: str = ClusterSpec.version,
        tiered_storage: bool = ClusterSpec.tiered_storage,
        backend: str | None = None,
        name: str = "cluster",
    ) -> None:
        spec = ClusterSpec(
            brokers=brokers,
            controllers=controllers,
            racks=racks,
            ports=ports,
            settings=settings or {},
            listeners=listeners,
            heap=heap,
            security=security,
            java_options=java_options,
            version=version,
            tiered_storage=tiered_storage,
        )
        self._set_up(choose(backend), spec, name)
        end_nameless()

    def _set_up(self, backend: BackendChoice, spec: ClusterSpec, name: str) -> None:
        self.name = name
        self._lifecycle = lifecycle = Lifecycle(name, spec, backend)
        self._faults = faults = Faults(lifecycle)
        self.clients = Clients(lifecycle.access)
        self.disk = Disk(lifecycle, faults)
        self.nodes = Nodes(lifecycle, faults)

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
        if self._lifecycle.start():
            running.clusters.announce(self, self.nodes.on_stop)
            note_started(self, "cluster", lambda: self.nodes.running, self.stop)
        return self

    def stop(self) -> None:
        """Stop the cluster and remove its data. When it returns, no process, port, container or file is left.

        It first ends everything registered with `Nodes.on_stop` (workers, widgets). If the cluster is already stopped,
        nothing happens. In a process that was forked after `start` it ends nothing, because the cluster belongs to the
        parent.
        """
        self._lifecycle.stop()

    def __enter__(self) -> Cluster:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        brokers = self._lifecycle.spec.brokers
        what = "attached" if self.nodes.backend == "attached" else f"{brokers} broker{'s' * (brokers != 1)}"
        state = ["running", *self._lifecycle.access().moved_ports()] if self.nodes.running else ["not running"]
        return f"<Cluster {self.name!r}: {what}, {'; '.join(state)}>"

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self, broker: int) -> None:
        """Kill a node with SIGKILL, as in a crash. When it returns, the process is gone, but its peers haven't noticed yet.

        Raises
        ------
        BrokerNotRunning
            If the node isn't running.
        """
        with self._faults.on(broker, "kill", (*RUNNING, "paused")) as (control, _):
            control.kill(broker)

    def stop_broker(self, broker: int) -> None:
        """Shut a node down cleanly (SIGTERM): it hands over its leaderships first. When it returns, its process is gone.

        Raises
        ------
        BrokerNotRunning
            If the node isn't running.
        WaitTimeout
            If the controlled shutdown takes longer than a minute (without a controller it never ends).
        """
        with self._faults.on(broker, "stop", RUNNING) as (control, _):
            control.terminate(broker, _STOP_TIMEOUT)

    def pause(self, broker: int) -> None:
        """Freeze a node's process, like a long garbage collection: its connections stay open, but nothing answers.

        Raises
        ------
        BrokerNotRunning
            If the node isn't running.
        """
        with self._faults.on(broker, "pause", RUNNING) as (control, _):
            control.pause(broker)

    def resume(self, broker: int, timeout: float = 30.0) -> None:
        """Continue a paused node. When it returns, the node is registered and unfenced again, and answers.

        Raises
        ------
        BrokerNotRunning
            If the node isn't paused.
        """
        with self._faults.on(broker, "resume", ("paused",)) as (control, observer):
            control.resume(broker)
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
            require_breakable(self._lifecycle.access()).fetch(version)
        with self._faults.on(broker, "restart", (*RUNNING, "paused", "stopped", "dead")) as (control, observer):
            if version is not None and is_older(version, control.managed[broker].version):
                require_readable(control.managed[broker].node.name, version, observer.features())
            if control.state(broker) == "paused":
                control.resume(broker)
            if broker in control.isolated:
                control.heal(broker)
            control.terminate(broker, _STOP_TIMEOUT)
            control.revive(broker, changed, version)
            observer.wait_until_back(broker, timeout)

    def add_broker(self) -> int:
        """Start one more broker and return its id. It is then registered and unfenced, and leads nothing yet."""
        return self._faults.add(self._lifecycle.spec.broker, lambda node: node.broker)

    def isolate(self, broker: int) -> None:
        """Cut a node off from its peers, in both directions. Clients still reach it.

        As in a network partition, no connection closes: data in flight is held back, and flows again after `heal`.
        """
        with self._faults.on(broker, "isolate", ("up", "starting")) as (control, _):
            control.isolate(broker)

    def heal(self, broker: int, timeout: float = 60.0) -> None:
        """Undo `isolate`. When it returns, the node is registered and unfenced again.

        Raises
        ------
        BrokerNotRunning
            If the node isn't isolated.
        """
        with self._faults.on(broker, "heal", ("isolated",)) as (control, observer):
            control.heal(broker)
            observer.wait_until_back(broker, timeout)

    # -- looking ------------------------------------------------------------------------------------------------

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker's first listener, separated by commas."""
        return self.clients.servers()

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
        return {**client_config(self._lifecycle.access(), user, listener, mechanism), **dotted(more)}

    @property
    def security(self) -> ClusterSecurity:
        """The parts of a secured cluster: its certificate authority, its users' secrets, its ACL rules.

        Raises
        ------
        KafkaLabError
            If the cluster was made without ``security=Security(…)``.
        """
        access, observer = self._lifecycle.running()
        keyring = require_keyring(access)
        return ClusterSecurity(require_breakable(access), observer, keyring)

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
        with self._lifecycle.observing() as observer:
            return observer.describe(groups, internal)

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
        with self._lifecycle.observing() as observer:
            return observer.wait_for(condition, what, timeout, groups=groups)
