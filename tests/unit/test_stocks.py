"""The stock-price application without a cluster: prices, senders, the partitioner, and brokers that are not there."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from partitioner import ImportantStocks

from kafkacourse.stocks import (
    STOCKS,
    ClusterUnreachable,
    MalformedStockPrice,
    StockPrice,
    StockSender,
    UnknownTopic,
    deserialize,
    partition_count,
    producer_app,
    serialize,
)
from kafkacourse.stocks.interceptors import CountingInterceptor, InterceptedProducer
from kafkacourse.stocks.producer_app import _DeliveryLog
from support import PATIENCE

# -- prices ---------------------------------------------------------------------------------------------------------


def test_a_price_shows_two_digits_of_cents() -> None:
    assert str(StockPrice("IBM", 100, 9)) == "IBM 100.09"
    assert StockPrice("IBM", 100, 9).amount == Decimal("100.09")


@pytest.mark.parametrize(
    ("name", "dollars", "cents", "says"),
    [
        ("IBM", 100, -1, "cents are a whole number from 0, not -1"),
        ("IBM", -1, 0, "dollars are a whole number from 0"),
        ("IBM", 100, 100, "cents are 0 to 99"),
        ("IBM", 100.5, 0, "not 100.5"),
        ("IBM", "100", 0, "not '100'"),
        ("IBM", True, 0, "not True"),
        ("", 1, 0, "a stock has a name"),
        (None, 1, 0, "a stock has a name"),
    ],
)
def test_a_price_that_cannot_be_is_refused(name: object, dollars: object, cents: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        StockPrice(name, dollars, cents)


def test_a_record_holds_json() -> None:
    price = StockPrice("IBM", 100, 9)
    assert serialize(price) == b'{"cents": 9, "dollars": 100, "name": "IBM"}'
    assert deserialize(serialize(price)) == price


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "no value"),
        (b"", "not JSON"),
        (b"\xff\x00", "not JSON"),
        (b"IBM 100.09", "not JSON"),
        (b"[1, 2]", "not an object"),
        (b'{"name": "IBM", "dollars": 1}', "not an object with the fields"),
        (b'{"name": "IBM", "dollars": 1, "cents": 1, "more": 1}', "not an object with the fields"),
        (b'{"name": "IBM", "dollars": 1, "cents": -9}', "cents are a whole number from 0"),
        (b'{"name": null, "dollars": 1, "cents": 9}', "a stock has a name"),
    ],
)
def test_what_is_not_a_stock_price_is_told(value: bytes | None, says: str) -> None:
    with pytest.raises(MalformedStockPrice, match=says):
        deserialize(value)


def test_made_up_prices_stay_in_their_range() -> None:
    chance = random.Random(1)
    for stock in STOCKS:
        for _ in range(200):
            price = stock.price(chance)
            assert price.name == stock.name
            assert stock.low.dollars <= price.dollars <= stock.high.dollars
            assert stock.low.cents <= price.cents <= stock.high.cents


def test_there_are_fourteen_stocks() -> None:
    assert " ".join(stock.name for stock in STOCKS) == "IBM SUN GOOG INEL UBER ABC XYZ DEF AAA BBB CCC DDD EEE FFF"


# -- senders --------------------------------------------------------------------------------------------------------


class FakeProducer:
    """Takes so many records; says that its queue is full when it is; delivers when it is polled."""

    def __init__(self, room: int = 1_000_000, error: KafkaError | None = None) -> None:
        self.room, self.error = room, error
        self.waiting: list[tuple[str, bytes, Callable]] = []
        self.delivered: list[tuple[str, bytes]] = []
        self.full = 0
        self.lock = threading.Lock()

    def produce(self, topic: str, *, key: str, value: bytes, on_delivery: Callable) -> None:
        with self.lock:
            if len(self.waiting) >= self.room:
                self.full += 1
                raise BufferError("Local: Queue full")
            self.waiting.append((key, value, on_delivery))

    def poll(self, timeout: float) -> int:
        with self.lock:
            due, self.waiting = (self.waiting, []) if timeout else ([], self.waiting)
        for key, value, on_delivery in due:
            self.delivered.append((key, value))
            on_delivery(self.error, SimpleNamespace(key=lambda key=key: key))
        return len(due)

    def flush(self) -> None:
        self.poll(1)


def test_a_sender_sends_its_count_of_prices_under_its_name() -> None:
    producer = FakeProducer()
    sender = StockSender(producer, "t", STOCKS[0], delay=(0, 0), count=50, seed=1)
    sender.start()
    sender.join(PATIENCE)
    producer.flush()
    assert (sender.sent, sender.delivered, sender.failed) == (50, 50, 0)
    assert {(key, deserialize(value).name) for key, value in producer.delivered} == {("IBM", "IBM")}


def test_a_full_queue_is_waited_for_and_nothing_is_lost() -> None:
    producer = FakeProducer(room=7)
    sender = StockSender(producer, "t", STOCKS[0], delay=(0, 0), count=50)
    sender.start()
    sender.join(PATIENCE)
    producer.flush()
    assert producer.full >= 7
    assert sender.sent == sender.delivered == 50


def test_a_sender_stops_even_while_the_queue_stays_full() -> None:
    producer = FakeProducer(room=3)
    producer.poll = lambda timeout: 0  # type: ignore[method-assign]  # no broker takes anything
    sender = StockSender(producer, "t", STOCKS[0], delay=(0, 0))
    sender.start()
    while not producer.full:
        sender.join(0.01)
    sender.stop()
    assert not sender.is_alive()
    assert sender.sent == 3, "what was not taken does not count as sent"


def test_failed_deliveries_are_counted_and_reported() -> None:
    reported = []
    producer = FakeProducer(error=KafkaError(KafkaError._MSG_TIMED_OUT))

    def note(error: KafkaError, _: object) -> None:
        reported.append(error.name())

    sender = StockSender(producer, "t", STOCKS[0], delay=(0, 0), count=5, on_delivery=note)
    sender.start()
    sender.join(PATIENCE)
    producer.flush()
    assert (sender.delivered, sender.failed, reported) == (0, 5, ["_MSG_TIMED_OUT"] * 5)


# -- no broker, no topic ---------------------------------------------------------------------------------------------


def test_wrong_addresses_give_a_clear_error_in_bounded_time() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1,127.0.0.1:2", "log_level": 0, "error_cb": lambda _: None})
    begin = time.monotonic()
    with pytest.raises(ClusterUnreachable, match="no broker answered within 1 s"):
        partition_count(producer, "stock-prices", timeout=1)
    assert time.monotonic() - begin < 5


def test_the_application_ends_with_that_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(producer_app, "_CONNECT_SECONDS", 1)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    assert producer_app.main(["--bootstrap-servers", "127.0.0.1:1"]) == 1
    assert "no broker answered within 1 s" in capsys.readouterr().err


def test_the_application_logs_every_hundredth_price_of_each_stock(capsys: pytest.CaptureFixture[str]) -> None:
    def report(name: bytes, offset: int) -> SimpleNamespace:
        fields = {"key": name, "value": b"{}", "topic": "t", "partition": 2, "offset": offset}
        fields["timestamp"] = (1, 1_790_000_000_000)
        return SimpleNamespace(**{field: lambda value=value: value for field, value in fields.items()})

    log = _DeliveryLog()
    for offset in range(250):
        log(None, report(b"IBM", offset))
    for offset in range(99):
        log(None, report(b"SUN", offset))
    log(KafkaError(KafkaError._MSG_TIMED_OUT), report(b"SUN", 99))
    said = capsys.readouterr()
    assert said.out.splitlines() == [f"IBM {{}} t [2] at {offset}, 1790000000000" for offset in (99, 199)]
    assert said.err == "SUN: Local: Message timed out\n"


# -- the partitioner ------------------------------------------------------------------------------------------------


class Topics:
    """A producer of a cluster that has topics with so many partitions."""

    def __init__(self, **partitions: int) -> None:
        self.partitions = partitions

    def list_topics(self, timeout: float) -> SimpleNamespace:
        topics = {t: SimpleNamespace(partitions=dict.fromkeys(range(n))) for t, n in self.partitions.items()}
        return SimpleNamespace(topics=topics)


@pytest.mark.parametrize("important", ["IBM,UBER", " IBM , UBER ", ("IBM", "UBER"), {"IBM", "UBER"}])
@pytest.mark.parametrize("partitions", [2, 3, 5, 13])
def test_important_stocks_are_alone_on_the_last_partition(important: object, partitions: int) -> None:
    chosen = ImportantStocks(Topics(prices=partitions), "prices", important)
    where = {stock.name: chosen.partition(stock.name) for stock in STOCKS}
    assert {name for name, p in where.items() if p == partitions - 1} == {"IBM", "UBER"}
    assert all(0 <= p < partitions for p in where.values())


@pytest.mark.parametrize(
    ("important", "says"),
    [
        ("", "without a name"),
        ((), "no important stock"),
        ("IBM,,UBER", "without a name"),
        ("IBM,", "without a name"),
        ("IBM,UBER,IBM", "named twice: IBM"),
    ],
)
def test_a_list_that_cannot_be_meant_is_refused(important: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ImportantStocks(Topics(prices=3), "prices", important)


def test_a_single_partition_is_refused() -> None:
    with pytest.raises(ValueError, match="has 1 partition"):
        ImportantStocks(Topics(prices=1), "prices", "IBM")


def test_a_topic_that_does_not_exist_is_told() -> None:
    with pytest.raises(UnknownTopic, match="no topic 'prices'"):
        ImportantStocks(Topics(other=1), "prices", "IBM")


def test_a_cluster_that_does_not_answer_is_told() -> None:
    class Silent:
        def list_topics(self, timeout: float) -> None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    with pytest.raises(ClusterUnreachable):
        partition_count(Silent(), "prices")


# -- interceptors ---------------------------------------------------------------------------------------------------


class Delivering:
    """A producer that keeps what it is given and reports it at once."""

    def __init__(self, error: KafkaError | None = None) -> None:
        self.sent: list[dict] = []
        self.error = error

    def produce(self, topic: str, **record: object) -> None:
        self.sent.append({"topic": topic, **record})
        there = SimpleNamespace(topic=lambda: topic, partition=lambda: 2, offset=lambda: len(self.sent) - 1)
        record["on_delivery"](self.error, there)  # type: ignore[operator]


class Stamp:
    """Adds a header, and notes what it was told."""

    def __init__(self, name: str, told: list[str]) -> None:
        self.name, self.told = name, told

    def on_send(self, record: object) -> object:
        return replace(record, headers=[*record.headers, (self.name, b"")])  # type: ignore[attr-defined, type-var]

    def on_acknowledgement(self, error: KafkaError | None, message: object) -> None:
        self.told.append(self.name)


class Broken:
    """Raises in both hooks."""

    def on_send(self, record: object) -> object:
        raise RuntimeError("on_send")

    def on_acknowledgement(self, error: KafkaError | None, message: object) -> None:
        raise RuntimeError("on_acknowledgement")


def test_interceptors_are_called_in_order_and_before_the_report() -> None:
    told: list[str] = []
    inner = Delivering()
    producer = InterceptedProducer(inner, [Stamp("first", told), Stamp("second", told)])
    producer.produce("t", b"v", b"k", partition=2, on_delivery=lambda *_: told.append("report"))
    [record] = inner.sent
    assert [name for name, _ in record["headers"]] == ["first", "second"]
    assert (record["topic"], record["key"], record["value"], record["partition"]) == ("t", b"k", b"v", 2)
    assert told == ["first", "second", "report"]


def test_an_interceptor_that_raises_does_not_stop_the_record(caplog: pytest.LogCaptureFixture) -> None:
    counting = CountingInterceptor()
    inner = Delivering()
    InterceptedProducer(inner, [Broken(), counting]).produce("t", None, None)
    assert len(inner.sent) == 1
    assert (counting.sent, counting.acknowledged, counting.failed) == (1, 1, 0)
    assert "Broken.on_send failed" in caplog.text and "Broken.on_acknowledgement failed" in caplog.text


def test_failures_count_apart_from_acknowledgements() -> None:
    counting = CountingInterceptor()
    producer = InterceptedProducer(Delivering(KafkaError(KafkaError._MSG_TIMED_OUT)), [counting])
    for _ in range(3):
        producer.produce("t", b"v")
    assert (counting.sent, counting.acknowledged, counting.failed) == (3, 0, 3)


def test_every_so_many_records_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kafkacourse.stocks.interceptors")
    producer = InterceptedProducer(Delivering(), [CountingInterceptor(every=2)])
    for number in range(5):
        producer.produce("t", str(number).encode(), "IBM")
    assert caplog.messages == ["2 sent: IBM 1", "2 acknowledged: t [2] at 1", "4 sent: IBM 3", "4 acknowledged: t [2] at 3"]


def test_nothing_is_logged_unless_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "kafkacourse.stocks.interceptors")
    producer = InterceptedProducer(Delivering(), [CountingInterceptor()])
    for _ in range(200):
        producer.produce("t", b"v", None)
    assert caplog.messages == []


def test_counters_are_right_with_many_threads() -> None:
    counting = CountingInterceptor()
    producer = InterceptedProducer(Delivering(), [counting])
    threads = [threading.Thread(target=lambda: [producer.produce("t", b"v") for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (counting.sent, counting.acknowledged) == (4000, 4000)
