"""`SparkCluster`: Spark's own master and workers, as processes on this machine."""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pyspark

from kafkalab.cluster.ports import HOST
from kafkalab.conditions import localhost, require, runs_executable, user_name
from kafkalab.distribution import spark_java_command
from kafkalab.distribution.java import write_script
from kafkalab.errors import SparkFailed
from kafkalab.lifeline import Run
from kafkalab.resources import require_memory
from kafkalab.running import spark_clusters
from kafkalab.security.files import write_private
from kafkalab.services.answers import direct
from kafkalab.services.base import Service
from kafkalab.services.server import ServerProcess, kill_all
from kafkalab.spark.archive import archive_options, classpath
from kafkalab.spark.driver import driver_on
from kafkalab.spark.jvm import jvm_options
from kafkalab.spark.view import ExecutorView, SparkView, SparkWorkerView
from kafkalab.waiting import wait_until

__all__ = ["EXECUTOR_MB", "SparkCluster", "WorkerFault"]

_START_SECONDS = 120.0
_DEPLOY = "org.apache.spark.deploy"
_EXECUTOR_NUMBER = "--executor-id"
_HEAP = "128m"  # of the master and of a worker; their executors have their own
EXECUTOR_MB = 512  # the least that Spark allows
# What each takes, measured: a master or worker, and an executor. With the class-data archive a master would take 250 MB.
_PROCESS, _EXECUTOR = 160 << 20, 280 << 20

# What Spark calls to start an executor. It leaves out a module that the course's own Java lacks, which is for some linear
# algebra. In front of the class path it puts the one that the class-data archive was made with: Spark's jars, and connectors.
_JAVA = """#!/bin/sh
before=
for argument; do
  shift
  [ "$before" != -cp ] || argument={classes}:$argument
  before=$argument
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class WorkerFault(NamedTuple):
    """A call of a method such as `kill_worker`: `verb` is the method's name, `at` the time in seconds since the epoch."""

    at: float
    verb: str
    worker: int


