"""The Spark session of a notebook."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import weakref
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafkalab import underway
from kafkalab.cluster.ports import HOST
from kafkalab.conditions import localhost, require, runs_executable, user_name
from kafkalab.distribution import warn
from kafkalab.environment import SPARK, forget
from kafkalab.errors import SparkFailed
from kafkalab.exits import exit_status
from kafkalab.lifeline import Run
from kafkalab.resources import require_memory
from kafkalab.running import spark_sessions
from kafkalab.spark.jvm import start_jvm
from kafkalab.spark.masters import Master, choose_master, without_secrets
from kafkalab.spark.remote import address_of, remote_session, start_remote
from kafkalab.spark.session_end import SessionEnd
from kafkalab.spark.standalone import SparkCluster

if TYPE_CHECKING:
    from kafkalab.cluster import Cluster

__all__ = ["hush_py4j", "kafka_options", "kafka_source_options", "kill_spark", "spark_session", "start_session"]

_MEMORY = "512m"
_NEEDED = 400 << 20  # bytes that its JVM takes, measured in the course's notebooks

# Settings for Delta Lake's tables. They are optional, because with them each query looks for such tables.
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

# Settings of every session, wherever it runs.
_OWN = {
    # Each partition of a shuffle is a task. The default, 200 tasks, takes longer than a lesson's data needs.
    "spark.sql.shuffle.partitions": "2",
    # Tasks that read the log of a Delta Lake table (default 50).
    "spark.databricks.delta.snapshotPartitions": "2",
    # How long a query without new data waits before it asks Kafka again. With Spark's default of 10 ms, an idle query keeps
    # a third of a processor busy, in three brokers and Spark. With 100 ms it's a twentieth.
    "spark.sql.streaming.pollingDelay": "100ms",
    # Times read the same on every machine.
    "spark.sql.session.timeZone": "UTC",
    # A DataFrame that ends a cell is shown as a table (Spark's own: https://spark.apache.org/docs/latest/configuration.html).
    "spark.sql.repl.eagerEval.enabled": "true",
    "spark.sql.repl.eagerEval.truncate": "80",  # characters of a value; the default is 20
}

_PY4J = logging.getLogger("py4j")

_run: Run | None = None  # the run of this process's only JVM
_gateway: Any = None  # the connection to that JVM
_killed: subprocess.Popen[bytes] | None = None
_known_clusters: weakref.WeakSet[Cluster] = weakref.WeakSet()
_reading_kafka: weakref.WeakSet[Any] = weakref.WeakSet()  # sessions that can read Kafka


def spark_session(
    cluster: Cluster | None = None,
    *,
    name: str = "kafkalab",
    master: SparkCluster | str | None = None,
    delta: bool = False,
) -> SparkSession:
    """Return a Spark session that can read and write Kafka. It runs on this machine unless you name a master.

    The first call starts Spark (``local[2]``, 512 MB). Later ones return the same session, or a new one after
    ``spark.stop()``. It ends with this process, and leaves no file behind.

    With the address of a Spark Connect server, Spark runs on that server, and this process starts no JVM. The server needs
    the packages of Spark's Kafka and Avro connectors. Python functions run on its Python, which must have this one's version
    and the modules that they import, such as ``truck_pipeline``. If this process is killed, its streams go on there until
    others start from the same checkpoints.

    Parameters
    ----------
    cluster
        A running cluster. Before it stops, it stops the session's streams.
    name
        The application's name.
    master
        The Spark cluster that runs the session's tasks: a running `SparkCluster`, an address (``spark://host:port``,
        ``yarn``, ``k8s://…``), or the address of a Spark Connect server (``sc://host:port``). Without it, the variable
        ``KAFKALAB_SPARK_MASTER`` can name the address, and ``KAFKALAB_SPARK_SETTINGS`` hold settings as JSON. Without
        both, tasks run in the session's own JVM.
    delta
        Whether it reads and writes Delta Lake's tables: ``spark.read.format("delta")``, and ``MERGE`` and ``RESTORE`` in SQL.
        A Spark Connect server must have been started for that.

    Returns
    -------
    SparkSession
        An ordinary one: ``spark.read.format("kafka").options(**kafka_options(cluster))``.

    Raises
    ------
    JavaError, SparkFailed, DownloadError, NotEnoughResources
        If Spark can't start.
    SparkFailed
        Also if no master answers at the address, or there is already a session that runs elsewhere, lacks Delta Lake, or
        can't read Kafka because something else started it.
    """
    session = start_session(name, master, delta)
    if cluster is not None and cluster not in _known_clusters:
        _known_clusters.add(cluster)
        cluster.nodes.on_stop(lambda: _stop_streams(cluster))
    return session


def kill_spark(session: SparkSession) -> None:
    """Kill the JVM of a session that `spark_session` returned with SIGKILL, in the middle of its work, as a crash would.

    The session is useless after that. `spark_session` starts another one. Killing it twice does no harm.

    Raises
    ------
    SparkFailed
        If it's a Spark Connect session, whose JVM isn't on this machine.
    """
    global _killed
    _killed = jvm_process(session)
    hush_py4j()
    _killed.kill()
    _killed.wait()


def hush_py4j(hushed: bool = True) -> None:
    """Silence py4j until another session starts, or let it log again. When its JVM dies, it logs a trace for each call."""
    _PY4J.setLevel(logging.CRITICAL if hushed else logging.NOTSET)
    change = logging.root.addFilter if hushed else logging.root.removeFilter
    change(_is_not_from_py4j)  # it uses the root logger, too


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != _PY4J.name


def jvm_process(session: SparkSession) -> subprocess.Popen[bytes]:
    """Return the process of Spark's JVM. This Python process has only one."""
    if session is remote_session():
        raise SparkFailed(f"Spark's JVM isn't a process of this machine's: it runs behind {address_of(session)}")
    gateway: Any = session.sparkContext._gateway
    process: subprocess.Popen[bytes] = gateway.proc
    return process


