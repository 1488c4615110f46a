"""``python -m kafkalab.streams.app_process``: the process of a `StreamsApp`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jpype

from kafkalab.streams.java import properties, start_java
from kafkalab.streams.topology_file import TopologyRefused, load, run
from kafkalab.workers.channel import Channel

__all__ = ["main"]

_NO_ROCKSDB = (
    "the topology asks for a store that RocksDB keeps in files, and RocksDB isn't here. Give the store a name only, or take "
    "one of Stores.inMemoryKeyValueStore, inMemoryWindowStore and inMemorySessionStore"
)


def main() -> None:
    """Run the topology, and answer the parent's queries until it sends close."""
    channel = Channel()
    channel.keep_to_itself()
    log = Path(channel.start["log"])
    start_java(log, channel.start["heap"], temporary=log.parent)  # in the run's folder, and removed with it
    kafka = jpype.JPackage("org").apache.kafka.streams
    streams = _built(channel, kafka)
    streams.setStateListener(lambda new, old: _tell_state(channel, str(new)))
    streams.setUncaughtExceptionHandler(_Handler(channel, kafka).proxy)
    streams.setGlobalStateRestoreListener(_Restoring(channel, kafka).proxy)
    streams.start()
    for command in channel.commands():
        if command["do"] == "close":
            leave = kafka.CloseOptions.GroupMembershipOperation.LEAVE_GROUP
            streams.close(kafka.CloseOptions.groupMembershipOperation(leave))
            channel.end("closed")
        answer = _threads_of(streams) if command["do"] == "threads" else _look_into(kafka, streams, command)
        channel.emit("answer", id=command["id"], **answer)


def _tell_state(channel: Channel, state: str) -> None:
    if state == "ERROR":  # its threads have ended, and nobody starts them anew
        channel.end("state", state=state)
    channel.emit("state", state=state)


def _built(channel: Channel, kafka: Any) -> Any:
    """Build the application without starting it. If the topology is refused, report that and end."""
    file, builder = Path(channel.start["file"]), kafka.StreamsBuilder()
    try:
        topology = load(file)
        run(file, lambda: topology(builder))
        built = builder.build()
        streams = kafka.KafkaStreams(built, properties(channel.start["settings"]))
    except TopologyRefused as refused:
        channel.end("refused", reason=str(refused))
    except jpype.JException as error:
        channel.end("refused", reason=_in_words(error))
    channel.emit("started", description=str(built.describe()))
    return streams


class _Handler:
    """Reports an exception of one of the application's threads, and ends the application."""

    def __init__(self, channel: Channel, kafka: Any) -> None:
        self._channel = channel
        kind = kafka.errors.StreamsUncaughtExceptionHandler
        self._response = kind.StreamThreadExceptionResponse.SHUTDOWN_CLIENT
        self.proxy = jpype.JProxy(kind, inst=self)

    def handle(self, error: Any) -> Any:
        """Called by Kafka Streams."""
        self._channel.emit("failed", reason=_in_words(error))
        return self._response


class _Restoring:
    """Reports how many records were read to restore a store."""

    def __init__(self, channel: Channel, kafka: Any) -> None:
        self._channel = channel
        self.proxy = jpype.JProxy(kafka.processor.StateRestoreListener, inst=self)

    def onRestoreStart(self, partition: Any, store: Any, start: Any, end: Any) -> None:
        """Called by Kafka Streams."""

    def onBatchRestored(self, partition: Any, store: Any, end: Any, records: Any) -> None:
        """Called by Kafka Streams."""
        self._channel.emit("restored", store=str(store), records=int(records))

    def onRestoreEnd(self, partition: Any, store: Any, total: Any) -> None:
        """Called by Kafka Streams."""


def _in_words(error: Any) -> str:
    """Return what a Java exception says: its deepest cause first, then where it happened."""
    said = [_own_words(error)]
    while (error := error.getCause()) is not None:
        said.insert(0, _own_words(error))
    where = said[-1].partition("\n")[0].removesuffix(" due to:")  # what follows repeats the cause
    return said[0] if where in said[0] or said[0] in where else f"{said[0]} ({where})"


def _own_words(error: Any) -> str:
    if error.getClass().getName() == "org.jpype.PyExceptionProxy":
        error = _of_python(error)
        return f"{type(error).__name__}: {error}"
    if str(error.getMessage()).startswith(("org/rocksdb/", "org.rocksdb.")):  # a class that isn't there
        return _NO_ROCKSDB
    return f"{error.getClass().getSimpleName()}: {error.getMessage()}"


def _of_python(error: Any) -> BaseException:
    """Return the Python exception behind a Java exception. JPype raises it when Java throws the Java exception."""
    try:
        jpype.JClass("java.util.Optional").empty().orElseThrow(lambda: error)
    except BaseException as own:
        return own
    raise AssertionError("an empty Optional throws")


def _look_into(kafka: Any, streams: Any, asked: dict[str, Any]) -> dict[str, object]:
    """Return all ``rows`` of a store in this process, as key and value, or the ``error``."""
    types = kafka.state.QueryableStoreTypes
    error = ""
    for kind in (types.keyValueStore(), types.windowStore()):
        try:
            query = kafka.StoreQueryParameters.fromNameAndType(asked["store"], kind)
            store = streams.store(query.enableStaleStores() if asked["stale"] else query)
            with store.all() as rows:
                return {"rows": [[_plain(row.key), _plain(row.value)] for row in rows]}
        except jpype.JException as refused:
            error = error or _own_words(refused)
    return {"error": error}


def _threads_of(streams: Any) -> dict[str, object]:
    """Return the ``threads`` with their tasks and the partitions of each, or the ``error``."""

    def tasks(described: Any) -> dict[str, list[str]]:
        return {str(task.taskId()): sorted(map(str, task.topicPartitions())) for task in described}

    try:
        return {
            "threads": [
                {
                    "name": str(thread.threadName()),
                    "state": str(thread.threadState()),
                    "active": tasks(thread.activeTasks()),
                    "standby": tasks(thread.standbyTasks()),
                }
                for thread in streams.metadataForLocalThreads()
            ]
        }
    except jpype.JException as refused:
        return {"error": _own_words(refused)}


def _plain(value: Any) -> object:
    """Return a key or value of Java in a form that JSON can hold. A windowed key becomes key, start and end."""
    if value is None or isinstance(value, str):
        return value
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    if hasattr(value, "window"):
        return [_plain(value.key()), int(value.window().start()), int(value.window().end())]
    return str(value)


if __name__ == "__main__":
    main()
