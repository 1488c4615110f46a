"""The stock-price application's consumers without a cluster: bad input, transactions, positions, and the end of a partition."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from converter import convert
from latest_prices import LatestPrices
from positions import at_offset, at_time

from kafkacourse.stocks import consumer_app
from kafkacourse.stocks.book import following
from kafkacourse.stocks.dead_letters import NotSetAside
from kafkacourse.stocks.loop import leave, read_batches
from stock_support import Record, records
from support import MALFORMED_PRICES

# -- without a cluster ----------------------------------------------------------------------------------------------


def test_following_is_the_next_offset_of_each_partition() -> None:
    found = following([*records(3, 5), *records(7, 7, part=2), *records(0, 1, part=2)])
    assert [(p.topic, p.partition, p.offset) for p in found] == [("stock-prices", 0, 6), ("stock-prices", 2, 8)]


class Letters:
    """A producer that keeps what it is given, and reports it when flushed."""

    def __init__(self, error: KafkaError | None = None, answers: bool = True) -> None:
        self.sent: list[tuple[str, dict]] = []
        self.error, self.answers = error, answers

    def produce(self, topic: str, **record: object) -> None:
        self.sent.append((topic, record))

    def flush(self, timeout: float) -> int:
        for _, record in self.sent if self.answers else ():
            record["on_delivery"](self.error, None)
        return 0 if self.answers else len(self.sent)


def test_what_is_no_stock_price_is_set_aside_as_it_came_and_stops_nothing() -> None:
    producer = Letters()
    latest = LatestPrices(producer, "dead")
    batch = [Record(place, part=2, text=text) for place, text in enumerate(MALFORMED_PRICES)]
    latest.handle([*records(0, 1), *batch, *records(2, 3)])
    assert [str(price) for price in latest.prices.values()] == ["IBM 90.05"]
    assert [topic for topic, _ in producer.sent] == ["dead"] * len(MALFORMED_PRICES)
    assert [(record["key"], record["value"]) for _, record in producer.sent] == [(b"IBM", text) for text in MALFORMED_PRICES]
    for place, (_, record) in enumerate(producer.sent):
        headers = record["headers"]
        assert (headers["topic"], headers["partition"], headers["offset"]) == ("stock-prices", "2", str(place))
        assert 0 < len(headers["reason"].encode()) <= 400


@pytest.mark.parametrize(
    ("producer", "says"),
    [(Letters(KafkaError(KafkaError._MSG_TIMED_OUT)), "timed out"), (Letters(answers=False), "no answer within 10 s")],
)
def test_what_cannot_be_set_aside_is_told_before_anything_is_committed(producer: Letters, says: str) -> None:
    with pytest.raises(NotSetAside, match=says):
        LatestPrices(producer, "dead").handle([Record(0, text=b"{}")])


class Transactions:
    """A producer that notes what is asked of it. What is in `fails` raises, the first time."""

    def __init__(self, **fails: BaseException) -> None:
        self.calls: list[str] = []
        self._fails = fails

    def __getattr__(self, name: str) -> Callable[..., None]:
        def called(*args: object, **kwargs: object) -> None:
            self.calls.append(name)
            if name in self._fails:
                raise self._fails.pop(name)

        return called


def kafka_error(code: int, **what: bool) -> KafkaException:
    return KafkaException(KafkaError(code, "", **what))


TRANSACTION = "begin_transaction produce produce send_offsets_to_transaction commit_transaction"
LATE, FENCED, REFUSED = (
    lambda: kafka_error(KafkaError._TIMED_OUT, retriable=True),
    lambda: kafka_error(KafkaError._FENCED, fatal=True),
    lambda: kafka_error(KafkaError.TOPIC_AUTHORIZATION_FAILED, txn_requires_abort=True),
)


@pytest.mark.parametrize(
    ("producer", "error", "calls"),
    [
        (Transactions(), None, TRANSACTION),
        (Transactions(produce=BufferError()), None,
         "begin_transaction produce poll produce produce send_offsets_to_transaction commit_transaction"),
        (Transactions(produce=TypeError()), TypeError, "begin_transaction produce abort_transaction"),
        (Transactions(produce=KeyboardInterrupt()), KeyboardInterrupt, "begin_transaction produce abort_transaction"),
        (Transactions(commit_transaction=LATE()), None, f"{TRANSACTION} commit_transaction"),
        (Transactions(commit_transaction=FENCED()), KafkaError._FENCED, TRANSACTION),
        (Transactions(commit_transaction=REFUSED()), KafkaError.TOPIC_AUTHORIZATION_FAILED, f"{TRANSACTION} abort_transaction"),
        (Transactions(produce=TypeError(), abort_transaction=LATE()), TypeError,
         "begin_transaction produce abort_transaction abort_transaction"),
        (Transactions(produce=TypeError(), abort_transaction=FENCED()), KafkaError._FENCED,
         "begin_transaction produce abort_transaction"),
        (Transactions(begin_transaction=kafka_error(KafkaError._STATE)), KafkaError._STATE, "begin_transaction"),
    ],
    ids=["right", "full queue", "wrong type", "interrupted", "late", "fenced", "refused", "late abort", "failed abort", "not begun"],
)  # fmt: skip
def test_a_conversion_leaves_no_transaction_open(
    producer: Transactions, error: type[BaseException] | int | None, calls: str
) -> None:
    def run() -> None:
        convert(Transactions(), producer, "copies", records(0, 1))

    if error is None:
        run()
    elif isinstance(error, int):  # the code of Kafka's error
        with pytest.raises(KafkaException) as raised:
            run()
        assert raised.value.args[0].code() == error
    else:
        with pytest.raises(error):
            run()
    assert producer.calls == calls.split()


class Assigned:
    """A consumer that takes any assignment; those for a time begin at 27."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.offsets = {p.partition: p.offset for p in partitions}

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [TopicPartition(p.topic, p.partition, 27) for p in partitions]


