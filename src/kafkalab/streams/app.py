"""`StreamsApp`: an application of Kafka Streams, from a notebook cell."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import json
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from kafkalab.cluster.backends.failure import log_tail
from kafkalab.conditions import require, runs_executable
from kafkalab.errors import ClusterNotRunning, StreamsFailed
from kafkalab.exits import exit_status, signal_of
from kafkalab.lifeline import Owner
from kafkalab.resources import require_memory
from kafkalab.settings import as_text, dotted
from kafkalab.waiting import wait_until

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["StreamsApp", "stop_all"]

T = TypeVar("T")

_START_TIMEOUT = 120.0
_STOP_TIMEOUT = 30.0
_ANSWER_TIMEOUT = 30.0
_SAID_SO = ("refused", "failed")  # how it ended, if it gave the reason itself
_LOOK = 0.02  # seconds between two looks at a process that answers in milliseconds
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

# The newest life of each instance, by cluster and name. It may outlast its StreamsApp, if a notebook gives that name away.
_lives: dict[tuple[str, str], _Life] = {}


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
        ``**cluster.java_config("user")``, too.

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
        self._life: _Life | None = None
        self._description = ""

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
        if not self.cluster.running:
            raise ClusterNotRunning("a Streams application needs a running cluster: this one was not started, or is stopped")
        require(runs_executable)
        require_memory(_MEMORY, f"the Streams application {self.name}")
        if (namesake := _lives.get((self.cluster.run.id, self.name))) is not None:
            namesake.close()
        self._life = _lives[self.cluster.run.id, self.name] = life = _Life(self)
        self.cluster.on_stop(life.discard)
        try:
            self._description = life.begin({"file": str(self._file()), "settings": self._all_settings(), "heap": self.heap})
        except BaseException:  # an interrupt too: nothing half started stays behind
            life.discard()
            raise
        return self

    def wait_running(self, timeout: float = _START_TIMEOUT) -> Self:
        """Wait until it's RUNNING: it has its tasks, and their stores are restored. Raises the same errors as `start`."""
        life = self._required("wait for")
        wait_until(
            lambda: life.state == "RUNNING" or life.over,
            timeout,
            f"{self.name} to be RUNNING",
            last_seen=lambda: f"{life.state}\nIts last lines:\n{log_tail(self.logs())}",
            interval=_LOOK,
        )
        if life.over:
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
        if self._life is not None:
            self._life.close()

    def kill(self) -> None:
        """Kill it with SIGKILL, so that it commits nothing. On return, its process is gone.

        Other instances take over after the session timeout.

        Raises
        ------
        StreamsFailed
            When it doesn't run.
        """
        self._required("kill").end("killed")

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
        return "not started" if self._life is None else self._life.state

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._life is not None and not self._life.over

    @property
    def pid(self) -> int | None:
        """Its process id, even after it ended. None before the first start."""
        return None if self._life is None else self._life.process.pid

    def logs(self) -> str:
        """Return what Kafka Streams logged and the topology's functions printed, since its first start."""
        return "".join(path.read_text(errors="replace") for path in self._log_files() if path.exists())

    def describe(self) -> str:
        """Return ``Topology.describe()`` of the topology that it runs, or ran last."""
        return self._description

    @property
    def restored(self) -> dict[str, int]:
        """How many changelog records were read to restore each store since the process last started.

        A standby that follows a store isn't counted, nor is a store that was restored from nothing.
        """
        return {} if self._life is None else dict(self._life.restored)

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

    def _file(self) -> Path:
        if isinstance(self._topology, Path):
            return self._topology
        file = self._log_files()[0].with_suffix(".py")
        file.write_text(self._topology, encoding="utf-8")
        return file

    def _log_files(self) -> tuple[Path, Path]:
        folder = self.cluster.run.directory / "streams"
        return folder / f"{self.name.replace('/', '_')}.log", folder / f"{self.name.replace('/', '_')}-output.log"

    def _all_settings(self) -> dict[str, str]:
        state = str(self._log_files()[0].with_suffix(""))
        where = {"bootstrap.servers": self.cluster.bootstrap_servers, "client.id": self.name}
        return {**where, "state.dir": state, **self.settings}

    def _required(self, verb: str) -> _Life:
        """Return its current life. If there is none, raise StreamsFailed with the reason."""
        if self._life is None or self._life.over:
            raise StreamsFailed(f"can't {verb} {self.name}: {self._how_it_is()}")
        return self._life

    def _must_live(self, what: str) -> None:
        """Raise StreamsFailed unless it runs."""
        if not self.alive:
            raise StreamsFailed(f"waiting for {what} is no use, because {self.name} doesn't run: {self._how_it_is()}")

    def _how_it_is(self) -> str:
        """Return its state, and why it ended, if it gave a reason."""
        reason = f": {self._life.reason}" if self._life is not None and self._life.reason else ""
        return f"{self.state}{reason}"


