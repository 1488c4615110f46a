"""What `StreamsApp` guarantees.

An application is a process of this machine on every back end, so what it does beside containers is looked at once, by the last
test. A start costs three processor seconds: each running application answers for as much as it can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from contract_support import DOCKER_AT_LENGTH, ONLY_LOCAL
from kafkalab import Cluster, StreamsApp, resources, wait_until
from kafkalab.checks import CheckContext
from kafkalab.errors import ClusterNotRunning, NotEnoughResources, StreamsFailed
from kafkalab.streams import fresh_topics
from support import PATIENCE, create

COUNTS = """
from org.apache.kafka.streams.kstream import Materialized


def topology(builder):
    words = builder.stream("{topic}")
    counted = words.filter(lambda key, value: 12 / len(value) > 0).groupByKey().count(Materialized.as_("counts"))
    counted.toStream().mapValues(lambda count: str(count)).to("{topic}-counts")
"""

IN_FILES = """
from org.apache.kafka.streams.kstream import Materialized
from org.apache.kafka.streams.state import Stores


def topology(builder):
    builder.stream("in").groupByKey().count(Materialized.as_(Stores.persistentKeyValueStore("counts")))
"""


@pytest.fixture(scope="module")
def cluster(backend: str) -> Iterator[Cluster]:
    # In the protocol of Streams' own the brokers say when a killed instance is missed: after 3 s instead of 45 s.
    soon = {
        "min.session.timeout.ms": 3000,
        "session.timeout.ms": 3000,
        "min.heartbeat.interval.ms": 500,
        "heartbeat.interval.ms": 500,
    }
    settings = {f"group.streams.{name}": value for name, value in soon.items()}
    settings["transaction.abort.timed.out.transaction.cleanup.interval.ms"] = 500
    with Cluster(1, backend=backend, settings=settings) as cluster:
        yield cluster


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def counts_of(cluster: Cluster, folder: Path, topic: str) -> Path:
    """The file of an application that counts a topic of its own."""
    for name in (topic, f"{topic}-counts"):
        create(cluster, name, 2, 1)
    return write(folder / f"{topic}.py", COUNTS.format(topic=topic))


def send(cluster: Cluster, topic: str, words: Iterable[str]) -> None:
    producer = Producer(cluster.client_config())
    for word in words:
        producer.produce(topic, key=word, value=word.strip())
    assert producer.flush(PATIENCE) == 0


def wait_for(app: StreamsApp, counts: dict[str, int]) -> None:
    wait_until(lambda: app.store("counts") == counts, PATIENCE, f"{counts}", ignore=(StreamsFailed,))


def committed(app: StreamsApp, topic: str) -> int:
    """How many records of a topic of two partitions it needn't read again."""
    group = ConsumerGroupTopicPartitions(app.settings["application.id"], [TopicPartition(topic, number) for number in range(2)])
    admin = AdminClient(app.cluster.client_config())
    [asked] = admin.list_consumer_group_offsets([group]).values()
    return sum(max(partition.offset, 0) for partition in asked.result(PATIENCE).topic_partitions)


def count_and_come_back(app: StreamsApp, topic: str) -> None:
    """Let a running application count, kill it, and let it go on."""
    assert app.state == "RUNNING" and f"topics: [{topic}]" in app.describe()
    send(app.cluster, topic, "abca")
    wait_for(app, {"a": 2, "b": 1, "c": 1})
    # Its changelog has what was counted. Killed before it commits, it would count that once more: at least once.
    wait_until(lambda: committed(app, topic) == 4, PATIENCE, "the commit", last_seen=lambda: committed(app, topic))
    app.kill()
    assert app.state == "killed" and not app.alive and not psutil.pid_exists(app.pid or 0)
    with pytest.raises(StreamsFailed, match="killed"):
        app.store("counts")
    app.start()
    wait_for(app, {"a": 2, "b": 1, "c": 1})
    assert app.restored["counts"] >= 3
    send(app.cluster, topic, "a")
    wait_for(app, {"a": 3, "b": 1, "c": 1})


@ONLY_LOCAL
def test_exactly_once_in_the_protocol_of_streams_own_until_a_function_raises(cluster: Cluster, tmp_path: Path) -> None:
    file = counts_of(cluster, tmp_path, "words")
    settings = {"processing_guarantee": "exactly_once_v2", "transaction_timeout_ms": 3000, "group_protocol": "streams"}
    with StreamsApp(cluster, file, **settings) as app:
        count_and_come_back(app, "words")
        app.restart()
        wait_for(app, {"a": 3, "b": 1, "c": 1})
        send(cluster, "words", " ")
        with pytest.raises(
            StreamsFailed, match="waiting for a store is no use, because words doesn't run: failed: ZeroDivision"
        ):
            app.wait_until(lambda: app.store("no such store"), PATIENCE, "a store", ignore=(StreamsFailed,))
        assert app.state == "failed" and "RUNNING" in app.logs()
        with pytest.raises(StreamsFailed, match=r"ZeroDivisionError: division by zero \(.*topic=words.*offset=\d"):
            app.store("counts")


