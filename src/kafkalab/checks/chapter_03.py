"""Chapter 03: the producer of the stock-price application, and what it may rely on."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from confluent_kafka import Message, Producer, murmur2

from kafkalab.checks.common import counted, existing, has_shape
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight, text_of

__all__ = ["LABS"]

_PRICES = "stock-prices"
_STOCKS = ("IBM", "SUN", "GOOG", "INEL", "UBER", "ABC", "XYZ", "DEF", "AAA", "BBB", "CCC", "DDD", "EEE", "FFF")
_AGAIN = "Records cannot be taken back: restart the kernel and begin again with a new cluster."


# -- what several labs ask ------------------------------------------------------------------------------------------


def _records(sight: Sight, topic: str) -> list[Message]:
    existing(sight, topic)
    records = sight.records(topic)
    if not records:
        raise Unmet(f"{topic} is empty. Was anything sent, and was it flushed?")
    return records


def _key(message: Message) -> str:
    key = message.key()
    return "(no key)" if key is None else key.decode(errors="replace")


def _partitions_of_keys(records: Iterable[Message]) -> dict[str, set[int]]:
    where: dict[str, set[int]] = defaultdict(set)
    for message in records:
        where[_key(message)].add(message.partition())
    return where


def _each_key_in_one_partition(topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        for key, partitions in _partitions_of_keys(_records(sight, topic)).items():
            if len(partitions) > 1:
                found = " and ".join(map(str, sorted(partitions)))
                raise Unmet(f"Records of {key} are in partitions {found}: who reads them, sees no order among them. {_AGAIN}")

    return probe


def _all_stocks(topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        keys = set(_partitions_of_keys(_records(sight, topic)))
        if strange := sorted(keys - set(_STOCKS)):
            raise Unmet(f"There are records with the key {strange[0]!r}. A record's key is the name of the stock.")
        if missing := [name for name in _STOCKS if name not in keys]:
            raise Unmet(f"No price of {missing[0]} is in {topic}. There are {len(_STOCKS)} stocks.")

    return probe


def _answer(sight: Sight, name: str, what: str) -> object:
    given = sight.answers.get(name)
    if given is None:
        raise Unmet(f"Give check() {name}=…: {what}.")
    return given


# -- the partitioner ------------------------------------------------------------------------------------------------

_IMPORTANT = {"IBM", "UBER"}
_SINGLE = "single-copy"


def _important_alone(topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        last = len(existing(sight, topic)) - 1
        where = _partitions_of_keys(_records(sight, topic))
        for name in sorted(_IMPORTANT & where.keys()):
            if elsewhere := sorted(where[name] - {last}):
                raise Unmet(
                    f"{name} is important, and has records in partition {elsewhere[0]}. Which is the last one of {topic}?"
                )
        others = sorted(key for key, partitions in where.items() if last in partitions and key not in _IMPORTANT)
        if others:
            raise Unmet(
                f"{others[0]} is in partition {last} with the important ones. Over how many partitions are the others spread?"
            )

    return probe


def _others_spread(sight: Sight) -> None:
    where = _partitions_of_keys(_records(sight, _PRICES))
    used = {p for key, partitions in where.items() if key not in _IMPORTANT for p in partitions}
    if len(used) < 2:
        raise Unmet(f"All other stocks are in partition {min(used, default=0)}. They should share the load of all the rest.")


def _waited_for_the_last(sight: Sight) -> None:
    last = len(existing(sight, _SINGLE)) - 1
    where = _partitions_of_keys(_records(sight, _SINGLE))
    if "IBM" not in where:
        raise Unmet(f"No price of IBM is in {_SINGLE}. Did its broker come back, and did you flush after that?")
    if elsewhere := sorted(where["IBM"] - {last}):
        raise Unmet(
            f"While partition {last} had no leader, IBM went to partition {elsewhere[0]}. Does your count take in partitions "
            "that are not available at the moment?"
        )


def _refuses_bad_configurations(sight: Sight) -> None:
    important_stocks = _answer(sight, "partitioner", "your class ImportantStocks")
    if not callable(important_stocks):
        raise Unmet(f"partitioner should be your class, not a {type(important_stocks).__name__}.")
    producer = Producer(sight.cluster.client_config())
    bad: Sequence[tuple[str, object, str]] = (
        (_PRICES, (), "no important stock at all"),
        (_PRICES, "", "an empty list of stocks"),
        (_PRICES, "IBM,,UBER", "a stock without a name"),
        (_PRICES, ("IBM", "UBER", "IBM"), "a stock that is named twice"),
        ("one-partition", ("IBM", "UBER"), "a topic with a single partition, where nothing is left for the other stocks"),
    )
    for topic, stocks, what in bad:
        try:
            important_stocks(producer, topic, stocks)
        except ValueError:
            continue
        except Exception as error:
            raise Unmet(
                f"Given {what}, it ends with {type(error).__name__}: {error}. A ValueError should say what is wrong."
            ) from error
        raise Unmet(f"It accepts {what}. Better a clear ValueError now than records in the wrong place later.")


def _depends_on_the_name_alone(sight: Sight) -> None:
    important_stocks = _answer(sight, "partitioner", "your class ImportantStocks")
    rest = len(existing(sight, _PRICES)) - 1
    others = [name for name in _STOCKS if name not in _IMPORTANT]
    producer = Producer(sight.cluster.client_config())

    def chosen(names: Iterable[str]) -> dict[str, object]:
        try:
            partitioner = important_stocks(producer, _PRICES, ("IBM", "UBER"))  # type: ignore[operator]
            return {name: partitioner.partition(name) for name in names}
        except Exception as error:
            raise Unmet(f"Asked for the partitions of all stocks, it ends with {type(error).__name__}: {error}.") from error

    first, second = chosen(others), chosen(reversed(others))
    if differs := next((name for name in others if first[name] != second[name]), None):
        raise Unmet(
            f"{differs} goes to partition {first[differs]}, and with another object of your class to {second[differs]}. What "
            "else than its name does the choice depend on?"
        )
    # Python's hash is the same all through this process: it has to be recognized.
    for python in (hash, lambda name: abs(hash(name)), lambda name: hash(name.encode()), lambda name: abs(hash(name.encode()))):
        if rest > 1 and all(first[name] == python(name) % rest for name in others):
            raise Unmet(
                "It chooses by Python's hash(), which is another number for the same name when the program is started again. "
                "Which hash is the same in every process?"
            )


# -- synchronous, asynchronous, replicated --------------------------------------------------------------------------

_EXAMPLE = "my-example-topic"


def _example_keys(sight: Sight) -> dict[tuple[int, int], int]:
    """Key by (partition, offset), of all records whose keys are numbers of 8 bytes."""
    records = [m for m in _records(sight, _EXAMPLE) if m.key() is not None]
    if not records:
        raise Unmet("No record has a key. It is given to produce beside the value, as bytes.")
    for message in records:
        if len(message.key()) != 8:
            raise Unmet(f"There is a key of {len(message.key())} bytes, {message.key()!r}. A long is 8 bytes, not its digits.")
    return {(m.partition(), m.offset()): int.from_bytes(m.key(), "big", signed=True) for m in records}


def _example_long_keys(sight: Sight) -> None:
    for number in _example_keys(sight).values():
        if not 1_500_000_000_000 < number < 5_000_000_000_000:
            raise Unmet(f"There is a key that reads {number}. Is it the time in milliseconds, with the highest byte first?")


def _example_values(sight: Sight) -> None:
    keys = _example_keys(sight)
    for message in _records(sight, _EXAMPLE):
        number = keys.get((message.partition(), message.offset()))
        if number is not None and text_of(message) != f"Hello Mom {number}":
            raise Unmet(f"The record with the key {number} has the value {text_of(message)!r}. Which number should be in it?")


def _told(name: str, how: str) -> Callable[[Sight], None]:
    """Five (key, partition, offset …) that are in the topic just there."""

    def probe(sight: Sight) -> None:
        given = _answer(sight, name, "a list of (key, partition, offset)")
        if not isinstance(given, Sequence) or not all(isinstance(row, Sequence) and len(row) >= 3 for row in given):
            raise Unmet(f"{name} should be a list of (key, partition, offset).")
        if len(given) != 5:
            raise Unmet(f"{name} tells of {counted(len(given), 'record')}, not of five. {how}")
        if len({row[0] for row in given}) != 5:
            raise Unmet(f"{name} has the same key more than once. Every record has an index of its own.")
        there = _example_keys(sight)
        for key, partition, offset, *_ in given:
            if there.get((partition, offset)) != key:
                raise Unmet(
                    f"{name} says that {key} is at offset {offset} of partition {partition}. There is another record."
                )

    return probe


def _was_down_and_came_back(broker: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        verbs = [fault.verb for fault in sight.cluster.faults if fault.broker == broker]
        if not {"kill", "stop"} & set(verbs):
            raise Unmet(f"Broker {broker} was not shut down yet.")
        if (state := sight.view().brokers[broker].state) != "up":
            raise Unmet(f"Broker {broker} is {state}. It should be back.")

    return probe


def _in_sync(topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        for p in existing(sight, topic):
            if missing := sorted(set(p.replicas) - set(p.isr)):
                raise Unmet(f"The ISR of partition {p.partition} lacks broker {missing[0]}. Was there time for it to catch up?")

    return probe


def _missing_replicas(sight: Sight) -> None:
    missing = _answer(sight, "missing", "how many partitions lacked a replica while broker 1 was down")
    after = _answer(sight, "missing_after", "how many lack one now")
    partitions = len(existing(sight, _EXAMPLE))
    if missing != partitions:
        raise Unmet(
            f"missing is {missing}. Broker 1 keeps a replica of every partition. Did you look while it was down and out of "
            "every ISR, and count the lines of partitions only?"
        )
    if after != 0:
        raise Unmet(f"missing_after is {after}. Did you wait until all replicas were in sync again?")


def _ledger_in(topic: str, fewest: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        entries = _answer(sight, "ledger", "the ledger producer").entries  # type: ignore[attr-defined]
        if len(entries) < fewest:
            raise Unmet(f"The ledger has {counted(len(entries), 'record')}. Let it go on sending while the broker is down.")
        there = {(m.partition(), m.offset(), text_of(m)) for m in _records(sight, topic)}
        if lost := [e for e in entries if (e.partition, e.offset, e.value) not in there]:
            raise Unmet(f"{counted(len(lost), 'record')} of the ledger cannot be found in {topic}, {lost[0].value!r} for one.")

    return probe


# -- the senders ----------------------------------------------------------------------------------------------------


def _prices_are_right(sight: Sight) -> None:
    ranges = {name: (50, 100) for name in _STOCKS} | {"GOOG": (400, 500), "UBER": (50, 1000)}
    for message in _records(sight, _PRICES):
        key = _key(message)
        try:
            fields = json.loads(message.value() or b"")
        except ValueError:
            raise Unmet(f"A value of {key} is not JSON: {text_of(message)[:60]!r}. The application has a serializer.") from None
        if not isinstance(fields, Mapping) or fields.keys() != {"name", "dollars", "cents"}:
            raise Unmet(f"A value of {key} has not the fields name, dollars and cents: {text_of(message)[:60]!r}.")
        if fields["name"] != key:
            raise Unmet(f"A price of {fields['name']} has the key {key}. The key is the name of the stock.")
        low, high = ranges.get(key, (0, 0))
        if not low <= fields["dollars"] <= high or not 0 <= fields["cents"] <= 99:
            raise Unmet(f"{key} at {fields['dollars']}.{fields['cents']:02} is out of its range.")


def _as_java_chooses(sight: Sight) -> None:
    partitions = len(existing(sight, _PRICES))
    for key, found in _partitions_of_keys(_records(sight, _PRICES)).items():
        if found != {murmur2(key.encode(), partitions)}:
            raise Unmet(
                f"{key} is in partition {min(found)}, where Java's producer would not put it. Which setting of librdkafka "
                "names the partitioner?"
            )


def _as_many_as_sent(sight: Sight) -> None:
    records = len(_records(sight, _PRICES))
    sent = _answer(sight, "sent", "how many prices your senders sent in all")
    if records < 1000:
        raise Unmet(f"{_PRICES} has {records} records. Let the senders go on until 1000 are delivered.")
    if records < sent:  # type: ignore[operator]
        raise Unmet(
            f"The senders sent {sent} prices, and {records} are in the topic. What did the last ones wait for, when you "
            "stopped?"
        )
    if records > sent:  # type: ignore[operator]
        raise Unmet(f"There are {records} prices in the topic, and your senders count {sent}. Did others send, too? {_AGAIN}")


_STATUS = {"SIGINT": 130, "SIGTERM": 143, "SIGKILL": -9}


def _ended_with(*signals: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        endings = _answer(sight, "endings", "{signal: (exit status, sent)}")
        for name in signals:
            if not isinstance(endings, Mapping) or name not in endings:
                raise Unmet(f"endings has no {name!r}.")
            status = endings[name][0]
            if status is None:
                raise Unmet(f"The application has not ended after {name}. Wait for its end, then look at its exit status.")
            if status != _STATUS[name]:
                raise Unmet(f"After {name}, endings has the exit status {status}. Did you send that signal, and no other?")

    return probe


def _orderly_lost_nothing(sight: Sight) -> None:
    endings = _answer(sight, "endings", "{signal: (exit status, sent)}")
    for name in ("SIGINT", "SIGTERM"):
        topic = f"ended-by-{name.lower()}"
        records = len(_records(sight, topic))
        sent = endings.get(name, (None, None))[1] if isinstance(endings, Mapping) else None
        if sent is None:
            raise Unmet(
                f"endings does not tell how many were sent until {name}. The last line that the application prints does."
            )
        if sent != records:
            raise Unmet(f"endings tells of {sent} sent until {name}, and {topic} has {records} records.")


def _killed_said_nothing(sight: Sight) -> None:
    _records(sight, "ended-by-sigkill")
    endings = _answer(sight, "endings", "{signal: (exit status, sent)}")
    if not isinstance(endings, Mapping) or "SIGKILL" not in endings:
        raise Unmet("endings has no 'SIGKILL'.")
    if endings["SIGKILL"][1] is not None:
        raise Unmet("Who is killed has no last words. Where does that number come from?")


# -- acknowledgements, and order ------------------------------------------------------------------------------------

_ACKS = ("acks-0", "acks-1", "acks-all")


def _was_isolated(sight: Sight) -> None:
    verbs = [fault.verb for fault in sight.cluster.faults if fault.broker == 0]
    if "isolate" not in verbs:
        raise Unmet("Broker 0 was not cut off yet. There is a verb for that, which is not kill.")
    if "heal" not in verbs:
        raise Unmet("Broker 0 is still cut off. Give it its network back.")


def _acknowledged(sight: Sight, topic: str) -> list[str]:
    ledgers = _answer(sight, "ledgers", "the three ledger producers by topic")
    if not isinstance(ledgers, Mapping) or topic not in ledgers:
        raise Unmet(f"ledgers should be a dictionary by topic, and has no {topic!r}.")
    return [entry.value for entry in ledgers[topic].entries]


def _counted(name: str, count: Callable[[list[str], Counter[str]], int], clue: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        given = _answer(sight, name, "{'acks-0': …, 'acks-1': …, 'acks-all': …}")
        if not isinstance(given, Mapping):
            raise Unmet(f"{name} should be a dictionary by topic.")
        for topic in _ACKS:
            if topic not in given:
                raise Unmet(f"{name} has no {topic!r}.")
            there = Counter(text_of(m) for m in _records(sight, topic))
            right = count(_acknowledged(sight, topic), there)
            if given[topic] != right:
                raise Unmet(f"{name}[{topic!r}] is {given[topic]!r}. {clue}")

    return probe


def _only_all_kept_all(sight: Sight) -> None:
    for topic in _ACKS:
        lost = len(set(_acknowledged(sight, topic)) - {text_of(m) for m in _records(sight, topic)})
        if topic == "acks-all" and lost:
            raise Unmet(f"{lost} acknowledged records of {topic} are missing. Does the ledger send with acks='all'?")
        if topic != "acks-all" and not lost:
            raise Unmet(
                f"Nothing is missing in {topic}. Did it get acknowledgements while broker 0 was cut off and led no more?"
            )


_FULL = "needs-all-three"


def _all_three_needed(sight: Sight) -> None:
    existing(sight, _FULL)
    if (needed := sight.topic_config(_FULL)["min.insync.replicas"]) != "3":
        raise Unmet(f"{_FULL} needs {needed} replicas in sync. The text says three.")


def _outcomes(sight: Sight) -> None:
    outcomes = _answer(sight, "outcomes", "{'all': …, 1: …, 0: …}")
    if not isinstance(outcomes, Mapping) or any(outcomes.get(acks) is None for acks in ("all", 1, 0)):
        raise Unmet("outcomes should have what was told for 'all', 1 and 0: the name of an error, or 'acknowledged'.")
    if outcomes["all"] == "_MSG_TIMED_OUT":
        raise Unmet("With acks=all you heard that the time was over. What had the broker said? Let the producer not try again.")
    if outcomes["all"] == "acknowledged":
        raise Unmet("acks=all was acknowledged. Was broker 2 down and out of the ISR, and was acks given to the producer?")
    if outcomes["all"] != "NOT_ENOUGH_REPLICAS":
        raise Unmet(f"With acks=all you heard {outcomes['all']!r}. error.name() is the name that Kafka gives it.")
    for acks in (1, 0):
        if outcomes[acks] != "acknowledged":
            raise Unmet(f"With acks={acks} you heard {outcomes[acks]!r}. Was acks={acks} given to the producer?")


def _accepted_are_there(sight: Sight) -> None:
    values = {text_of(m) for m in _records(sight, _FULL)}
    if "acks=all" in values:
        raise Unmet("acks=all is in the topic. Was it sent while broker 2 was down, and never again?")
    for value in ("acks=1", "acks=0"):
        if value not in values:
            raise Unmet(f"{value!r} is not to be read in {_FULL}. Was it sent as it stands, and are all replicas back?")


def _doubled_and_disordered(sight: Sight) -> None:
    values = [text_of(m) for m in _records(sight, "hasty")]
    if set(values) != set("012345"):
        raise Unmet(f"hasty holds {' '.join(values)}. Send 0 to 5 with send_five.")
    if len(values) == len(set(values)):
        raise Unmet("Nothing is doubled in hasty. Was it sent with idempotence, too?")
    if values == sorted(values):
        raise Unmet("hasty is in order. Were several records on their way at once?")


def _once_and_in_order(sight: Sight) -> None:
    values = [text_of(m) for m in _records(sight, "idempotent")]
    if len(values) > len(set(values)):
        raise Unmet(f"idempotent holds {' '.join(values)}. Which setting lets the broker recognize what it already has?")
    if values != list("012345"):
        raise Unmet(f"idempotent holds {' '.join(values)}. It should be 0 to 5, each once and in order.")


LABS: tuple[Lab, ...] = (
    Lab(
        "03_sync_async",
        "Five records one by one, five at once",
        (
            Requirement("my-example-topic has 13 partitions with 3 replicas each", has_shape(_EXAMPLE, 13, 3)),
            Requirement("keys are times in milliseconds, written as 8 bytes", _example_long_keys),
            Requirement("each value is 'Hello Mom' and the record's key", _example_values),
            Requirement(
                "the five that were waited for one by one are where you were told",
                _told("written", "Return a row for each."),
            ),
            Requirement(
                "the five that were sent at once are where their delivery reports say",
                _told("reported", "Reports come only while you poll or flush, one for each record."),
            ),
        ),
        (
            "produce takes key=, value= and on_delivery=, a function of two arguments: the error (None if all is well) and the "
            "record, with .partition() and .offset().",
            "producer.flush() waits for everything that was sent, and calls your functions meanwhile. To wait for one record, "
            "flush after each.",
            "struct.unpack('>q', record.key()) gives the number again, in a tuple of one.",
        ),
    ),
    Lab(
        "03_replication",
        "A broker is away while a producer sends",
        (
            Requirement("broker 1 was down and came back", _was_down_and_came_back(1)),
            Requirement("you know how many partitions lacked a replica meanwhile", _missing_replicas),
            Requirement("all replicas are in sync again", _in_sync(_EXAMPLE)),
            Requirement("everything that was acknowledged is in the topic", _ledger_in(_EXAMPLE, 400)),
        ),
        (
            "cluster.stop_broker(1) and cluster.restart(1); cluster.wait_for(lambda view: …, 'what you wait for') looks "
            "until it is so.",
            "In a cell, lines = !kafka-topics.sh … gives the printed lines. Each under-replicated partition has one with "
            "'Partition: '.",
        ),
    ),
    Lab(
        "03_stock_senders",
        "Fourteen senders share a producer",
        (
            Requirement("prices of all fourteen stocks were sent", _all_stocks(_PRICES)),
            Requirement("each is JSON, in its range, under the name of its stock", _prices_are_right),
            Requirement("the prices of one stock are in one partition", _each_key_in_one_partition(_PRICES)),
            Requirement("it is the partition that Java's producer chooses", _as_java_chooses),
            Requirement("all that was sent is in the topic", _as_many_as_sent),
        ),
        (
            "A setting with dots becomes a keyword with underscores: cluster.client_config(client_id=…, "
            "enable_idempotence=True).",
            "A StockSender is a thread: start() it, and stop() waits for its end. Its counters are .sent and .delivered.",
            "While a sender runs, it may put more into the queue. So flush when none of them runs any more.",
        ),
    ),
    Lab(
        "03_shutdown",
        "Ended by a signal",
        (
            Requirement("after SIGINT and SIGTERM it ended in order", _ended_with("SIGINT", "SIGTERM")),
            Requirement("nothing that it had sent until then is missing", _orderly_lost_nothing),
            Requirement("SIGKILL ended it at once", _ended_with("SIGKILL")),
            Requirement("and nobody knows how much it had sent", _killed_said_nothing),
        ),
        (
            "app.send_signal(signal.SIGINT) sends a signal; app.communicate() reads what is printed until the end, and waits "
            "for it.",
            "The last line reads '1234 sent, 1234 delivered, 0 still waiting'. re.search(r'(\\d+) sent', printed) finds the "
            "number.",
        ),
    ),
    Lab(
        "03_partitioner",
        "Important stocks alone on the last partition",
        (
            Requirement("stock-prices has 5 partitions with 3 replicas each", has_shape(_PRICES, 5, 3)),
            Requirement("prices of all fourteen stocks were sent", _all_stocks(_PRICES)),
            Requirement("the last partition holds IBM and UBER and nothing else", _important_alone(_PRICES)),
            Requirement("the other stocks share the other partitions", _others_spread),
            Requirement("the prices of one stock are in one partition", _each_key_in_one_partition(_PRICES)),
            Requirement("the choice depends on the stock's name alone, in every process", _depends_on_the_name_alone),
            Requirement("the last partition stays the last one while its broker is down", _waited_for_the_last),
            Requirement("a configuration that cannot be meant is refused", _refuses_bad_configurations),
        ),
        (
            "How many partitions are there? Ask the producer: producer.list_topics(timeout=10).topics[topic].partitions is a "
            "dictionary, with or without a leader. Ask once, when the object is made.",
            "confluent_kafka.murmur2(key, n) gives a number from 0 to n - 1, always the same for the same key (bytes).",
            "The last of P partitions is P - 1, so the others share murmur2(name.encode(), P - 1). A P of 1 leaves them none.",
            "The list may come as a string, 'IBM,UBER', or as names: split a string at its commas first, then look for empty "
            "names and for names that come twice, and raise ValueError.",
        ),
    ),
    Lab(
        "03_durability",
        "What an acknowledgement is worth",
        (
            Requirement("broker 0 was cut off, and reached again", _was_isolated),
            Requirement("acks=0 and acks=1 lost records that were acknowledged, acks=all none", _only_all_kept_all),
            Requirement(
                "you counted what was lost",
                _counted(
                    "lost",
                    lambda acknowledged, there: sum(value not in there for value in acknowledged),
                    "Count the entries of the ledger whose value is not in the topic, after the ledger has stopped.",
                ),
            ),
            Requirement(
                "you counted what was doubled",
                _counted(
                    "doubled",
                    lambda _, there: sum(number > 1 for number in there.values()),
                    "Count the different values that are in the topic more than once.",
                ),
            ),
        ),
        (
            "cluster.wait_for(lambda view: all(view.topics[name][0].leader not in (0, None) for name in ledgers), 'leaders') "
            "waits for the change of leaders.",
            "ledger.wait_for(ledger.acknowledged + 200, timeout=30) waits for 200 more. With acks=all none will come before "
            "broker 0 is healed.",
            "Counter(values(name)) says how often each value is in the topic.",
        ),
    ),
    Lab(
        "03_all_in_sync",
        "A topic that asks for all three",
        (
            Requirement("needs-all-three needs three replicas in sync", _all_three_needed),
            Requirement("broker 2 was down and came back", _was_down_and_came_back(2)),
            Requirement("you know what a producer hears with each setting of acks", _outcomes),
            Requirement("what was acknowledged is there, what was refused is not", _accepted_are_there),
        ),
        (
            "Producer(cluster.client_config(acks=acks, retries=0)) makes a producer that does not try again.",
            "The report's function is given the error, or None: gather error.name() in a list, flush, and look into it.",
        ),
    ),
    Lab(
        "03_order",
        "Retries, doubles and order",
        (
            Requirement("without idempotence, records are doubled and out of order", _doubled_and_disordered),
            Requirement("with it, each is there once and in order", _once_and_in_order),
        ),
        (
            "send_five takes more settings as keywords, with underscores for dots.",
            "The setting is called enable.idempotence, and is off unless you say otherwise.",
        ),
    ),
)