class SparkCluster(Service):
    """A standalone Spark cluster on loopback: a master, and workers that each run one executor with one core.

    On return of `start`, every worker is registered. A session needs the cluster's secret to use it. `spark_session` with
    ``master=`` has the secret.

    Parameters
    ----------
    workers
        How many.

    Attributes
    ----------
    name
        What the panel calls it.
    faults
        What was done to its workers, in that order.

    Raises
    ------
    ValueError
        When the number of workers is less than one.

    Examples
    --------
    >>> with SparkCluster(workers=2) as spark_cluster:  # doctest: +SKIP
    ...     spark = spark_session(master=spark_cluster)
    """

    _KIND, _WHO, _NOUN, _FAILURE = "spark-cluster", "the Spark cluster", "Spark cluster", SparkFailed
    _REGISTER = spark_clusters

    def __init__(self, workers: int = 2) -> None:
        if workers < 1:
            raise ValueError(f"a Spark cluster has at least one worker, not {workers}")
        super().__init__()
        self.name = "spark"
        self.faults: list[WorkerFault] = []
        self._number = workers
        self._secret = secrets.token_urlsafe(24)
        self._master: ServerProcess | None = None
        self._workers: list[ServerProcess] = []
        self._port = self._page = 0
        self._silence = ""  # why the master's page didn't answer when it was asked last

    def __repr__(self) -> str:
        return f"<SparkCluster: {f'{len(self.workers)} workers' if self.running else 'not running'}>"

    @property
    def running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._run is not None

    # -- faults -------------------------------------------------------------------------------------------------

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executor with SIGKILL, as if their machine had failed. On return, they're gone.

        Raises
        ------
        SparkFailed
            When there is no such worker, or it doesn't run.
        """
        self._worker(number).kill()
        self._note("kill_worker", number)

    def kill_executor(self, number: int) -> None:
        """Kill the executor on a worker with SIGKILL. On return, it's gone. The worker runs on, and soon starts another one.

        Raises
        ------
        SparkFailed
            When there is no such worker, or no executor runs on it.
        """
        executors = self._worker(number).children()
        if not executors:
            raise SparkFailed(f"no executor runs on worker {number}: is there a session, and has it run something?")
        kill_all(executors)
        self._note("kill_executor", number)

    def restart_worker(self, number: int) -> None:
        """Start a killed worker again. On return, it's registered. Applications get an executor there.

        Raises
        ------
        SparkFailed
            When there is no such worker, or it ends before it registers.
        """
        worker = self._worker(number)
        if worker.alive:
            return
        before = self.workers
        self._launch_worker(worker)
        self._wait(lambda: set(self.workers) - set(before), f"worker {number} to register", [worker])
        self._note("restart_worker", number)

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Address of the master: ``spark://…``."""
        self._require_started()
        return f"spark://{HOST}:{self._port}"

    @property
    def secret(self) -> str:
        """The secret that a session needs to use it (``spark.authenticate.secret``)."""
        return self._secret

    @property
    def workers(self) -> list[str]:
        """Ids of the workers that the master counts as alive. It drops a killed worker at once, because its connection ends."""
        return self._alive(self._status())

    @property
    def applications(self) -> list[str]:
        """Names of the applications that have used it so far."""
        status = self._status()
        return [one["name"] for one in (*status["completedapps"], *status["activeapps"])] if status else []

    def describe(self) -> SparkView:
        """Return the master, workers and executors as they are now, and the streams that this process runs on them."""
        self._require_started()
        status, driver = self._status(), driver_on(self.url)
        tasks = driver.tasks if driver else {}
        workers = []
        for number, worker in enumerate(self._workers):
            executors = tuple(ExecutorView(executor, tasks.get(executor)) for executor in _executors_of(worker))
            workers.append(SparkWorkerView(number, worker.alive, executors))
        registered = len(self._alive(status))
        name, queries = (driver.name, driver.queries) if driver else (None, ())
        return SparkView(status is not None, registered, tuple(workers), name, queries)

    def logs(self, who: str) -> str:
        """Return the log so far of ``master``, ``worker-0`` and so on."""
        path = self._require_started().directory / f"{who}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- parts --------------------------------------------------------------------------------------------------

    def _require(self) -> None:
        require(user_name, localhost, runs_executable)
        require_memory(_PROCESS + self._number * (_PROCESS + _EXECUTOR), f"a Spark cluster of {self._number} workers")

    def _set_up(self, run: Run) -> None:
        self.faults.clear()
        self._prepare(run.directory)
        self._master = self._process(run, "master", ports=(0, 0))
        self._port, self._page = self._master.ports
        self._workers = [self._process(run, f"worker-{number}") for number in range(self._number)]

    def _process(self, run: Run, name: str, ports: Sequence[int] = ()) -> ServerProcess:
        process = ServerProcess(run, name, f"Spark's {name.replace('-', ' ')}", SparkFailed, ports=ports)
        self._held.callback(process.destroy)
        return process

    def _begin(self) -> None:
        assert self._master is not None
        self._launch(self._master, "master.Master", "--port", str(self._port), "--webui-port", str(self._page))
        self._wait(lambda: self._status() is not None, "Spark's master to answer")
        for worker in self._workers:
            self._launch_worker(worker)
        self._wait(lambda: len(self.workers) == self._number, "every worker to register", self._workers)

    def _worker(self, number: int) -> ServerProcess:
        self._require_started()
        if number not in range(self._number):
            raise SparkFailed(f"there is no worker {number}; there are {', '.join(map(str, range(self._number)))}")
        return self._workers[number]

    def _note(self, verb: str, worker: int) -> None:
        self.faults.append(WorkerFault(time.time(), verb, worker))

    def _prepare(self, folder: Path) -> None:
        """Write the settings with the secret, and the script that starts Java for executors."""
        secret = f"spark.authenticate true\nspark.authenticate.secret {self._secret}\n"
        write_private(folder / "spark.properties", secret)
        java = shlex.join([str(spark_java_command()), *archive_options()])
        write_script(folder / "java" / "bin" / "java", _JAVA.format(java=java, classes=shlex.quote(classpath())))
        (folder / "tmp").mkdir()

    def _launch_worker(self, worker: ServerProcess) -> None:
        self._launch(
            worker, "worker.Worker", "--cores", "1", "--memory", f"{EXECUTOR_MB}M", "--webui-port", "0",
            "--work-dir", str(worker.folder / f"work-{self._workers.index(worker)}"), self.url,
        )  # fmt: skip

    def _launch(self, process: ServerProcess, main: str, *arguments: str) -> None:
        folder = process.folder
        process.launch(
            [str(spark_java_command()), *jvm_options(_HEAP, folder / "tmp"), "-cp", classpath(), f"{_DEPLOY}.{main}",
             "--host", HOST, "--properties-file", str(folder / "spark.properties"), *arguments],
            {
                "SPARK_LOCAL_IP": HOST,
                "SPARK_HOME": str(Path(pyspark.__file__).parent),
                "SPARK_SCALA_VERSION": "2.13",  # else a worker looks for a build of Spark's own sources
                "JAVA_HOME": str(folder / "java"),
            },
        )  # fmt: skip

    def _wait(self, condition: Callable[[], object], what: str, workers: Sequence[ServerProcess] = ()) -> None:
        """Wait until a condition is true, as long as the master and these workers run."""
        assert self._master is not None
        master = self._master

        def all_run() -> None:
            for process in (master, *workers):
                process.require_alive()

        wait_until(
            condition, _START_SECONDS, what, unless=all_run,
            last_seen=lambda: master.last_words(self._silence or "the master answers"),
        )  # fmt: skip

    @staticmethod
    def _alive(status: dict[str, Any] | None) -> list[str]:
        return [worker["id"] for worker in status["workers"] if worker["state"] == "ALIVE"] if status else []

    def _status(self) -> dict[str, Any] | None:
        """Return the master's status page as JSON. None while the master doesn't answer."""
        try:
            with direct.open(f"http://{HOST}:{self._page}/json/", timeout=10) as answer:
                status: dict[str, Any] = json.load(answer)
        except (OSError, ValueError) as error:
            self._silence = f"the master doesn't answer: {error}"
            return None
        self._silence = ""
        return status


def _executors_of(worker: ServerProcess) -> list[int]:
    """Return the numbers of the executors that a worker has started. Their command lines have them."""
    numbers = []
    for process in worker.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            words = process.cmdline()
            if _EXECUTOR_NUMBER in words:
                numbers.append(int(words[words.index(_EXECUTOR_NUMBER) + 1]))
    return sorted(numbers)