@ONLY_LOCAL
def test_instances_share_the_partitions_and_a_standby_takes_over_without_restoring(cluster: Cluster, tmp_path: Path) -> None:
    file = counts_of(cluster, tmp_path, "shared")
    send(cluster, "shared", "abcdefgh")
    everything = dict.fromkeys("abcdefgh", 1)
    # One folder for both: stores in memory lock none, so that a folder in use is no error.
    settings = {"num_standby_replicas": 1, "state_dir": tmp_path / "state"}
    with StreamsApp(cluster, file, **settings) as one:
        wait_for(one, everything)
        with StreamsApp(cluster, file, name="shared-2", **settings) as two:

            def parts() -> tuple[set[str], set[str]]:
                return set(one.wait_running().store("counts")), set(two.wait_running().store("counts"))

            wait_until(
                lambda: all(parts()) and sorted("".join(map("".join, parts()))) == list("abcdefgh"), PATIENCE, "each to have a part",
                last_seen=parts, ignore=(StreamsFailed,),
            )  # fmt: skip
            wait_until(lambda: two.store("counts", stale=True) == everything, PATIENCE, "all of it", ignore=(StreamsFailed,))
            restored = two.restored
            one.kill()
            wait_for(two, everything)
            assert two.restored == restored
            with StreamsApp(cluster, file, name="shared-2") as successor:  # without a standby
                assert two.state == "stopped" and not two.alive
                wait_for(successor, everything)


@ONLY_LOCAL
@pytest.mark.parametrize(
    ("text", "settings", "reason"),
    [
        ("def topology(builder):\n    builder.strem('in')\n", {}, r"line 2: AttributeError: .*strem"),
        ("def topology(builder):\n    pass\n", {}, r"TopologyException: Invalid topology: Topology has no stream threads"),
        ("def topology(builder):\n    builder.stream('nowhere').to('out')\n", {}, r"MissingSourceTopicException: .*missing"),
        ("def topology(builder):\n    builder.stream('in')\n", {"processing_guarantee": "thrice"}, "ConfigException: .*thrice"),
        ("def topology(builder):\n    builder.stream('in')\n", {"heap": "1m"}, "heap"),
        (IN_FILES, {}, r"^refused does not start: the topology asks for a store that RocksDB keeps in files, and RocksDB isn't here"),
    ],
)  # fmt: skip
def test_what_kafka_streams_cannot_use_is_refused_in_a_sentence(
    cluster: Cluster, tmp_path: Path, text: str, settings: dict[str, str], reason: str
) -> None:
    with pytest.raises(StreamsFailed, match=reason):
        StreamsApp(cluster, write(tmp_path / "refused.py", text), **settings).start()


@ONLY_LOCAL
def test_what_needs_no_process_to_be_refused(
    cluster: Cluster, tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ClusterNotRunning):
        StreamsApp(Cluster(1, backend=backend), tmp_path / "any.py").start()
    with pytest.raises(StreamsFailed, match="not started"):
        StreamsApp(cluster, tmp_path / "any.py").store("counts")
    with pytest.raises(ValueError, match="num.standby.replicas has no value"):
        StreamsApp(cluster, tmp_path / "any.py", num_standby_replicas=None)
    with pytest.raises(ValueError, match="`def`"):
        StreamsApp(cluster, lambda builder: builder.stream("texts"))
    monkeypatch.setattr(resources, "available_memory", lambda: 100 << 20)
    with pytest.raises(NotEnoughResources, match="the Streams application any needs about 180 MB of memory, but only 100 MB"):
        StreamsApp(cluster, tmp_path / "any.py").start()


def repeated(builder: Any) -> None:
    builder.stream("short").mapValues(lambda text: text * 400_000).to("long")


@ONLY_LOCAL
def test_a_result_that_is_too_large_ends_it_with_a_reason_and_is_there_when_it_may_be_larger(cluster: Cluster) -> None:
    create(cluster, "short", 1, 1)
    create(cluster, "long", 1, 1, max_message_bytes="2000000")
    app = StreamsApp(cluster, repeated).start()
    send(cluster, "short", "abc")
    send(cluster, "short", ["long"])
    wait_until(lambda: not app.alive, PATIENCE, "the application to end", last_seen=lambda: app.state)
    reason = (
        r"RecordTooLargeException: The message is 1600\d+ bytes .*max\.request\.size.* \(StreamsException: .* topic long for"
    )
    with pytest.raises(StreamsFailed, match=reason):
        app.store("any")
    with StreamsApp(cluster, repeated, producer_max_request_size=2_000_000):
        wait_until(
            lambda: set(CheckContext(cluster).values("long")) == {text * 400_000 for text in ("a", "b", "c", "long")},
            PATIENCE,
            "all",
        )


