from __future__ import annotations

import doctest
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from confluent_kafka import KafkaError, Message

from kafkalab import history
from kafkalab.history import TERMS, judge, judgement
from kafkalab.history.records import Poll, Record, Send
from kafkalab.history.verdict import Kind, Verdict
from kafkalab.workers import Acknowledgement


def message(
    offset: int,
    value: str | None = None,
    partition: int = 0,
    topic: str = "t",
    error: KafkaError | None = None,
    timestamp: tuple[int, int] = (1, 1000),
) -> Message:
    value = f"m{offset}" if value is None else value
    return Message(topic=topic, partition=partition, offset=offset, value=value.encode(), error=error, timestamp=timestamp)


def messages(*offsets: int) -> list[Message]:
    return [message(offset) for offset in offsets]


def ledger(*entries: tuple[int, int, int], name: str = "ledger-1", topic: str = "t") -> SimpleNamespace:
    """A ledger of triples: number, partition, offset."""
    lines = [Acknowledgement(seq, f"m{seq}", None, partition, offset, 100 + seq, 5) for seq, partition, offset in entries]
    return SimpleNamespace(name=name, topic=topic, entries=lines)


def only(verdict: Verdict, kind: Kind) -> Any:
    """The one anomaly that there is, of this kind."""
    assert verdict.counts == {kind: 1}
    return verdict[kind][0]


def offsets(records: Iterable[Record | Send | Poll]) -> list[int]:
    return [record.offset for record in records]


# -- each kind


def test_a_right_history_has_no_anomaly() -> None:
    log = messages(0, 1, 2)
    verdict = judge(sent=log, log=log, polled={"a": log, "b": [log[:2], log[2:]]})
    assert verdict.ok
    assert verdict.counts == {}
    assert verdict.found == "no anomaly"
    assert repr(verdict) == "t: 3 acknowledged, 3 in the log, 6 polled\nNo anomaly."


def test_a_lost_write_was_acknowledged_and_is_not_in_the_log() -> None:
    lost = only(judge(sent=ledger((1, 0, 0), (2, 0, 1), (3, 0, 2)), log=[message(0, "m1"), message(2, "m3")]), "lost write")
    assert (lost.record.who, lost.record.place, lost.record.value, lost.record.ended) == ("ledger-1", ("t", 0, 1), "m2", 102)
    assert str(lost) == "m2: sent by ledger-1, acknowledged in t-0 at offset 1"


def test_the_last_records_of_a_log_that_was_cut_are_lost_too() -> None:
    assert len(judge(sent=messages(0, 1, 2, 3), log=messages(0, 1))["lost write"]) == 2


def test_a_record_that_was_polled_and_then_cut_off_is_lost() -> None:
    assert judge(sent=messages(0, 1), log=messages(0), polled=messages(0, 1)).found == "lost write"


def test_without_the_log_a_record_is_lost_when_consumers_passed_it() -> None:
    verdict = judge(sent=messages(0, 1, 2, 3), polled=[*messages(0), *messages(2)])
    assert verdict.counts == {"lost write": 1, "unseen": 1}
    assert (verdict["lost write"][0].record.offset, verdict["unseen"][0].record.offset) == (1, 3)


def test_unseen_is_not_wrong() -> None:
    verdict = judge(sent=messages(0, 1), log=messages(0, 1), polled=messages(0))
    assert only(verdict, "unseen").record.offset == 1
    assert verdict.ok


def test_what_came_before_a_consumers_first_poll_is_neither_unseen_nor_lost() -> None:
    assert judge(sent=messages(0, 1, 5), log=messages(0, 1, 5), polled=messages(5)).counts == {"unseen": 2}
    assert judge(sent=messages(3, 4), polled=messages(3, 4)).ok


def test_a_duplicate_is_in_the_log_twice() -> None:
    copies = [message(0, "m1"), message(1, "m2"), message(2, "m1")]
    found = only(judge(sent=ledger((1, 0, 0), (2, 0, 1)), log=copies), "duplicate")
    assert (found.record.who, offsets(found.others)) == ("ledger-1", [0, 2])
    assert str(found) == "m1: in t-0 at offset 0 and t-0 at offset 2"


