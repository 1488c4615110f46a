"""What `StreamsApp` guarantees, beside clusters of every back end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, StreamsApp, wait_until
from kafkalab.checks import CheckContext
from kafkalab.errors import ClusterNotRunning, StreamsFailed

COUNTS = """
from org.apache.kafka.streams.kstream import Materialized


def topology(builder):
    words = builder.stream("{topic}")
    counted = words.filter(lambda key, value: 12 / len(value) > 0).groupByKey().count(Materialized.as_("counts"))
    counted.toStream().mapValues(lambda count: str(count)).to("{topic}-counts")
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
    with Cluster(1, backend=backend, settings={f"group.streams.{name}": value for name, value in soon.items()}) as cluster:
        yield cluster


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def counts_of(cluster: Cluster, folder: Path, topic: str) -> Path:
    """The file of an application that counts a topic of its own."""
    admin = AdminClient(cluster.client_config())
    for made in admin.create_topics([NewTopic(name, 2, 1) for name in (topic, f"{topic}-counts")]).values():
        made.result()
    return write(folder / f"{topic}.py", COUNTS.format(topic=topic))


def send(cluster: Cluster, topic: str, words: str) -> None:
    producer = Producer(cluster.client_config())
    for word in words:
        producer.produce(topic, key=word, value=word.strip())
    assert producer.flush(30) == 0


def wait_for(app: StreamsApp, counts: dict[str, int]) -> None:
    wait_until(lambda: app.store("counts") == counts, 60, f"{counts}", ignore=(StreamsFailed,))


@pytest.mark.parametrize("settings", [{}, {"processing_guarantee": "exactly_once_v2"}, {"group_protocol": "streams"}], ids=str)
def test_a_killed_application_has_its_state_back(cluster: Cluster, tmp_path: Path, settings: dict[str, str]) -> None:
    topic = f"words-{'-'.join(settings.values())}"
    file = counts_of(cluster, tmp_path, topic)
    with StreamsApp(cluster, file, **settings) as app:
        assert app.state == "RUNNING" and f"topics: [{topic}]" in app.describe()
        send(cluster, topic, "abca")
        wait_for(app, {"a": 2, "b": 1, "c": 1})
        # What was counted is committed: its changelog has it, and so has the topic.
        wait_until(lambda: len(CheckContext(cluster).values(f"{topic}-counts")) >= 3, 60, "counts")
        app.kill()
        assert app.state == "killed" and not app.alive and not psutil.pid_exists(app.pid or 0)
        with pytest.raises(StreamsFailed, match="killed"):
            app.store("counts")
        app.start()
        wait_for(app, {"a": 2, "b": 1, "c": 1})
        assert app.restored["counts"] >= 3
        send(cluster, topic, "a")
        wait_for(app, {"a": 3, "b": 1, "c": 1})
        app.restart()
        wait_for(app, {"a": 3, "b": 1, "c": 1})
    assert app.state == "stopped" and "RUNNING" in app.log


