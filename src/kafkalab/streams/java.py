"""Run Java with Kafka Streams within this process."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jpype
import jpype.imports

from kafkalab import underway
from kafkalab.distribution import (
    JVM_OPTIONS,
    NODE_LOG_SETTINGS,
    announce,
    archive_options,
    classpath,
    ensure_jars,
    java_home,
)
from kafkalab.environment import JAVA_OPTIONS, LOCALE, settle
from kafkalab.errors import JavaError

__all__ = ["properties", "start_java", "use_java"]

_HEAP = "64m"

_STRINGS = "org.apache.kafka.common.serialization.Serdes$StringSerde"

_DEFAULTS: Mapping[str, str] = {
    "default.key.serde": _STRINGS,
    "default.value.serde": _STRINGS,
    # RocksDB, the default, takes 73 MB of native libraries. A lesson's stores fit into memory.
    "dsl.store.suppliers.class": "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers",
}


def start_java(log: Path, heap: str = _HEAP, temporary: Path | None = None) -> None:
    """Start Java in this process. A process can do that only once.

    Parameters
    ----------
    log
        File for Kafka Streams' log.
    heap
        Java heap, as in ``-Xmx``.
    temporary
        Folder for temporary files. A killed process leaves native libraries there. By default it's the system's.

    Raises
    ------
    JavaError
        If this Java can't be loaded or doesn't start, or if this process runs Java already.
    """
    if jpype.isJVMStarted():
        raise JavaError(
            "this process runs Java already, and can't start it twice. A StreamsApp is a process of its own: start as many as "
            "you like"
        )
    settle()  # a JVM within Python reads the same variables as any other
    folder = java_home() / "lib"
    library = next((path for part in ("server", "client") for path in folder.glob(f"{part}/libjvm.*")), None)
    if library is None and os.name != "nt":
        raise JavaError(f"this Java can't run within Python: there is no libjvm in {folder}")
    locale = {name: os.environ.get(name) for name in LOCALE}
    os.environ |= LOCALE  # Java takes it from here, as it starts
    try:
        jpype.startJVM(
            str(library or java_home() / "bin/server/jvm.dll"), f"-Xmx{heap}", *JVM_OPTIONS, *archive_options(),
            "-Xrs",  # signals are Python's
            f"-Dlog4j2.configurationFile={NODE_LOG_SETTINGS}", f"-Dkafkalab.log={log}",
            *([f"-Djava.io.tmpdir={temporary}"] if temporary else ()),
            *shlex.split(os.environ.get(JAVA_OPTIONS, "")),
            # JPype adds its own jar last, so that the archive of brokers and tools fits.
            classpath=[*classpath().split(os.pathsep), *map(str, ensure_jars("streams", announce))], convertStrings=True,
        )  # fmt: skip
    except (OSError, RuntimeError) as error:
        raise JavaError(f"Java doesn't start within Python: {error}") from error
    finally:
        for name, value in locale.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def use_java() -> None:
    """Let this process import Java's classes, as in ``from org.apache.kafka.streams import StreamsBuilder``.

    Raises
    ------
    JavaError
        If Java can't be started, or something else has started it without Kafka Streams.
    """
    if not jpype.isJVMStarted():
        with underway.task("Starting Java"):
            start_java(Path(os.devnull))
        return
    try:
        jpype.JClass("org.apache.kafka.streams.StreamsBuilder")
    except TypeError as error:
        raise JavaError(
            "this process runs Java already, but without Kafka Streams. Restart the kernel, and call use_java() before "
            "anything else starts Java"
        ) from error


def properties(settings: Mapping[str, str]) -> Any:
    """Return settings as ``java.util.Properties``. By default keys and values are texts, and stores are in memory."""
    java_properties = jpype.JClass("java.util.Properties")()
    for key, value in {**_DEFAULTS, **settings}.items():
        java_properties.setProperty(key, value)
    return java_properties
