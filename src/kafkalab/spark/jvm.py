"""Start Spark's JVM directly, without Spark's launcher. It ends with this process."""

from __future__ import annotations

import os
import subprocess
from importlib import metadata
from pathlib import Path
from typing import IO

import pyspark
from py4j.clientserver import ClientServer
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.cluster.ports import HOST
from kafkalab.distribution import spark_java_command
from kafkalab.errors import SparkFailed
from kafkalab.lifeline import Run
from kafkalab.limits import end_first
from kafkalab.spark.archive import archive_options, classpath
from kafkalab.waiting import wait_until

__all__ = ["jvm_options", "start_jvm"]

_START_TIMEOUT = 120.0
_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
# The master of a session that the learner starts in this JVM, with ``SparkSession.builder.getOrCreate()``.
_DEFAULT_MASTER = "-Dspark.master=local[2]"

# Packages of Java that Spark 4.2 accesses by reflection, from ``org.apache.spark.launcher.JavaModuleOptions``. Its option
# ``--add-modules=jdk.incubator.vector`` is left out: it's for linear algebra, and the course's Java lacks that module.
_OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)


def start_jvm(run: Run, memory: str, *more_classpath: str) -> ClientServer:
    """Start Spark's JVM and connect to it.

    This takes half the time of ``spark-submit``, which would first run a shell script and a second JVM, and load the
    connector into a separate class loader.

    Parameters
    ----------
    run
        The run that the JVM belongs to. Its folder gets ``spark.log`` and the JVM's temporary files.
    memory
        Java heap, as in ``-Xmx``.
    *more_classpath
        More folders for its class path, such as one with Hadoop's settings.

    Raises
    ------
    JavaError
        If Spark doesn't run on this Java.
    SparkFailed
        If the JVM ends before it answers (the message holds its last lines), or Python has loaded another PySpark.
    """
    _require_own_pyspark()
    java = spark_java_command()
    temporary = run.directory / "tmp"
    temporary.mkdir()
    address, log_file = run.directory / "gateway", run.directory / "spark.log"
    path = os.pathsep.join([classpath(), *more_classpath])
    command = [str(java), *jvm_options(memory, temporary), *archive_options(), _DEFAULT_MASTER, "-cp", path, _MAIN]
    with open(log_file, "wb") as log:
        process = _launch(command, run, address, log)
    try:
        wait_until(
            lambda: address.exists() or process.poll() is not None,
            _START_TIMEOUT,
            "Spark's JVM to start",
            last_seen=lambda: log_tail(log_file.read_text(errors="replace")),
        )
        if not address.exists():
            output = log_file.read_text(errors="replace")
            why = ended("Spark's JVM", process.poll(), {log_file.name: output})
            raise SparkFailed(f"Spark did not start: {why}\nIts last lines:\n{log_tail(output)}")
        gateway = _connect(address)
    except BaseException:
        process.kill()
        process.wait()
        raise
    gateway.proc = process
    return gateway


def _require_own_pyspark() -> None:
    pinned = metadata.version("pyspark")
    if pyspark.__version__ != pinned:
        raise SparkFailed(
            f"Python has loaded PySpark {pyspark.__version__} from {Path(pyspark.__file__).parent}, not the course's {pinned}. "
            "PYTHONPATH names another Spark: unset it, and restart the kernel"
        )


def jvm_options(memory: str, temporary: Path) -> list[str]:
    """Return options for one of Spark's JVMs. `memory` is its heap, as in ``-Xmx``."""
    return [
        f"-Xmx{memory}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",  # lessons are short: the second compiler costs more time than it saves
        "-XX:-UsePerfData",
        f"-Djava.io.tmpdir={temporary}",
        f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}",
        "-Djdk.reflect.useDirectMethodHandle=false",
        "-Dio.netty.tryReflectionSetAccessible=true",
        "-Dio.netty.allocator.type=pooled",
        "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    ]


def _launch(command: list[str], run: Run, address: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # the JVM ends when this pipe does
        stderr=log,  # standard output stays the cell's: a stream's ``console`` sink writes there
        env={**run.environment(), "SPARK_LOCAL_IP": HOST, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)},
        start_new_session=True,  # interrupting a cell cancels Spark's jobs (PySpark does that), but doesn't end the JVM
    )
    end_first(process.pid)
    return process


def _connect(address: Path) -> ClientServer:
    with open(address, "rb") as info:
        port, secret = read_int(info), UTF8Deserializer().loads(info)
    # PySpark connects to a running JVM if these are set.
    os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(port), secret
    try:
        return launch_gateway()
    finally:
        del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