def test_two_instances_share_the_partitions(cluster: Cluster, tmp_path: Path) -> None:
    file = counts_of(cluster, tmp_path, "shared")
    send(cluster, "shared", "abcdefgh")
    with StreamsApp(cluster, file) as one:
        wait_for(one, dict.fromkeys("abcdefgh", 1))
        with StreamsApp(cluster, file, name="shared-2") as two:

            def parts() -> tuple[set[str], set[str]]:
                return set(one.wait_running().store("counts")), set(two.wait_running().store("counts"))

            wait_until(
                lambda: all(parts()) and sorted("".join(map("".join, parts()))) == list("abcdefgh"), 60, "each to have a part",
                last_seen=parts, ignore=(StreamsFailed,),
            )  # fmt: skip
            two.kill()
            wait_for(one, dict.fromkeys("abcdefgh", 1))
        with StreamsApp(cluster, file) as successor:  # of the same name
            assert one.state == "stopped"
            wait_for(successor, dict.fromkeys("abcdefgh", 1))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def topology(builder:\n    pass\n", r"line 1 isn't Python: '\(' was never closed"),
        ("def topologie(builder):\n    pass\n", r"defines no function topology\(builder\); it defines topologie$"),
        ("\nimport nothing_of_that_name\n", r"line 2: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("def topology(builder):\n    builder.strem('in')\n", r"line 2: AttributeError: .*strem"),
        ("def topology(builder):\n    pass\n", r"TopologyException: Invalid topology: Topology has no stream threads"),
        ("def topology(builder):\n    builder.stream('nowhere').to('out')\n", r"MissingSourceTopicException: .*missing"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_in_a_sentence(cluster: Cluster, tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(StreamsFailed, match=reason), StreamsApp(cluster, write(tmp_path / "refused.py", text)):
        pass


def test_a_missing_file_and_a_cluster_that_does_not_run(cluster: Cluster, tmp_path: Path, backend: str) -> None:
    with pytest.raises(StreamsFailed, match=r"none.py can't be read: No such file"):
        StreamsApp(cluster, tmp_path / "none.py").start()
    with pytest.raises(ClusterNotRunning):
        StreamsApp(Cluster(1, backend=backend), tmp_path / "none.py").start()
    with pytest.raises(StreamsFailed, match="not started"):
        StreamsApp(cluster, tmp_path / "none.py").store("counts")


def test_a_function_that_raises_is_told_with_the_record_it_failed_on(cluster: Cluster, tmp_path: Path) -> None:
    with StreamsApp(cluster, counts_of(cluster, tmp_path, "poisoned")) as app:
        send(cluster, "poisoned", " ")
        wait_until(lambda: not app.alive, 60, "the application to end", last_seen=lambda: app.state)
        assert app.state == "failed"
        with pytest.raises(StreamsFailed, match=r"ZeroDivisionError: division by zero \(.*topic=poisoned.*offset=0"):
            app.store("counts")


def test_settings_stores_and_heaps_that_are_not_there(cluster: Cluster, tmp_path: Path) -> None:
    file = counts_of(cluster, tmp_path, "mistaken")
    with pytest.raises(StreamsFailed, match="ConfigException: Invalid value thrice"):
        StreamsApp(cluster, file, processing_guarantee="thrice").start()
    with pytest.raises(ValueError, match="num.standby.replicas has no value"):
        StreamsApp(cluster, file, num_standby_replicas=None)
    with pytest.raises(StreamsFailed, match="heap"):
        StreamsApp(cluster, file, heap="1m").start()
    with StreamsApp(cluster, file) as app, pytest.raises(StreamsFailed, match="no-such-store"):
        app.store("no-such-store")


def test_a_standby_takes_over_without_restoring(cluster: Cluster, tmp_path: Path) -> None:
    file = counts_of(cluster, tmp_path, "followed")
    send(cluster, "followed", "abcdefgh")
    with StreamsApp(cluster, file, num_standby_replicas=1) as one:
        wait_for(one, dict.fromkeys("abcdefgh", 1))
        with StreamsApp(cluster, file, name="followed-2", num_standby_replicas=1) as two:
            for app in (one, two):
                wait_until(
                    lambda app=app: app.store("counts", stale=True) == dict.fromkeys("abcdefgh", 1),
                    60,
                    "all",
                    ignore=(StreamsFailed,),
                )
            restored = two.restored
            one.kill()
            wait_for(two, dict.fromkeys("abcdefgh", 1))
            assert two.restored == restored


def letters(builder: Any) -> None:
    from org.apache.kafka.streams.kstream import Materialized  # type: ignore[import-not-found]

    builder.stream("texts").groupBy(lambda key, letter: letter).count(Materialized.as_("letters"))


def test_a_function_of_a_notebook_is_run_by_its_source(cluster: Cluster) -> None:
    admin = AdminClient(cluster.client_config())
    admin.create_topics([NewTopic("texts", 1, 1)])["texts"].result()
    send(cluster, "texts", "aab")
    with StreamsApp(cluster, letters) as app:
        wait_until(lambda: app.store("letters") == {"a": 2, "b": 1}, 60, "letters", last_seen=lambda: app.store("letters"))
        made = {topic for topic in cluster.describe(groups=False).topics if topic.startswith("letters-")}
        assert made == {"letters-letters-changelog", "letters-letters-repartition"}
    with pytest.raises(ValueError, match="`def`"):
        StreamsApp(cluster, lambda builder: builder.stream("texts"))


def test_it_ends_with_its_cluster(tmp_path: Path, make_cluster) -> None:
    cluster = make_cluster(1).start()
    app = StreamsApp(cluster, counts_of(cluster, tmp_path, "ends")).start()
    process = psutil.Process(app.pid)
    cluster.stop()
    assert app.state == "ended with the cluster" and not process.is_running()