def test_two_consumers_that_get_one_record_are_no_duplicate() -> None:
    assert judge(sent=messages(0, 1), polled={"a": messages(0, 1), "b": messages(0, 1)}).ok


def test_a_copy_in_another_partition_is_a_duplicate() -> None:
    assert judge(log=[message(0, "m", 0), message(0, "m", 1)]).found == "duplicate"


def test_an_aborted_read_names_the_reader() -> None:
    sent = {"sent": messages(0), "aborted": {"bank": messages(2)}}
    found = only(judge(**sent, polled={"careful": messages(0), "careless": messages(0, 2)}), "aborted read")
    assert str(found) == "m2: sent by bank and aborted, read by careless in t-0 at offset 2"
    assert judge(**sent, polled={"careful": messages(0)}).ok


def test_an_aborted_record_in_the_log_that_was_read_is_an_aborted_read() -> None:
    found = only(judge(sent=["100"], aborted=["500"], log=["100", "500"]), "aborted read")
    assert "read by the reader of the log" in str(found)


def test_a_record_that_was_refused_and_read_is_an_aborted_read() -> None:
    refused = message(-1001, "no", error=KafkaError(KafkaError.NOT_ENOUGH_REPLICAS))
    assert only(judge(sent=[refused], polled=[message(0, "no")]), "aborted read").record.outcome == "failed"


def test_a_record_whose_outcome_is_unknown_may_be_there_or_not() -> None:
    late = message(-1001, "late", error=KafkaError(KafkaError._MSG_TIMED_OUT))
    assert judge(sent=[late], log=[]).ok
    assert judge(sent=[late], log=[message(0, "late")], polled=[message(0, "late")]).ok


def test_an_inconsistent_offset_has_two_records() -> None:
    found = only(judge(sent=ledger((1, 0, 0)), log=[message(0, "x"), message(1, "m1")]), "inconsistent offset")
    assert str(found) == "m1: acknowledged to ledger-1 in t-0 at offset 0, like x"
    assert judge(polled={"a": [message(4, "x")], "b": [message(4, "y")]}).found == "inconsistent offset"


def test_the_place_of_an_aborted_record_may_be_told_to_nobody_else() -> None:
    assert judge(sent=messages(0), aborted=messages(1), log=messages(0)).ok


def test_a_non_monotonic_send_goes_back() -> None:
    found = only(judge(sent=ledger((1, 0, 1), (2, 0, 0)), log=[message(0, "m2"), message(1, "m1")]), "non-monotonic send")
    assert (found.record.value, found.others[0].value) == ("m2", "m1")
    assert str(found) == "m2: acknowledged to ledger-1 in t-0 at offset 0, after offset 1"


def test_sends_are_monotonic_per_producer_and_partition() -> None:
    sent = {"a": [message(5, "a5"), message(6, "a6"), message(1, "a1", partition=1)], "b": messages(0, 1)}
    assert judge(sent=sent, log=[item for items in sent.values() for item in items]).ok


def test_a_ledger_is_judged_in_the_order_of_sending() -> None:
    """It is written in the order of acknowledgements."""
    assert judge(sent=ledger((2, 0, 1), (1, 0, 0)), log=[message(0, "m1"), message(1, "m2")]).ok


@pytest.mark.parametrize(
    ("polled", "internal"), [(messages(0, 1, 1), False), ([messages(0, 1), messages(1)], False), ([messages(0, 1, 0)], True)]
)
def test_a_non_monotonic_poll_is_internal_or_external(polled: Any, internal: bool) -> None:
    found = only(judge(log=messages(0, 1), polled={"c": polled}), "non-monotonic poll")
    assert (found.internal, found.record.who) == (internal, "c")
    assert str(found).endswith("after offset 1 in the same poll" if internal else "after offset 1")