def read_numbers(builder: Any) -> None:
    from org.apache.kafka.common.serialization import Serdes  # type: ignore[import-not-found]
    from org.apache.kafka.streams.kstream import Consumed  # type: ignore[import-not-found]

    numbers = builder.stream("numbers", Consumed.with_(Serdes.String(), Serdes.Integer()))
    numbers.mapValues(lambda number: str(number)).to("numbers-read")


@ONLY_LOCAL
def test_what_cannot_be_deserialized_ends_it_or_becomes_a_dead_letter(cluster: Cluster) -> None:
    for name in ("numbers", "numbers-read", "unread"):
        create(cluster, name, 1, 1)
    send(cluster, "numbers", ["poison", "four"])
    app = StreamsApp(cluster, read_numbers).launch()
    wait_until(lambda: not app.alive, PATIENCE, "the application to end", last_seen=lambda: app.state)
    with pytest.raises(StreamsFailed, match="SerializationException"):
        app.store("any")
    handler = "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler"
    settings = {"deserialization_exception_handler": handler, "errors_dead_letter_queue_topic_name": "unread"}
    with StreamsApp(cluster, read_numbers, **settings):
        seen = CheckContext(cluster)
        wait_until(lambda: seen.values("numbers-read") == [str(int.from_bytes(b"four"))], PATIENCE, "the number")
        [letter] = wait_until(lambda: seen.records("unread"), PATIENCE, "the dead letter")
        headers = dict(letter.headers() or ())
        assert (letter.key(), letter.value()) == (b"poison", b"poison")
        assert (headers["__streams.errors.topic"], headers["__streams.errors.offset"]) == (b"numbers", b"0")


def letters(builder: Any) -> None:
    from org.apache.kafka.streams.kstream import Materialized

    builder.stream("texts").groupBy(lambda key, letter: letter).count(Materialized.as_("letters"))


@ONLY_LOCAL
def test_a_function_of_a_notebook_is_run_by_its_source(cluster: Cluster) -> None:
    create(cluster, "texts", 1, 1)
    send(cluster, "texts", "aab")
    with StreamsApp(cluster, letters, producer_compression_type="snappy") as app:
        counted = {"a": 2, "b": 1}
        # A store can't be read while it moves, as it may once more after the start.
        wait_until(
            lambda: app.store("letters") == counted, PATIENCE, "letters", last_seen=lambda: app.state, ignore=(StreamsFailed,)
        )
        # Elsewhere the native library would stay when the process is killed.
        assert list((cluster.nodes.run.directory / "streams").glob("snappy*")), "it has compressed what it counted"
        made = {topic for topic in cluster.describe(groups=False).topics if topic.startswith("letters-")}
        assert made == {"letters-letters-changelog", "letters-letters-repartition"}
        with pytest.raises(StreamsFailed, match="no-such-store"):
            app.store("no-such-store")


@DOCKER_AT_LENGTH
def test_with_fresh_topics_an_application_begins_at_the_beginning(cluster: Cluster) -> None:
    for _ in range(2):
        fresh_topics(cluster, [NewTopic("texts", 2, 1)])
        assert CheckContext(cluster).record_count("texts") == 0
        send(cluster, "texts", "aab")
        StreamsApp(cluster, letters).start()  # its name is given away, as in a cell that is run again
        app = StreamsApp(cluster, letters).start()
        app.wait_until(lambda: app.store("letters") == {"a": 2, "b": 1}, PATIENCE, "letters", ignore=(StreamsFailed,))
    process = psutil.Process(app.pid)
    fresh_topics(cluster, [NewTopic("texts", 1, 1)])
    assert app.state == "stopped" and not process.is_running()
    assert [topic for topic in cluster.describe(groups=False).topics if not topic.startswith("__")] == ["texts"]


@DOCKER_AT_LENGTH
def test_a_killed_application_has_its_state_back_and_ends_with_its_cluster(cluster: Cluster, tmp_path: Path) -> None:
    """The last test: it stops the cluster."""
    app = StreamsApp(cluster, counts_of(cluster, tmp_path, "last")).start()
    count_and_come_back(app, "last")
    process = psutil.Process(app.pid)
    cluster.stop()
    assert app.state == "ended with the cluster" and not process.is_running()
