"""Chapter 03, second half: batches and codecs, interceptors, the producer's figures."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from confluent_kafka import Message

from kafkalab.checks.common import existing
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight

__all__ = ["LABS"]


def _answer(sight: Sight, name: str, what: str) -> object:
    given = sight.answers.get(name)
    if given is None:
        raise Unmet(f"Give check() {name}=…: {what}.")
    return given


# -- batches --------------------------------------------------------------------------------------------------------

_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_RUNGS = ("off", "16 KiB", "16 KiB, linger 10", "64 KiB, linger 50")
_STEADY = tuple(f"steady-{number}" for number in range(1, 5))
_FLOOD = tuple(f"flood-{number}" for number in range(1, 5))
_MANY = 100_000
# librdkafka counts a batch's bytes a little differently from what stands in the log at last.
_HEADROOM = 1.1


@dataclass(frozen=True)
class _Batch:
    """A batch as it stands in a segment: its records, its bytes, its codec."""

    count: int
    size: int
    codec: str


# https://kafka.apache.org/documentation/#recordbatch, up to the number of records
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH_COUNTS = 12


def _batches_in(segment: bytes) -> Iterator[_Batch]:
    position = 0
    while position + _HEADER.size <= len(segment):
        _, length, _, _, _, attributes, *_, count = _HEADER.unpack_from(segment, position)
        if length <= 0:
            return  # the rest of the file is not written yet
        size = length + _BEFORE_LENGTH_COUNTS
        yield _Batch(count, size, _CODECS[attributes & 7])
        position += size


def _on_disk(sight: Sight, broker: int, *topics: str) -> dict[str, list[_Batch]]:
    """The batches of these topics, as they are on the disk of a broker, which may be down."""
    copy = sight.cluster.copy_log_dir(broker)
    try:
        return {topic: [b for segment in _segments(copy, topic) for b in _batches_in(segment.read_bytes())] for topic in topics}
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def _segments(folder: Path, topic: str) -> list[Path]:
    partitions = (p for p in folder.glob(f"{topic}-*") if p.name.removeprefix(f"{topic}-").isdigit())
    return sorted(segment for partition in partitions for segment in partition.glob("*.log"))


def _batches(sight: Sight, *topics: str) -> dict[str, list[_Batch]]:
    """The batches of these topics on broker 0, none of which may be empty."""
    found = _on_disk(sight, 0, *topics)
    for topic, batches in found.items():
        if not batches:
            raise Unmet(f"{topic} is empty. Was everything sent, with the settings of all four rungs?")
    return found


def _mean(batches: Sequence[_Batch]) -> float:
    return sum(b.count for b in batches) / len(batches)


def _off_is_off(sight: Sight) -> None:
    for topic, batches in _batches(sight, "steady-1", "flood-1").items():
        if (most := max(b.count for b in batches)) > 1:
            raise Unmet(
                f"{topic} has a batch of {most} records, though batching is off there. Which of librdkafka's settings limits "
                "the number of records in a batch?"
            )


def _steady_grows(sight: Sight) -> None:
    means = [_mean(batches) for batches in _batches(sight, *_STEADY).values()]
    for (rung, mean), (next_rung, next_mean) in pairwise(zip(_RUNGS, means, strict=True)):
        # A rung that waits is far above one that does not: what is only a little more is chance.
        if next_mean < (1 if rung == "off" else 1.3) * mean:
            raise Unmet(
                f"Under the steady load {next_rung!r} has batches of {next_mean:.1f} records, and {rung!r} of {mean:.1f}. "
                "How long does each wait for company? (The default is not 0.)"
            )


def _flood_keeps_within(sight: Sight) -> None:
    largest = {topic: max(b.size for b in batches) for topic, batches in _batches(sight, *_FLOOD).items()}
    for topic, limit in (("flood-2", 16384), ("flood-3", 16384), ("flood-4", 65536)):
        if largest[topic] > _HEADROOM * limit:
            raise Unmet(f"{topic} has a batch of {largest[topic]} bytes. What limits a batch to {limit} bytes?")
    if largest["flood-4"] <= _HEADROOM * 16384:
        raise Unmet(
            f"No batch of flood-4 has more than {largest['flood-4']} bytes, and there were more records waiting. How many "
            "bytes may a batch of the last rung have?"
        )


def _batches_were_read(sight: Sight) -> None:
    given = _answer(sight, "batches", "what your function found in the lines of kafka-dump-log.sh")
    if not isinstance(given, Mapping):
        raise Unmet("batches should be a dictionary: {topic: [(count, size, codec), …]}.")
    for topic, there in _batches(sight, *_STEADY, *_FLOOD).items():
        rows = given.get(topic)
        if not isinstance(rows, Sequence) or not all(isinstance(row, Sequence) and len(row) == 3 for row in rows):
            raise Unmet(f"batches should have a list of (count, size, codec) for {topic}.")
        if len(rows) != len(there):
            raise Unmet(f"You found {len(rows)} batches in {topic}. There are {len(there)}. Did you read before you sent anew?")
        for number, (row, batch) in enumerate(zip(rows, there, strict=True), 1):
            if tuple(row) != (batch.count, batch.size, batch.codec):
                raise Unmet(
                    f"Batch {number} of {topic} is {tuple(row)!r} in your answer. That is not what the log has: two numbers, "
                    "of records and of bytes, and the codec as a word?"
                )


def _codecs_are_used(sight: Sight) -> None:
    found = _batches(sight, *[f"{kind}-{codec}" for kind in ("prices", "noise") for codec in _CODECS])
    for codec in _CODECS:
        if others := {b.codec for b in found[f"prices-{codec}"]} - {codec}:
            raise Unmet(f"prices-{codec} has batches with the codec {min(others)!r}. Is it this topic's own setting?")
    size = {topic: sum(b.size for b in batches) / sum(b.count for b in batches) for topic, batches in found.items()}
    for codec in _CODECS[1:]:
        if size[f"prices-{codec}"] > 0.75 * size["prices-none"]:
            raise Unmet(f"{codec} takes almost nothing off the prices. Were they sent in batches of many?")
        if size[f"noise-{codec}"] < 0.75 * size["noise-none"]:
            raise Unmet(f"{codec} makes the noise smaller. Was it noise that you sent to noise-{codec}?")


def _fast_has_all(sight: Sight) -> None:
    existing(sight, "fast")
    records = sum(sight.end_offsets("fast").values())
    if records < _MANY:
        raise Unmet(
            f"fast has {records} records of {_MANY}. What becomes of one that finds the queue full, and of those that still "
            "wait when your function returns?"
        )
    if records > _MANY:
        raise Unmet(f"fast has {records} records instead of {_MANY}. Which are sent again when the queue is full?")


# -- interceptors ---------------------------------------------------------------------------------------------------


def _intercepted(sight: Sight) -> list[Message]:
    existing(sight, "intercepted")
    records = sight.records("intercepted")
    if not records:
        raise Unmet("intercepted is empty. Did on_send return a record?")
    return records


def _numbers(message: Message) -> list[bytes | None]:
    return [value for name, value in message.headers() or [] if name == "number"]


def _each_is_numbered(sight: Sight) -> None:
    for message in _intercepted(sight):
        numbers = _numbers(message)
        if not numbers:
            raise Unmet("There is a record without a header called number. on_send returns the record that is sent.")
        if len(numbers) > 1:
            raise Unmet(f"There is a record with {len(numbers)} numbers. How often does it pass your interceptor?")
        if not (numbers[0] or b"").isdigit():
            raise Unmet(f"There is a number that reads {numbers[0]!r}. It should be digits, as bytes.")


def _each_number_once(sight: Sight) -> None:
    _each_is_numbered(sight)
    numbers = sorted(int(_numbers(message)[0] or b"") for message in _intercepted(sight))
    if twice := next((a for a, b in pairwise(numbers) if a == b), None):
        raise Unmet(f"Two records have the number {twice}. What may happen between adding one and reading the sum?")
    if numbers != list(range(1, len(numbers) + 1)):
        raise Unmet(f"The numbers of {len(numbers)} records go from {numbers[0]} to {numbers[-1]}. They should begin with 1.")


def _both_counters(sight: Sight) -> None:
    interceptor = _answer(sight, "interceptor", "the interceptor that your records passed")
    records = len(_intercepted(sight))
    for name, what in (("sent", "on_send"), ("acknowledged", "on_acknowledgement")):
        counted = getattr(interceptor, name, None)
        if counted is None:
            raise Unmet(f"Your interceptor has no attribute {name}.")
        if counted != records:
            raise Unmet(f"{name} is {counted}, and {records} records are in the topic. Does each call of {what} count once?")


# -- figures --------------------------------------------------------------------------------------------------------

_WATCHED = "stock-prices"
_DEFAULT = "by-default"


def _topic_overrides(sight: Sight) -> None:
    for topic in (_DEFAULT, _WATCHED):
        existing(sight, topic)
    default, own = (sight.topic_config(topic)["min.insync.replicas"] for topic in (_DEFAULT, _WATCHED))
    if default != "3":
        raise Unmet(f"min.insync.replicas of {_DEFAULT} is {default}. Leave the cluster's default at 3, and change one topic.")
    if own != "2":
        raise Unmet(f"min.insync.replicas of {_WATCHED} is {own}. kafka-configs.sh --alter changes a topic, too.")


def _broker_was_away(sight: Sight) -> None:
    if not any(fault.broker == 2 and fault.verb in ("kill", "stop") for fault in sight.cluster.faults):
        raise Unmet("Broker 2 was not shut down yet.")
    if (state := sight.view().brokers[2].state) != "up":
        raise Unmet(f"Broker 2 is {state}. It should be back.")


def _producer_saw_it(sight: Sight) -> None:
    seen = _answer(sight, "seen_down", "what in_sync(watched, 'stock-prices') returned while broker 2 was down")
    if not isinstance(seen, Mapping) or set(seen) != {0, 1, 2}:
        raise Unmet("seen_down should have the partitions 0, 1 and 2.")
    for partition, replicas in seen.items():
        if 2 in replicas:
            raise Unmet(f"In seen_down, partition {partition} has broker 2 in sync. Wait until the producer knows, too.")
        if sorted(replicas) != [0, 1]:
            raise Unmet(f"In seen_down, partition {partition} has {list(replicas)}. Which replicas were in sync?")


def _lag_grew_and_went(sight: Sight) -> None:
    lags = _answer(sight, "lags", "three numbers")
    if not isinstance(lags, Sequence) or len(lags) != 3 or not all(isinstance(lag, int) for lag in lags):
        raise Unmet("lags should be a list of three numbers: twice while broker 2 is down, and at the end.")
    first, second, last = lags
    if first <= 0:
        raise Unmet(f"The first of your lags is {first}. Was broker 2 down, and were records sent meanwhile?")
    if second < first + 1000:
        raise Unmet(f"The second lag is {second}, the first {first}. Another 2000 records should lie between them.")
    if last != 0:
        raise Unmet(f"The last lag is {last}. Were all ISRs complete, and had the senders stopped?")


def _copy_is_whole(sight: Sight) -> None:
    existing(sight, _WATCHED)
    for p in sight.partitions(_WATCHED):
        if missing := sorted(set(p.replicas) - set(p.isr)):
            raise Unmet(f"The ISR of partition {p.partition} lacks broker {missing[0]}. Was there time for it to catch up?")
    ends = sum(sight.end_offsets(_WATCHED).values())
    there = sum(b.count for b in _on_disk(sight, 2, _WATCHED)[_WATCHED])
    if not ends:
        raise Unmet(f"{_WATCHED} is empty. Did the senders run?")
    if there != ends:
        raise Unmet(f"Broker 2 has {there} of {ends} records. Do the senders still send?")


def _figures_were_told(sight: Sight) -> None:
    history = getattr(_answer(sight, "reporter", "your MetricsReporter"), "history", None)
    if history is None:
        raise Unmet("reporter should be the MetricsReporter of your producer.")
    if len(history) < 5:
        raise Unmet(f"The reporter was told {len(history)} times. Which two settings does a producer need to tell its figures?")
    # Those of the senders have a key.
    records = sum(message.key() is not None for message in sight.records(_WATCHED))
    if history[-1].records < records:
        raise Unmet(
            f"The last figures tell of {history[-1].records} records, and the senders' {records} are in {_WATCHED}. Who polls "
            "when the senders have stopped?"
        )


def _lab(lab_id: str, title: str, requirements: Mapping[str, Callable[[Sight], None]], *hints: str) -> Lab:
    return Lab(lab_id, title, tuple(Requirement(says, probe) for says, probe in requirements.items()), hints)


LABS: tuple[Lab, ...] = (
    _lab(
        "03_batching",
        "Four rungs, five codecs and a fast producer",
        {
            "with batching off, each batch holds one record": _off_is_off,
            "under a steady load, batches grow from rung to rung": _steady_grows,
            "in a flood, batches are as large as they may be": _flood_keeps_within,
            "you read each batch from the log": _batches_were_read,
            "codecs make prices smaller, and noise not": _codecs_are_used,
            "the fast way sent each of 100,000 prices once": _fast_has_all,
        },
        "The settings are batch.num.messages, batch.size and linger.ms: the first counts records, the second bytes. linger.ms "
        "is 5 unless you say otherwise.",
        "In kafka-dump-log's lines, re.search(r' count: (\\d+) .* size: (\\d+) .* compresscodec: (\\w+)', line) finds all "
        "three; a line that begins with 'Dumping ' names the file of those that follow.",
        "measure({**cluster.client_config(), 'acks': 'all', **RUNGS[…], 'compression.type': codec}, topic, values, every=20).",
        "A BufferError means that this one record was not taken: poll until there is room (len(producer) says how many wait), "
        "and produce it again. flush at the end.",
    ),
    _lab(
        "03_interceptors",
        "Every record passes",
        {
            "each record in intercepted has a number": _each_is_numbered,
            "the numbers are 1, 2, 3 …, each once": _each_number_once,
            "as many were counted on their way out and back": _both_counters,
        },
        "replace(record, headers=[*record.headers, (\"number\", b\"…\")]) makes a copy with one more header. str(7).encode() "
        "are the bytes of a number.",
        "self.sent += 1 reads, adds and writes: another thread may come between. A threading.Lock() around that, and around "
        "reading the new number.",
    ),
    _lab(
        "03_metrics",
        "What the producer counts while a broker is away",
        {
            "stock-prices needs two replicas in sync, whatever the default": _topic_overrides,
            "broker 2 was down and came back": _broker_was_away,
            "the producer knew which replicas were in sync": _producer_saw_it,
            "the lag of broker 2 grew, and went": _lag_grew_and_went,
            "broker 2 has everything again": _copy_is_whole,
            "the producer told its figures to the end": _figures_were_told,
        },
        "Producer({**cluster.client_config(…), \"stats_cb\": reporter, \"statistics.interval.ms\": 250}).",
        "kafka-configs.sh --bootstrap-server … --alter --entity-type topics --entity-name stock-prices --add-config "
        "min.insync.replicas=2",
        "producer.list_topics(topic, timeout=10).topics[topic].partitions is a dictionary; its values have .leader, .replicas "
        "and .isrs.",
        "lags.append(end_of_log(\"stock-prices\") - end_on_disk(2, \"stock-prices\")), each time after what the text says "
        "to wait for.",
    ),
)