def stop_all(cluster: Cluster) -> set[str]:
    """Stop every instance that this process started on a cluster. Return their application ids."""
    lives = [_lives.pop(key) for key in list(_lives) if key[0] == cluster.run.id]
    for life in lives:
        life.close()
    return {life.application for life in lives}


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


class _Life:
    """One process of an application, from start to end."""

    def __init__(self, app: StreamsApp) -> None:
        self.state = "starting"
        self.reason = ""
        self.restored: Counter[str] = Counter()
        self.application = app.settings["application.id"]
        self._name = app.name
        self._explained = False  # whether it is known how this life ends
        self._log, self._output = app._log_files()
        self._log.parent.mkdir(exist_ok=True)
        self._ids = itertools.count()
        self._answers: dict[int, dict[str, Any]] = {}
        self._description: str | None = None
        self._owner = Owner()
        with self._output.open("ab") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kafkalab.streams.app_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                env=app.cluster.run.environment(),
                start_new_session=True,  # a cell's interrupt does not reach it
            )
        self._reader = threading.Thread(target=self._read, name=f"{self._name} events", daemon=True)
        self._reader.start()

    @property
    def over(self) -> bool:
        """Whether its process is gone and all of its reports are read."""
        return not self._reader.is_alive()

    def begin(self, start: dict[str, object]) -> str:
        """Tell it what to run, and wait until its topology is built. Return the topology's description."""
        self._send({**start, "log": str(self._log)})
        wait_until(
            lambda: self._description is not None or self.over,
            _START_TIMEOUT,
            f"the topology of {self._name} to be built",
            interval=_LOOK,
        )
        if self._description is None:
            why = self.reason if self.state in _SAID_SO else ": ".join(filter(None, (self.state, self.reason)))
            raise StreamsFailed(f"{self._name} does not start: {why}")
        return self._description

    def ask(self, store: str, stale: bool) -> dict[str, Any]:
        """Return its answer to a query of a store."""
        number = next(self._ids)
        self._send({"do": "query", "id": number, "store": store, "stale": stale})
        wait_until(
            lambda: number in self._answers or self.over, _ANSWER_TIMEOUT, f"{self._name} to answer", interval=_LOOK,
            last_seen=lambda: self.state,
        )  # fmt: skip
        return self._answers.pop(number, {"error": f"it ended meanwhile: {self.state}"})

    def close(self) -> None:
        """Stop it cleanly, and kill it if that takes too long. Does nothing in a forked process, which has only a copy."""
        if not self._owner.is_me:
            return
        if not self.over:
            self._send({"do": "close"})
            self._reader.join(_STOP_TIMEOUT)
        if not self.over:
            self.end("killed, because it did not end by itself")

    def end(self, state: str) -> None:
        """Kill it with SIGKILL, and note how it ended."""
        self.state, self._explained = state, True
        self.process.kill()
        self._reader.join()

    def discard(self) -> None:
        """Kill it because its cluster ends. Does nothing in a forked process, which has only a copy."""
        if not self._owner.is_me:
            return
        if not self.over:
            self.end("ended with the cluster")
        for key in [key for key, life in _lives.items() if life is self]:
            del _lives[key]

    def _send(self, command: dict[str, object]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):  # it's gone; the caller that waits for an answer notices
            self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None and self.process.stdin is not None
        with self.process.stdout as events:
            for line in events:
                if line.endswith(b"\n"):  # else it was killed while it wrote this line
                    self._take_in(json.loads(line))
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):  # what it never read
            self.process.stdin.close()
        if not self._explained:
            status, words = self.process.returncode, log_tail(self._output.read_text(errors="replace"))
            self.state = exit_status(status) if signal_of(status) else "ended by itself"
            self.reason = words or ("" if signal_of(status) else exit_status(status))

    def _take_in(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self._description = event["description"]
            case state if state in _SAID_SO and not self._explained:  # the first exception, where more than one thread has one
                self.state, self.reason, self._explained = state, event["reason"], True
            case "restored":
                self.restored[event["store"]] += event["records"]
            case "closed":
                self.state, self._explained = "stopped", True
            case "answer":
                self._answers[event["id"]] = event
            case "state" if not self._explained:
                self.state = event["state"]
