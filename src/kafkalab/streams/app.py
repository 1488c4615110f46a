"""`StreamsApp`: an application of Kafka Streams, from a notebook cell."""

from __future__ import annotations

import inspect
import itertools
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kafkalab.cluster.backends.failure import log_tail
from kafkalab.conditions import require, runs_executable
from kafkalab.errors import ClusterNotRunning, StreamsFailed
from kafkalab.resources import require_memory
from kafkalab.running import streams_apps
from kafkalab.settings import as_text, dotted
from kafkalab.streams.view import StreamsView, threads_in
from kafkalab.waiting import wait_until
from kafkalab.workers.child import LOOK, ChildProcess, children_of

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["StreamsApp", "stop_all"]

T = TypeVar("T")

_START_TIMEOUT = 120.0
_ANSWER_TIMEOUT = 30.0
_MEMORY = 180 << 20

_SETTINGS = {
    # Commit, and send on what the stores' caches hold, every 100 ms (default 30 s).
    "commit.interval.ms": "100",
}
_CLASSIC_SETTINGS = {
    # A killed instance is missed after 3 s (default 45 s). In the Streams rebalance protocol, brokers set this.
    "session.timeout.ms": "3000",
    "heartbeat.interval.ms": "500",
}


class StreamsApp:
    """One instance of a Kafka Streams application, in a process of its own: Python and Java together.

    Its topology is a function that gets a ``StreamsBuilder``. The function runs in that other process, which doesn't know the
    notebook's names. So it imports what it needs, Kafka Streams' own classes too, as in
    ``from org.apache.kafka.streams.kstream import TimeWindows``. Keys and values are texts unless it says otherwise. Stores are
    kept in memory: what survives the process is in their changelog topics. So nothing locks a ``state.dir``, and two instances
    may have the same one. A topology that asks for a store in files is refused: the course has no RocksDB.

    It runs on this machine, even if the brokers are containers. It ends with this process and with its cluster.

    Parameters
    ----------
    cluster
        A running cluster.
    topology
        The function; or a Python file with a function ``topology``, which is read again at each start.
    name
        Name of this instance and its ``client.id``. By default the ``application.id``. When it starts, the cluster's earlier
        instance of that name stops.
    heap
        Java heap, as in ``-Xmx``.
    **settings
        Of Kafka Streams, with underscores for dots: ``processing_guarantee="exactly_once_v2"``, ``num_standby_replicas=1``. The
        ``application.id`` is the name of the function, or the file's without ``.py``. kafkalab adds the addresses, and
        shortens the commit interval and the session timeout. Your own settings override these. For a secured cluster give
        ``**cluster.clients.java_config("user")``, too.

    Raises
    ------
    ValueError
        If a setting has no value, or Python doesn't know the function's source.

    Examples
    --------
    >>> with Cluster() as cluster, StreamsApp(cluster, counts) as app:  # doctest: +SKIP
    ...     app.store("counts")
    {'11': 4, '21': 2}
    """

    def __init__(
        self,
        cluster: Cluster,
        topology: str | Path | Callable[[Any], object],
        *,
        name: str | None = None,
        heap: str = "64m",
        **settings: object,
    ) -> None:
        self.cluster = cluster
        self._topology = _source(topology) if callable(topology) else Path(topology).absolute()
        own = as_text(dotted(settings))
        classic = own.get("group.protocol", "classic").lower() == "classic"
        self.settings = {
            "application.id": topology.__name__ if callable(topology) else Path(topology).stem,
            **_SETTINGS,
            **(_CLASSIC_SETTINGS if classic else {}),
            **own,
        }
        self.name = name or self.settings["application.id"]
        self.heap = heap
        self._process: _AppProcess | None = None
        self._description = ""
        self._on_stop: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<StreamsApp {self.name}: {self.state}>"

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it, unless it already runs. On return, it's RUNNING.

        Raises
        ------
        ClusterNotRunning
            When the cluster doesn't run.
        StreamsFailed
            When the file can't be used, or the application ends by itself; the message says why.
        WaitTimeout
            When it isn't RUNNING in time; the message tells its state and its log's last lines.
        NotEnoughResources, DownloadError, HashMismatch, JavaError
            Why it could not start, and what to do about it.
        """
        if not self.alive:
            self.launch()
        return self.wait_running()

    def launch(self) -> Self:
        """Start it as `start` does, but return once its topology is built. It may not be RUNNING yet."""
        if not self.cluster.nodes.running:
            raise ClusterNotRunning("a Streams application needs a running cluster: this one was not started, or is stopped")
        require(runs_executable)
        require_memory(_MEMORY, f"the Streams application {self.name}")
        self._process = process = _AppProcess(self)
        self._description = process.begin({"file": str(self._file()), "settings": self._all_settings(), "heap": self.heap})
        streams_apps.announce(self, self.on_stop)
        self.cluster.nodes.on_stop(self._stopped)
        return self

    def wait_running(self, timeout: float = _START_TIMEOUT) -> Self:
        """Wait until it's RUNNING: it has its tasks, and their stores are restored. Raises the same errors as `start`."""
        process = self._required("wait for")
        wait_until(
            lambda: process.state == "RUNNING" or not process.alive,
            timeout,
            f"{self.name} to be RUNNING",
            last_seen=lambda: f"{process.state}\nIts last lines:\n{log_tail(self.logs())}",
            interval=LOOK,
        )
        self._required("wait for")
        return self

    def wait_until(
        self,
        condition: Callable[[], T],
        timeout: float,
        what: str,
        *,
        last_seen: Callable[[], object] | None = None,
        ignore: tuple[type[Exception], ...] = (),
    ) -> T:
        """Wait as `kafkalab.wait_until` does, but only as long as this application runs.

        Raises
        ------
        StreamsFailed
            If it doesn't run. The message says how it ended, and why.
        WaitTimeout
            If time runs out.
        """
        return wait_until(
            condition,
            timeout,
            what,
            last_seen=last_seen,
            ignore=ignore,
            unless=lambda: self._must_live(what),
        )

    def stop(self) -> None:
        """Stop it cleanly: it commits, leaves its group, and others get its tasks. On return, its process is gone."""
        if self._process is not None:
            self._process.close()

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a function to call once, when it has been stopped. What was killed may start again."""
        self._on_stop.append(callback)

    def kill(self) -> None:
        """Kill it with SIGKILL, so that it commits nothing. On return, its process is gone.

        Other instances take over after the session timeout.

        Raises
        ------
        StreamsFailed
            When it doesn't run.
        """
        self._required("kill").kill()

    def restart(self) -> Self:
        """Stop it if it runs, and start it with its file as it is now. On return, it's RUNNING."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """Its state: ``not started``, Kafka Streams' own (``REBALANCING``, ``RUNNING`` …), or how it ended."""
        return "not started" if self._process is None else self._process.state

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.alive

    @property
    def pid(self) -> int | None:
        """Its process id, even after it ended. None before the first start."""
        return None if self._process is None else self._process.pid

    def logs(self) -> str:
        """Return what Kafka Streams logged and the topology's functions printed, since its first start."""
        return "".join(path.read_text(errors="replace") for path in self._log_files() if path.exists())

    def describe(self) -> str:
        """Return ``Topology.describe()`` of the topology that it runs, or ran last."""
        return self._description

    def view(self) -> StreamsView:
        """Return its state, its threads with their tasks, and its stores."""
        threads = threads_in(self._process.threads()) if self._process is not None and self._process.alive else ()
        return StreamsView(
            self.name, self.settings["application.id"], self._in_words(), threads, self._description, self.restored
        )

    @property
    def restored(self) -> dict[str, int]:
        """How many changelog records were read to restore each store since the process last started.

        A standby that follows a store isn't counted, nor is a store that was restored from nothing.
        """
        return {} if self._process is None else dict(self._process.restored)

    def store(self, name: str, *, stale: bool = False) -> dict[Any, Any]:
        """Return this instance's share of a store, by an interactive query.

        Parameters
        ----------
        name
            The store's name, as in ``Materialized.as_("counts")``.
        stale
            Also read standbys and a store that is being restored. Their rows may be outdated.

        Returns
        -------
        dict
            Key → value. In a window store a key is ``(key, start, end)``, in milliseconds.

        Raises
        ------
        StreamsFailed
            When it doesn't run, is just rebalancing, or has no such store (a session store can't be read as a whole).
        """
        answer = self._required("ask").ask(name, stale)
        if "error" in answer:
            raise StreamsFailed(f"{self.name} can't tell what {name} holds: {answer['error']}")
        return {tuple(key) if isinstance(key, list) else key: value for key, value in answer["rows"]}

    # -- parts --------------------------------------------------------------------------------------------------

    def _stopped(self) -> None:
        callbacks, self._on_stop = self._on_stop, []
        for callback in callbacks:
            callback()

    def _file(self) -> Path:
        if isinstance(self._topology, Path):
            return self._topology
        file = self._log_files()[0].with_suffix(".py")
        file.write_text(self._topology, encoding="utf-8")
        return file

    def _log_files(self) -> tuple[Path, Path]:
        folder = self.cluster.nodes.run.directory / "streams"
        return folder / f"{self.name.replace('/', '_')}.log", folder / f"{self.name.replace('/', '_')}-output.log"

    def _all_settings(self) -> dict[str, str]:
        state = str(self._log_files()[0].with_suffix(""))
        where = {"bootstrap.servers": self.cluster.bootstrap_servers, "client.id": self.name}
        return {**where, "state.dir": state, **self.settings}

    def _required(self, verb: str) -> _AppProcess:
        """Return its process. If there is none, raise StreamsFailed with the reason."""
        if self._process is None or not self._process.alive:
            raise StreamsFailed(f"can't {verb} {self.name}: {self._in_words()}")
        return self._process

    def _must_live(self, what: str) -> None:
        """Raise StreamsFailed unless it runs."""
        if not self.alive:
            raise StreamsFailed(f"waiting for {what} is no use, because {self.name} doesn't run: {self._in_words()}")

    def _in_words(self) -> str:
        """Return its state, and why it ended, if it gave a reason."""
        return "not started" if self._process is None else self._process._in_words()