@pytest.mark.parametrize("name", ["offset", "time"])
def test_a_callback_acts_only_the_first_time_that_it_sees_a_partition(name: str) -> None:
    callback = {"offset": at_offset(27), "time": at_time(1000)}[name]
    consumer, committed = Assigned(), TopicPartition("stock-prices", 0).offset
    for partitions, offsets in [([0, 2], [27, 27]), ([0], [committed]), ([0, 1, 2], [committed, 27, committed])]:
        callback(consumer, [TopicPartition("stock-prices", p) for p in partitions])
        assert consumer.offsets == dict(zip(partitions, offsets, strict=True))


def test_the_end_of_a_partition_is_the_end_only_until_something_comes() -> None:
    def message(partition: int, error: KafkaError | None = None) -> SimpleNamespace:
        where = {"topic": lambda: "stock-prices", "partition": lambda: partition, "offset": lambda: 0}
        return SimpleNamespace(error=lambda: error, **where)

    end, read, ending = KafkaError(KafkaError._PARTITION_EOF), [], []
    to_come = [message(0, end), message(0), message(1, end), message(0), message(0, end)]

    class Scripted:
        def subscribe(self, topics: list[str], on_assign: Callable, on_revoke: Callable) -> None:
            pass

        def consume(self, number: int, timeout: float) -> list[SimpleNamespace]:
            return [to_come.pop(0)]

        def assignment(self) -> list[TopicPartition]:
            return [TopicPartition("stock-prices", partition) for partition in (0, 1)]

        def unsubscribe(self) -> None:
            ending.append("unsubscribe")

        def poll(self, timeout: float) -> None:
            ending.append("poll")

        def close(self) -> None:
            ending.append("close")

    read_batches(Scripted(), "stock-prices", read.extend, until_end=True)
    assert len(read) == 2 and not to_come
    assert ending == ["unsubscribe", "poll", "close"]  # closing beside a rebalance that nobody answers may wait for ever


@pytest.mark.parametrize(("code", "raises"), [(KafkaError._FATAL, False), (KafkaError._STATE, True)])
def test_who_is_fenced_closes_without_leaving(code: int, raises: bool) -> None:
    closed = []

    def unsubscribe() -> None:
        raise KafkaException(KafkaError(code))

    consumer = SimpleNamespace(unsubscribe=unsubscribe, close=lambda: closed.append(True))
    with pytest.raises(KafkaException) if raises else nullcontext():
        leave(consumer)
    assert closed


def test_brokers_that_do_not_answer_are_told_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(consumer_app, "_CONNECT_SECONDS", 1)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert consumer_app.main(["--bootstrap-servers", "127.0.0.1:1", "--book", str(tmp_path / "book.db")]) == 1
    assert "no broker answered within 1 s" in capsys.readouterr().err
