"""`SparkCluster`: Spark's own master and workers, as processes on this machine."""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import psutil
import pyspark

from kafkalab.cluster import running
from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.conditions import localhost, require, runs_executable, user_name
from kafkalab.distribution import spark_java_command
from kafkalab.distribution.java import write_script
from kafkalab.errors import SparkFailed
from kafkalab.lifeline import Owner, Run, reap
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.resources import require_memory
from kafkalab.security.files import write_private
from kafkalab.services.answers import direct
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


class SparkCluster:
    """A standalone Spark cluster on loopback: a master, and workers that each run one executor with one core.

    It ends with this process. A session needs its secret to use it. `spark_session` with ``master=`` has the secret.

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

    def __init__(self, workers: int = 2) -> None:
        if workers < 1:
            raise ValueError(f"a Spark cluster has at least one worker, not {workers}")
        self.name = "spark"
        self.faults: list[WorkerFault] = []
        self._number = workers
        self._run: Run | None = None
        self._owner = Owner()
        self._secret = secrets.token_urlsafe(24)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._killed: set[str] = set()  # processes that a fault verb ended, until they're restarted
        self._logged: dict[str, int] = {}  # what a process had logged before its last start: no reason for its end
        self._silence = ""  # why the master's page didn't answer when it was asked last
        self._port = self._page = 0
        self._on_stop: list[Callable[[], None]] = []
        end_nameless()

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the master and the workers. On return, every worker is registered. Does nothing if they're already started.

        Raises
        ------
        NotEnoughResources
            When there is too little memory for it and for its executors.
        SparkFailed
            When a process ends by itself; with its log's last lines.
        WaitTimeout
            When a worker doesn't register in time.
        """
        if self._run is not None:
            return self
        require(user_name, localhost, runs_executable)
        require_memory(_PROCESS + self._number * (_PROCESS + _EXECUTOR), f"a Spark cluster of {self._number} workers")
        self._run, self._owner = Run.create("spark-cluster"), Owner()
        self.faults.clear()
        try:
            with reserve_port() as master, reserve_port() as page:
                self._port, self._page = master.port, page.port
                self._prepare(self._run.directory)
                self._spawn("master", f"{_DEPLOY}.master.Master", "--port", str(self._port), "--webui-port", str(self._page))
                self._wait(lambda: self._status() is not None, "Spark's master to answer")
            for number in range(self._number):
                self._start_worker(number)
            self._wait(lambda: len(self.workers) == self._number, "every worker to register")
        except BaseException:
            self.stop()
            raise
        running.spark_clusters.announce(self)
        note_started(self, "Spark cluster", lambda: self._run is not None, self.stop)
        return self

    def stop(self) -> None:
        """End it with its executors. On return, its processes and files are gone.

        Does nothing in a process that was forked after `start`: the cluster belongs to its parent.
        """
        if not self._owner.is_me:
            return
        callbacks, self._on_stop = self._on_stop, []
        for callback in callbacks:
            callback()
        run, self._run = self._run, None
        if run is not None:
            reap(run)
        for process in self._processes.values():
            process.wait()
        self._processes = {}
        self._killed.clear()

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Register a function to call once, just before it stops."""
        self._on_stop.append(callback)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<SparkCluster: {f'{len(self.workers)} workers' if self._run else 'not running'}>"

    # -- faults -------------------------------------------------------------------------------------------------

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executor with SIGKILL, as if their machine had failed. On return, they're gone.

        Raises
        ------
        SparkFailed
            When there is no such worker, or it doesn't run.
        """
        process = self._worker(number)
        if process.poll() is not None:
            raise SparkFailed(f"worker {number} can't be killed: it doesn't run")
        executors = psutil.Process(process.pid).children(recursive=True)
        self._killed.add(f"worker-{number}")
        process.kill()
        process.wait()
        self._end(executors, "kill_worker", number)

    def kill_executor(self, number: int) -> None:
        """Kill the executor on a worker with SIGKILL. On return, it's gone. The worker runs on, and soon starts another one.

        Raises
        ------
        SparkFailed
            When there is no such worker, or no executor runs on it.
        """
        process = self._worker(number)
        executors = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        if not executors:
            raise SparkFailed(f"no executor runs on worker {number}: is there a session, and has it run something?")
        self._end(executors, "kill_executor", number)

    def restart_worker(self, number: int) -> None:
        """Start a killed worker again. On return, it's registered. Applications get an executor there.

        Raises
        ------
        SparkFailed
            When there is no such worker, or it ends before it registers.
        """
        process = self._worker(number)
        if process.poll() is None:
            return
        before = self.workers
        self._start_worker(number)
        self._wait(lambda: set(self.workers) - set(before), f"worker {number} to register")
        self._note("restart_worker", number)

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Address of the master: ``spark://…``."""
        self._started()
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
        self._started()
        status, driver = self._status(), driver_on(self.url)
        tasks = driver.tasks if driver else {}
        workers = []
        for number in range(self._number):
            process = self._processes[f"worker-{number}"]
            alive = process.poll() is None
            executors = (ExecutorView(one, tasks.get(one)) for one in _executors_of(process.pid)) if alive else ()
            workers.append(SparkWorkerView(number, alive, tuple(executors)))
        registered = len(self._alive(status))
        name, queries = (driver.name, driver.queries) if driver else (None, ())
        return SparkView(status is not None, registered, tuple(workers), name, queries)

    def logs(self, who: str) -> str:
        """Return the log so far of ``master``, ``worker-0`` and so on."""
        path = self._started().directory / f"{who}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- parts --------------------------------------------------------------------------------------------------

    def _started(self) -> Run:
        if self._run is None:
            raise SparkFailed("the Spark cluster is not running: call start() first")
        return self._run

    def _worker(self, number: int) -> subprocess.Popen[bytes]:
        self._started()
        if (process := self._processes.get(f"worker-{number}")) is None:
            raise SparkFailed(f"there is no worker {number}; there are {', '.join(map(str, range(self._number)))}")
        return process

    def _end(self, processes: list[psutil.Process], verb: str, worker: int) -> None:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, 20)
        self._note(verb, worker)

    def _note(self, verb: str, worker: int) -> None:
        self.faults.append(WorkerFault(time.time(), verb, worker))

    def _prepare(self, folder: Path) -> None:
        """Write the settings with the secret, and the script that starts Java for executors."""
        secret = f"spark.authenticate true\nspark.authenticate.secret {self._secret}\n"
        write_private(folder / "spark.properties", secret)
        java = shlex.join([str(spark_java_command()), *archive_options()])
        write_script(folder / "java" / "bin" / "java", _JAVA.format(java=java, classes=shlex.quote(classpath())))
        (folder / "tmp").mkdir()

    def _start_worker(self, number: int) -> None:
        folder = self._started().directory
        self._spawn(
            f"worker-{number}", f"{_DEPLOY}.worker.Worker", "--cores", "1", "--memory", f"{EXECUTOR_MB}M", "--webui-port", "0",
            "--work-dir", str(folder / f"work-{number}"), self.url,
        )  # fmt: skip

    def _spawn(self, name: str, main: str, *arguments: str) -> None:
        run = self._started()
        settings = ("--host", HOST, "--properties-file", str(run.directory / "spark.properties"))
        environment = {
            "SPARK_LOCAL_IP": HOST,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_SCALA_VERSION": "2.13",  # else a worker looks for a build of Spark's own sources
            "JAVA_HOME": str(run.directory / "java"),
        }
        self._logged[name] = len(self.logs(name))
        with (run.directory / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(spark_java_command()), *jvm_options(_HEAP, run.directory / "tmp"), "-cp", classpath(), main,
                 *settings, *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=run.directory,
                env={**run.environment(), **environment}, start_new_session=True,
            )  # fmt: skip
        self._killed.discard(name)

    def _wait(self, condition: Any, what: str) -> None:
        def look() -> object:
            for name, process in self._processes.items():
                if name not in self._killed and (status := process.poll()) is not None:
                    why = ended(f"Spark's {name}", status, {f"{name}.log": self.logs(name)[self._logged.get(name, 0) :]})
                    raise SparkFailed(f"{why}\nIts last lines:\n{log_tail(self.logs(name))}")
            return condition()

        def last_seen() -> str:
            return f"{self._silence or 'the master answers'}\nIts last lines:\n{log_tail(self.logs('master'))}"

        wait_until(look, _START_SECONDS, what, last_seen=last_seen)

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


def _executors_of(worker: int) -> list[int]:
    """Return the numbers of the executors that a worker's process has started. Their command lines have them."""
    numbers = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in psutil.Process(worker).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                words = process.cmdline()
                if _EXECUTOR_NUMBER in words:
                    numbers.append(int(words[words.index(_EXECUTOR_NUMBER) + 1]))
    return sorted(numbers)