def stop_all(cluster: Cluster) -> set[str]:
    """Stop every instance that this process started on a cluster. Return their application ids."""
    instances = [child for child in children_of(cluster) if isinstance(child, _AppProcess)]
    for instance in instances:
        instance.close()
    return {instance.application for instance in instances}


def _source(function: Callable[[Any], object]) -> str:
    """Return the text of a file that defines this function as its ``topology``."""
    name = getattr(function, "__name__", "<lambda>")
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        text = ""
    if not name.isidentifier() or not text.startswith("def "):
        raise ValueError(f"the topology is a function that a cell or a file defines with `def`, not {function!r}")
    return f"{text}\n\ntopology = {name}\n"


class _AppProcess(ChildProcess):
    """One process of an application, from start to end."""

    _MODULE = "kafkalab.streams.app_process"
    _START_SECONDS = _START_TIMEOUT
    _START = "the topology of {} to be built"
    _farewell = "stopped"

    def __init__(self, app: StreamsApp) -> None:
        self._description = ""
        self.restored: Counter[str] = Counter()
        self.application = app.settings["application.id"]
        self._ids = itertools.count()
        self._answers: dict[int, dict[str, Any]] = {}
        self._when_stopped = app._stopped
        self._log, output = app._log_files()
        super().__init__(app.cluster, app.name, output)

    def begin(self, start: dict[str, object]) -> str:
        """Tell it what to run, and wait until its topology is built. Return the topology's description."""
        try:
            self._write({**start, "log": str(self._log)})
            self._await_start()
            if not self._started:
                why = self._reason if self._state in ("refused", "failed") else self._in_words()
                raise StreamsFailed(f"{self.name} does not start: {why}")
        except BaseException:  # an interrupt too: nothing half started stays behind
            self._abandon("not started")
            raise
        return self._description

    def ask(self, store: str, stale: bool) -> dict[str, Any]:
        """Return its answer to a query of a store."""
        return self._answer({"do": "query", "store": store, "stale": stale})

    def threads(self) -> list[dict[str, Any]]:
        """Return its threads with their tasks. None while it doesn't tell, because it's starting or ending."""
        threads: list[dict[str, Any]] = self._answer({"do": "threads"}).get("threads", [])
        return threads

    def _answer(self, question: dict[str, object]) -> dict[str, Any]:
        number = next(self._ids)
        self._write({**question, "id": number})
        wait_until(
            lambda: number in self._answers or not self.alive, _ANSWER_TIMEOUT, f"{self.name} to answer", interval=LOOK,
            last_seen=lambda: self.state,
        )  # fmt: skip
        return self._answers.pop(number, {"error": f"it ended meanwhile: {self.state}"})

    def _close_seconds(self) -> float:
        return 30.0

    def _has_ended(self) -> None:
        if self._state in (self._farewell, "ended with the cluster"):
            self._when_stopped()

    def _has_started(self, event: dict[str, Any]) -> None:
        self._description = event["description"]

    def _handle(self, kind: str, event: dict[str, Any]) -> None:
        match kind:
            case "failed":  # the first exception counts, where more than one thread has one
                self._note_end("failed", event["reason"])
            case "restored":
                self.restored[event["store"]] += event["records"]
            case "answer":
                self._answers[event["id"]] = event
            case "state" if not self._end_is_known:
                self._state = event["state"]
