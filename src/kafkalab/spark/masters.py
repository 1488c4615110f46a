"""Choose where a session's tasks run: in its own JVM, on a `SparkCluster`, or on another Spark cluster."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from kafkalab.cluster.ports import HOST
from kafkalab.distribution import spark_jars
from kafkalab.errors import SparkFailed
from kafkalab.spark.standalone import EXECUTOR_MB, SparkCluster

__all__ = ["Master", "choose_master", "reach", "without_secrets"]

_LOCAL = re.compile(r"local(\[[\d*, ]+\])?")
_CONNECT = "sc://"
_CONNECT_PORT = 15002  # Spark Connect's default
_REMOTE = re.compile(r"sc://([^:/;]+)(?::(\d{1,5}))?(?:/(?:;.*)?)?")
_HADOOP = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_SECONDS = 5.0  # to wait for a master's answer; Spark itself would wait for a minute


@dataclass(frozen=True)
class Master:
    """A master's address in Spark's form, with the settings and class path that a session there needs."""

    url: str = field(repr=False)  # Spark Connect's may hold a token
    settings: Mapping[str, str] = field(repr=False)  # they may hold a secret
    classpath: tuple[str, ...] = ()

    @property
    def remote(self) -> bool:
        """Whether the driver runs there too, behind Spark Connect. Then this process has no JVM."""
        return self.url.startswith(_CONNECT)


def choose_master(master: SparkCluster | str | None) -> Master:
    """Return this master, else the one that ``KAFKALAB_SPARK_MASTER`` names, else this machine.

    ``KAFKALAB_SPARK_SETTINGS`` holds settings, as JSON, for a master with an address.

    Raises
    ------
    SparkFailed
        If no master answers at that address, or the address isn't of a known kind.
    """
    if isinstance(master, SparkCluster):
        return Master(master.url, _of_a_cluster(master))
    url = master or os.environ.get("KAFKALAB_SPARK_MASTER", "")
    if not url:
        return Master("local[2]", _on_this_machine())
    if _LOCAL.fullmatch(url):
        return Master(url, {**_on_this_machine(), **_own_settings()})
    if url.startswith(_CONNECT):
        reach(url)
        return Master(url, _own_settings())
    jars = {"spark.jars": ",".join(map(str, spark_jars()))}  # executors fetch the connectors from here
    if url == "yarn":
        folder = _hadoop_folder()
        return Master(url, {**_driver_at(socket.gethostname()), **jars, **_own_settings()}, (folder,))
    return Master(url, {**_driver_at(reach(url)), **jars, **_own_settings()})


def without_secrets(url: str) -> str:
    """Return a server's address without Spark Connect's parameters, which may hold a token."""
    if match := _REMOTE.fullmatch(url):
        return f"{_CONNECT}{match[1]}:{match[2] or _CONNECT_PORT}"
    return url.partition(";")[0]


def _driver_at(host: str) -> dict[str, str]:
    """Return settings that let executors find the session's own JVM."""
    return {"spark.driver.host": host, "spark.driver.bindAddress": host}


def _on_this_machine() -> dict[str, str]:
    """Return settings of a session whose driver, tasks and checkpoints are on this machine."""
    return {
        **_driver_at(HOST),
        # A learner's `queue.py` must not take the place of Python's own in a query's Python functions.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.python.daemon.module": "kafkalab.spark.daemon",
        # Without its native library, Hadoop starts processes for file operations (readlink, chmod). Spark's default manager
        # causes about ten for each file of a checkpoint, a quarter of a second for a micro-batch with state. This one
        # causes two.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        # It needs a file system whose rename replaces a file: a batch that runs again replaces the state of its first run.
        # Without this setting Hadoop may take one that doesn't, and nothing says so.
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    }


def _of_a_cluster(master: SparkCluster) -> dict[str, str]:
    return {
        **_on_this_machine(),
        "spark.authenticate": "true",
        "spark.authenticate.secret": master.secret,
        "spark.executor.memory": f"{EXECUTOR_MB}m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData",
        # How long a task waits for the executor that has its state (default 3 s), even if that was killed. All executors
        # are on this machine, so another one can read the state from the checkpoint at once.
        "spark.locality.wait": "200ms",
        # Wait for all executors. Otherwise the first query would run on one of them.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }


def _own_settings() -> dict[str, str]:
    text = os.environ.get("KAFKALAB_SPARK_SETTINGS", "{}")
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise SparkFailed('KAFKALAB_SPARK_SETTINGS should be JSON such as {"spark.executor.memory": "1g"}')
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}


def _hadoop_folder() -> str:
    """Return the folder with Hadoop's settings, which hold YARN's address."""
    for folder in filter(None, map(os.environ.get, _HADOOP)):
        if Path(folder, "yarn-site.xml").is_file():
            return folder
    raise SparkFailed(
        f"the Spark master is to be yarn, but neither {' nor '.join(_HADOOP)} names a folder with a yarn-site.xml: set one of "
        "them, or unset KAFKALAB_SPARK_MASTER"
    )


def reach(url: str) -> str:
    """Connect to a master, and return the address of this machine that it can reach.

    Raises
    ------
    SparkFailed
        If nobody answers within 5 s, or the address isn't of a known kind.
    """
    problems = []
    for host, port in _addresses(url):
        try:
            with socket.create_connection((host, port), _SECONDS) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            problems.append(f"{host}:{port}: {error.strerror or error}")
    raise SparkFailed(
        f"no Spark master answers at {without_secrets(url)} ({'; '.join(problems)}). Is it running, and is that its address? "
        "Without KAFKALAB_SPARK_MASTER, and without master=, Spark runs on this machine."
    )


def _addresses(url: str) -> list[tuple[str, int]]:
    scheme, _, location = url.partition("://")
    if scheme == "k8s":
        parts = urlsplit(location if "://" in location else f"https://{location}")
        if parts.hostname:
            return [(parts.hostname, parts.port or (80 if parts.scheme == "http" else 443))]
    elif match := _REMOTE.fullmatch(url):
        return [(match[1], int(match[2] or _CONNECT_PORT))]
    elif scheme == "spark":
        matches = [re.fullmatch(r"(.+):(\d{1,5})", address) for address in location.split(",")]
        if all(matches):
            return [(match[1], int(match[2])) for match in matches if match]
    raise SparkFailed(
        f"{without_secrets(url)!r} is no address of a Spark master: use spark://host:port, yarn, k8s://https://host:port, "
        "sc://host:port (Spark Connect) or local[n]."
    )