@pytest.mark.parametrize(
    ("polled", "internal"), [(messages(0, 3), False), ([messages(0), messages(3)], False), ([messages(0, 3)], True)]
)
def test_a_poll_skip_is_internal_or_external(polled: Any, internal: bool) -> None:
    found = only(judge(log=messages(0, 1, 2, 3), polled=polled), "poll skip")
    assert (found.internal, offsets(found.others)) == (internal, [1, 2])
    assert "polled by consumer in t-0 at offset 3, after a jump over 2 records from offset 1 on" in str(found)


def test_offsets_without_a_record_can_be_passed() -> None:
    """Markers of transactions take offsets, compaction leaves gaps, and aborted records aren't for everybody."""
    assert judge(log=messages(0, 2, 5), polled=messages(0, 2, 5)).ok
    assert judge(aborted=messages(1), log=None, polled={"committed": messages(0, 2)}).ok


def test_what_another_consumer_got_can_be_skipped() -> None:
    assert judge(polled={"a": messages(0, 1, 2), "b": messages(0, 2)}).found == "poll skip"


# -- sources


def test_all_sources_say_the_same() -> None:
    lines = ledger((1, 0, 0), (2, 0, 1))
    reports = [message(0, "m1"), message(1, "m2")]
    rows = [SimpleNamespace(topic="t", partition=0, offset=i, value=bytearray(f"m{i + 1}".encode())) for i in (0, 1)]
    bare = [SimpleNamespace(value=value) for value in ("m1", "m2")]  # a Row of Spark's has its columns as attributes
    for source in (lines, lines.entries, reports, rows, bare, ["m1", "m2"], [b"m1", b"m2"], {"a": ["m1"], "b": iter(["m2"])}):
        assert only(judge(sent=source, log=reports[:1], topic="t"), "lost write").record.value == "m2"
        if source is not lines:  # nobody reads a ledger as a log
            assert judge(sent=lines, log=source if isinstance(source, list) else reports).ok


def test_sparks_rows() -> None:
    from pyspark.sql import Row

    rows = [Row(topic="t", partition=0, offset=i, value=bytearray(b"m%d" % i)) for i in range(3)]
    assert judge(sent=messages(0, 1, 2), log=rows, polled=rows).ok
    assert judge(sent=messages(0, 1, 2), log=[Row(value="m0")]).counts == {"lost write": 2}


def test_numbers_are_values_too() -> None:
    assert judge(sent=["100"], log=[100]).ok


