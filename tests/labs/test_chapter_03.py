"""The labs of chapter 03: each wrong answer is told apart from the right one, with a sentence that helps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, murmur2
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, check

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
STOCKS = "IBM SUN GOOG INEL UBER ABC XYZ DEF AAA BBB CCC DDD EEE FFF".split()

Verdict = Callable[..., tuple[bool, str]]


@pytest.fixture(scope="module", autouse=True)
def application() -> Iterator[None]:
    """The package as it stands in solutions/."""
    sys.path.insert(0, str(ROOT / "solutions"))
    yield
    sys.path.remove(str(ROOT / "solutions"))
    for name in [name for name in sys.modules if name.split(".")[0] == "stocks"]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path / "progress"))


@pytest.fixture
def verdict(capsys: pytest.CaptureFixture[str]) -> Verdict:
    """Checks a lab; what it returned and what it printed."""

    def checked(lab: str, cluster: object, **answers: object) -> tuple[bool, str]:
        capsys.readouterr()
        passed = check(lab, cluster, **answers)  # type: ignore[arg-type]
        return passed, capsys.readouterr().out

    return checked


@pytest.fixture
def clean(cluster: Cluster) -> Iterator[Cluster]:
    """Three brokers that are up, without topics of earlier tests."""
    yield cluster
    admin = AdminClient(cluster.client_config())
    if topics := list(cluster.describe(groups=False).topics):
        for future in admin.delete_topics(topics).values():
            future.result()
    cluster.wait_for(lambda v: not v.topics, "no topics")


def create(cluster: Cluster, topic: str, partitions: int, copies: int = 3, **config: str) -> None:
    admin = AdminClient(cluster.client_config())
    config = {name.replace("_", "."): value for name, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, copies, config=config)])[topic].result()

    def there(view: object) -> bool:
        found = view.topics.get(topic, ())  # type: ignore[attr-defined]
        return len(found) == partitions and all(len(p.isr) == copies for p in found)

    cluster.wait_for(there, f"the topic {topic}")


Record = tuple[bytes | str | None, bytes | str | None, int]


def put(cluster: Cluster, topic: str, records: Iterable[Record], **settings: object) -> None:
    """Send (key, value, partition); the partition -1 leaves the choice to the producer."""
    producer = Producer(cluster.client_config(**settings))
    for key, value, partition in records:
        producer.produce(topic, value, key=key, partition=partition)
    assert producer.flush(20) == 0


# -- 03_partitioner -------------------------------------------------------------------------------------------------


def price(name: str) -> str:
    return f'{{"cents": 50, "dollars": 60, "name": "{name}"}}'


def right_place(name: str, partitions: int = 5) -> int:
    return partitions - 1 if name in ("IBM", "UBER") else murmur2(name.encode(), partitions - 1)


def by_hash_alone(name: str, partitions: int = 5) -> int:
    return murmur2(name.encode(), partitions)


def others_everywhere(name: str, partitions: int = 5) -> int:
    return partitions - 1 if name in ("IBM", "UBER", "SUN") else murmur2(name.encode(), partitions - 1)


def others_on_one(name: str, partitions: int = 5) -> int:
    return partitions - 1 if name in ("IBM", "UBER") else 0


def one_too_few(name: str, partitions: int = 5) -> int:
    return right_place(name, partitions - 1)


class AcceptsAll:
    """Refuses nothing."""

    def __init__(self, producer: Producer, topic: str, important: object) -> None: ...


def trips(producer: Producer, topic: str, important: list[str]) -> None:
    raise ZeroDivisionError("integer modulo by zero")


def topics_of_the_partitioner(cluster: Cluster, partitions: int = 5) -> None:
    create(cluster, "stock-prices", partitions)
    create(cluster, "single-copy", 5, 1)
    create(cluster, "one-partition", 1)


def test_partitioner_untouched(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    passed, said = verdict("03_partitioner", clean, partitioner=None)
    assert not passed and "stock-prices is empty" in said and "Give check() partitioner=" in said


def test_partitioner_right(clean: Cluster, verdict: Verdict) -> None:
    from stocks.partitioner import ImportantStocks

    topics_of_the_partitioner(clean)
    for topic in ("stock-prices", "single-copy"):
        put(clean, topic, [(name, price(name), right_place(name)) for name in STOCKS])
    passed, said = verdict("03_partitioner", clean, partitioner=ImportantStocks)
    assert passed, said


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (by_hash_alone, "Which is the last one of stock-prices?"),
        (others_everywhere, "SUN is in partition 4 with the important ones"),
        (others_on_one, "They should share the load of all the rest"),
        (one_too_few, "is important, and has records in partition 3"),
    ],
)
def test_partitioner_wrong_places(clean: Cluster, verdict: Verdict, place: Callable[[str], int], says: str) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "stock-prices", [(name, price(name), place(name)) for name in STOCKS])
    passed, said = verdict("03_partitioner", clean)
    assert not passed and says in said, said


def test_partitioner_that_counts_what_is_available(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "single-copy", [(name, price(name), right_place(name, 4)) for name in STOCKS])
    passed, said = verdict("03_partitioner", clean)
    assert not passed and "that are not available" in said, said


def test_partitioner_that_changes_its_mind(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    put(clean, "stock-prices", [("SUN", price("SUN"), p) for p in (0, 1)])
    passed, said = verdict("03_partitioner", clean)
    assert not passed and "Records of SUN are in partitions 0 and 1" in said and "No price of IBM" in said


def test_partitioner_that_refuses_nothing_or_trips(clean: Cluster, verdict: Verdict) -> None:
    topics_of_the_partitioner(clean)
    assert "It accepts no important stock at all" in verdict("03_partitioner", clean, partitioner=AcceptsAll)[1]
    assert "it ends with ZeroDivisionError" in verdict("03_partitioner", clean, partitioner=trips)[1]
    assert "should be your class, not a str" in verdict("03_partitioner", clean, partitioner="IBM,UBER")[1]