def kafka_options(cluster: Cluster) -> dict[str, str]:
    """Return options of Spark's Kafka source and sink for a cluster.

    Examples
    --------
    >>> spark.read.format("kafka").options(**kafka_options(cluster)).option("subscribe", "atu").load()  # doctest: +SKIP
    """
    return kafka_source_options(cluster.bootstrap_servers)


def kafka_source_options(bootstrap_servers: str) -> dict[str, str]:
    """Return options of Spark's Kafka source and sink for brokers at an address."""
    return {
        "kafka.bootstrap.servers": bootstrap_servers,
        # Spark asks for a partition's end on the connection on which a fetch waits for more records, and the broker
        # answers in order: half a second (the default) for each partition of each query.
        "kafka.fetch.max.wait.ms": "10",
    }


def start_session(
    name: str, master: SparkCluster | str | None = None, delta: bool = False, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return this process's session. Start one if there is none, with more settings of Spark's if some are given."""
    if ended := _forget_dead_jvm():
        warn(f"Spark's JVM is gone, and its session with it ({ended}). Another one starts")
    running = _running()
    if running is None:
        chosen = choose_master(master)
        chosen = replace(chosen, settings={**chosen.settings, **(settings or {})})
        with underway.task("Starting Spark"):
            (_start_remote if chosen.remote else _start)(name, chosen, delta)
    elif delta and not _has_delta(running):
        raise SparkFailed("there is a session already, without Delta Lake: call its stop() first")
    elif master is not None and running.url != _url(master):
        raise SparkFailed("there is a session already, which runs elsewhere: call its stop() first")
    session = remote_session() or SparkSession.builder.getOrCreate()
    if running is not None:
        _require_kafka(session, running)
    else:
        spark_sessions.announce(session, SessionEnd(session).on_stop)
    _reading_kafka.add(session)
    return session


def _require_kafka(session: Any, running: Master) -> None:
    """Raise `SparkFailed` if a session that kafkalab didn't start lacks the Kafka source. This asks no broker."""
    if session in _reading_kafka or (session is not remote_session() and SparkContext._gateway is _gateway):
        return
    settings = kafka_source_options(f"{HOST}:9") | {"subscribe": "any"}
    try:
        session.read.format("kafka").options(**settings).load().schema  # noqa: B018 -- Spark looks for the source
    except PySparkException as error:
        name = running.settings.get("spark.app.name", "without a name")
        raise SparkFailed(
            f"there is a Spark session already ({name!r}, {running.url}) that can't read Kafka: something other than "
            "spark_session() started it. Stop that one first (`SparkSession.active().stop()`), and call spark_session() again"
        ) from error


def _running() -> Master | None:
    """Return where this process's session runs, and its settings. None if there is no session."""
    if remote := remote_session():
        return Master(address_of(remote), remote.conf.getAll)
    active = SparkContext._active_spark_context
    return Master(str(active.master), dict(active.getConf().getAll())) if active else None


def _url(master: SparkCluster | str) -> str:
    return master.url if isinstance(master, SparkCluster) else without_secrets(master)


def _has_delta(running: Master) -> bool:
    return all(value in running.settings.get(setting, "") for setting, value in _DELTA.items())  # perhaps beside others


def _start_remote(name: str, master: Master, delta: bool) -> None:
    session = start_remote(name, master, {**_OWN, **master.settings})
    if delta and not _has_delta(Master(master.url, session.conf.getAll)):
        session.stop()
        options = " ".join(f"--conf {setting}={value}" for setting, value in _DELTA.items())
        raise SparkFailed(f"the Spark Connect server has no Delta Lake: start it with its package, and with {options}")


def _start(name: str, master: Master, delta: bool) -> None:
    global _run, _gateway
    hush_py4j(False)
    _end_foreign_jvm()
    # These variables are for another Spark, or left from a Spark Connect session.
    forget(SPARK)
    # Run a query's Python functions on this Python: another one has other packages.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    gateway = None
    if SparkContext._gateway is None:
        require(user_name, localhost, runs_executable)
        require_memory(_NEEDED, "Spark")
        _run = Run.create("spark")
        gateway = _gateway = start_jvm(_run, _MEMORY, *master.classpath)
    SparkContext(conf=_configuration(name, master, delta), gateway=gateway)
    _remove_artifacts_folder(SparkSession.builder.getOrCreate())


def _remove_artifacts_folder(session: SparkSession) -> None:
    # Spark 4.0.0 means to create a session's folder for uploads among the temporary files, but creates it in ``artifacts``
    # in the working folder. It's empty, and Spark creates it again if it needs it.
    session._jsparkSession.artifactManager()
    for folder in [*Path("artifacts").glob("spark-*"), Path("artifacts")]:
        with contextlib.suppress(OSError):  # missing, or not empty and so not Spark's
            folder.rmdir()


def _configuration(name: str, master: Master, delta: bool) -> SparkConf:
    settings = {
        "spark.app.name": name,
        "spark.master": master.url,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_OWN,
    }
    if delta:
        settings |= _DELTA
    if _run is not None:
        settings["spark.local.dir"] = str(_run.directory / "local")
        settings["spark.sql.warehouse.dir"] = str(_run.directory / "warehouse")
    settings |= master.settings
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _end_foreign_jvm() -> None:
    """End the JVM of a stopped session that kafkalab didn't start. It lacks Spark's connectors."""
    gateway: Any = SparkContext._gateway
    if gateway is None or gateway is _gateway:
        return
    process = getattr(gateway, "proc", None)
    _forget(gateway)
    if process is not None:
        process.kill()
        process.wait()


def _forget_dead_jvm() -> str:
    """Forget a JVM that ran out of memory or was killed. Otherwise PySpark would go on asking it.

    Returns
    -------
    str
        How it ended. Empty if it lives, or if `kill_spark` ended it.
    """
    gateway = SparkContext._gateway
    process: Any = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return ""
    if _killed is not None and _killed is process:
        _killed.wait()  # if a stream's function killed it, another thread waits, too
    if process.poll() is None:
        return ""
    _forget(gateway)
    return "" if process is _killed else exit_status(process.returncode)


def _forget(gateway: Any) -> None:
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _stop_streams(cluster: Cluster) -> None:
    _known_clusters.discard(cluster)
    stop_streams()


def stop_streams() -> None:
    """Stop the streams of the session, if there is one."""
    _forget_dead_jvm()  # its streams are dead, too
    session = remote_session() or (SparkContext._active_spark_context and SparkSession._instantiatedSession)
    for query in session.streams.active if session else ():
        query.stop()