def test_times_come_from_ledgers_and_reports() -> None:
    verdict = judge(sent=ledger((1, 0, 0)))
    assert (verdict.history.sends[0].began, verdict.history.sends[0].ended) == (pytest.approx(100.995), 101)
    assert judge(sent=[message(0, timestamp=(1, 2500))]).history.sends[0].began == 2.5
    assert judge(sent=[message(0, timestamp=(0, 0))]).history.sends[0].began is None
    row = SimpleNamespace(value="m", timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    assert judge(sent=[row]).history.sends[0].began == row.timestamp.timestamp()


def test_an_offset_below_zero_is_none() -> None:
    assert judge(sent=ledger((1, 0, -1)), log=[message(0, "m1")]).history.sends[0].offset is None


def test_a_topic_is_taken_from_whoever_names_one() -> None:
    assert judge(sent=["m0"], log=messages(0)).history.topics == ("t",)
    assert judge(sent=["a"], log=["a"], topic="mine").history.topics == ("mine",)
    with pytest.raises(ValueError, match="which topic they belong to: t or u"):
        judge(sent=["m0"], log=[message(0), message(0, topic="u")])


def test_one_value_for_two_records_is_an_error() -> None:
    with pytest.raises(ValueError, match="'m0' was sent to t twice"):
        judge(sent=[message(0), message(1, "m0")])


def test_tombstones_are_neither_lost_nor_doubled() -> None:
    empty = [SimpleNamespace(topic="t", partition=0, offset=i, value=None) for i in (0, 1)]
    assert judge(sent=empty, log=empty, polled=empty).ok
    assert judge(sent=empty, log=[]).ok


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(KeyError, match="lost write, aborted read"):
        judge()["lost"]


# -- words


def test_the_text_explains_each_kind_and_shows_the_first_records() -> None:
    text = repr(judge(sent=[f"m{n}" for n in range(1005)], log=["m0"]))
    assert text.splitlines() == [
        "the topic: 1,005 acknowledged, 1 in the log",
        f"1,004 lost writes. {TERMS['lost write']}",
        *[f"   m{n}: sent by producer, acknowledged in the topic" for n in (1, 2, 3)],
        "   … and 1,001 more",
    ]


def test_every_kind_is_explained() -> None:
    assert tuple(TERMS) == get_args(Kind)


def test_the_example_in_the_docstring() -> None:
    assert doctest.testmod(judgement, extraglobs={"judge": history.judge}).failed == 0


# -- histories by chance


def chance_history(
    seed: int, partitions: int = 3, producers: int = 2, consumers: int = 2, count: int = 60
) -> tuple[dict[str, list[Message]], list[Message], dict[str, list[list[Message]]]]:
    """Producers that send in turns, consumers that poll one after the other: nothing is wrong."""
    random_ = random.Random(seed)
    ends = [0] * partitions
    log: list[Message] = []
    sends: dict[str, list[Message]] = {f"p{n}": [] for n in range(producers)}
    for n in range(count):
        partition = random_.randrange(partitions)
        ends[partition] += random_.choice((1, 1, 1, 2))  # a marker between them, sometimes
        record = message(ends[partition], f"v{n}", partition)
        log.append(record)
        sends[random_.choice(list(sends))].append(record)
    random_.shuffle(log)
    log.sort(key=lambda record: record.offset())
    polls: dict[str, list[list[Message]]] = {}
    for n in range(consumers):
        own = [record for record in log if record.partition() % consumers == n]
        batches = []
        while own:
            size = random_.randint(1, 7)
            batches.append(own[:size])
            own = own[size:]
        polls[f"c{n}"] = batches
    return sends, log, polls


def spoil(
    kind: str, seed: int, sends: dict[str, list[Message]], log: list[Message], polls: dict[str, list[list[Message]]]
) -> None:
    """Make one thing wrong in a right history."""
    random_ = random.Random(seed)
    victim = random_.choice(log)
    reader = next(who for who, batches in polls.items() if any(victim in batch for batch in batches))
    flat = [record for batch in polls[reader] for record in batch]
    own = [record for record in flat if record.partition() == victim.partition()]
    if kind == "lost write":
        log.remove(victim)
        polls[reader] = [[record for record in batch if record is not victim] for batch in polls[reader]]
    elif kind == "duplicate":
        log.append(message(1000, victim.value().decode(), victim.partition()))
    elif kind == "inconsistent offset":
        log[log.index(victim)] = message(victim.offset(), "another", victim.partition())
        log.append(message(1000, victim.value().decode(), victim.partition()))
    elif kind == "non-monotonic poll":
        polls[reader] = [*polls[reader], [own[0]]]
    elif kind == "poll skip":
        polls[reader] = [
            [record for record in batch if record is own[0] or record is own[-1] or record not in own]
            for batch in polls[reader]
        ]


@pytest.mark.parametrize("seed", range(40))
def test_right_histories_by_chance_have_no_anomaly(seed: int) -> None:
    sends, log, polls = chance_history(seed)
    verdict = judge(sent=sends, log=log, polled=polls)
    assert verdict.counts == {}, verdict
    assert judge(sent=sends, polled=polls).counts == {}


@pytest.mark.parametrize("kind", ["lost write", "duplicate", "inconsistent offset", "non-monotonic poll", "poll skip"])
@pytest.mark.parametrize("seed", range(10))
def test_what_is_spoilt_in_a_history_by_chance_is_found(kind: Kind, seed: int) -> None:
    sends, log, polls = chance_history(seed)
    spoil(kind, seed, sends, log, polls)
    assert kind in judge(sent=sends, log=log, polled=polls).counts


def test_events_are_compared_by_identity() -> None:
    records = [Record("t", 0, 1, "a"), Send("t", 0, 1, "a", "p", "acknowledged", None, None), Poll("t", 0, 1, "a", "c", 0)]
    assert len({*records, Record("t", 0, 1, "a")}) == 4
