"""Chapter 01: seven messages, order, the only broker killed, a topic's files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from confluent_kafka import Message

from kafkalab.checks.common import counted
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight
from kafkalab.cluster import ClusterView, Fault
from kafkalab.errors import WaitTimeout

__all__ = ["LABS"]

_SEVEN = (*(f"This is message {n}" for n in (1, 2, 3)), *(f"Message {n}" for n in (4, 5, 6, 7)))

# What customers did, in the order in which it happened.
_STEPS = (
    ("ann", "ann opens a cart"),
    ("bob", "bob opens a cart"),
    ("ann", "ann takes a book"),
    ("cleo", "cleo opens a cart"),
    ("bob", "bob takes a lamp"),
    ("ann", "ann pays"),
    ("cleo", "cleo takes a chair"),
    ("bob", "bob leaves"),
    ("cleo", "cleo pays"),
)

_READINGS = tuple(f"reading {n}" for n in range(10))
_SEGMENT_BYTES = "1048576"
_SOUGHT_OFFSET = 5


# -- what several labs ask ------------------------------------------------------------------------------------------


def _view(sight: Sight) -> ClusterView:
    try:
        return sight.view()
    except WaitTimeout:
        raise Unmet("No broker answers: the only one is down. Bring it back first.") from None


def _topic(sight: Sight, name: str, partitions: int) -> None:
    """A topic that must exist with so many partitions, each with one replica."""
    topics = _view(sight).topics
    if name not in topics:
        raise Unmet(f"There is no topic {name!r} yet. The cluster's topics: {', '.join(topics) or 'none'}.")
    found = topics[name]
    if len(found) != partitions:
        raise Unmet(
            f"{name} has {counted(len(found), 'partition')}, not {partitions}. (Partitions can be added to a topic, but not "
            "taken away: delete it and make it anew, if need be.)"
        )
    if any(len(p.replicas) != 1 for p in found):
        raise Unmet(f"{name} has {len(found[0].replicas)} replicas of each partition, not one.")


def _has_partitions(name: str, partitions: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        _topic(sight, name, partitions)

    return probe


def _records(sight: Sight, name: str) -> list[Message]:
    if name not in _view(sight).topics:
        raise Unmet(f"There is no topic {name!r} yet.")
    return sight.records(name)


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def _texts(records: list[Message]) -> list[str]:
    return [_text(m.value()) for m in records]


def _each_once(values: list[str], wanted: tuple[str, ...]) -> None:
    """These values and no others, each once, in any order."""
    count = Counter(values)
    if missing := [v for v in wanted if not count[v]]:
        raise Unmet(f"{counted(len(missing), 'message')} of {len(wanted)} missing, for example {missing[0]!r}.")
    if twice := [v for v in wanted if count[v] > 1]:
        raise Unmet(
            f"{twice[0]!r} is there {count[twice[0]]} times. Was a cell run twice? What is in a log stays there: delete "
            "the topic and make it anew."
        )
    if other := [v for v in values if v not in wanted]:
        raise Unmet(f"There is also a message {other[0]!r}, which was not asked for.")


def _holds(name: str, wanted: tuple[str, ...]) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        _each_once(_texts(_records(sight, name)), wanted)

    return probe


# -- 01_my_topic ----------------------------------------------------------------------------------------------------


def _is_scattered(sight: Sight) -> None:
    records = _records(sight, "my-topic")
    if not records:
        raise Unmet("my-topic is empty.")
    if len({m.partition() for m in records}) == 1:
        raise Unmet(
            "They all stand in one partition: without a key a producer stays with one for a while. What would make "
            "it choose anew for each?"
        )


def _group_has_read(sight: Sight) -> None:
    records = _records(sight, "my-topic")
    if not records:
        raise Unmet("my-topic is empty: there was nothing to read.")
    lag = {partition: n for (topic, partition), n in sight.committed("my-readers").items() if topic == "my-topic"}
    if not lag:
        raise Unmet(
            "Kafka knows no position of a group my-readers in my-topic. Had your consumer that group id, and did it "
            "commit?"
        )
    left = sum(lag.get(m.partition(), 1) > 0 for m in records)
    if left:
        raise Unmet("There is more in my-topic than my-readers has read. Did it read all seven before it committed?")


def _places_are_right(sight: Sight) -> None:
    given = sight.answers.get("where")
    if not given:
        raise Unmet("Give check() the place of each message, as where={message: (partition, offset)}.")
    if not isinstance(given, Mapping):
        raise Unmet(
            "where is a dictionary: the message's text as the key, (partition, offset) as the value; this is a "
            f"{type(given).__name__}."
        )
    said = {_text(k) if isinstance(k, bytes) else k: tuple(v) if isinstance(v, list | tuple) else v for k, v in given.items()}
    true = {_text(m.value()): (m.partition(), m.offset()) for m in _records(sight, "my-topic")}
    if missing := [v for v in _SEVEN if v not in said]:
        raise Unmet(f"The place of {missing[0]!r} is not among your answers.")
    wrong = [v for v in _SEVEN if v in true and said[v] != true[v]]
    if wrong:
        raise Unmet(
            f"{counted(len(wrong), 'message')} of them cannot be found there, for example {wrong[0]!r} at "
            f"{said[wrong[0]]}."
        )


# -- 01_order -------------------------------------------------------------------------------------------------------


def _in_order(name: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        records = _records(sight, name)
        _each_once(_texts(records), _SEVEN)
        if len({m.partition() for m in records}) > 1:
            raise Unmet("They are spread over several partitions, so nobody can tell their order.")
        if _texts(records) != list(_SEVEN):
            raise Unmet(f"They stand in another order: {_texts(records)[0]!r} comes first.")

    return probe


def _one_key(sight: Sight) -> None:
    records = _records(sight, "keyed")
    _each_once(_texts(records), _SEVEN)
    keys = {m.key() for m in records}
    if None in keys:
        raise Unmet(
            "Some have no key. They may stand together now, by luck or because you named a partition; what would "
            "bring the next one there, too?"
        )
    if len(keys) > 1:
        raise Unmet(f"They have {len(keys)} different keys. What belongs together needs the same one.")


def _steps_have_keys(sight: Sight) -> None:
    records = _records(sight, "carts")
    _each_once(_texts(records), tuple(step for _, step in _STEPS))
    customer = {step: name for name, step in _STEPS}
    for m in records:
        if m.key() is None:
            raise Unmet(f"{_text(m.value())!r} has no key.")
        if _text(m.key()) != customer[_text(m.value())]:
            raise Unmet(
                f"{_text(m.value())!r} has the key {_text(m.key())!r}. Which records have to stay in order with this "
                "one, and only those?"
            )


def _steps_in_order(sight: Sight) -> None:
    records = _records(sight, "carts")
    _each_once(_texts(records), tuple(step for _, step in _STEPS))
    for name in dict.fromkeys(name for name, _ in _STEPS):
        own = [m for m in records if _text(m.value()).startswith(f"{name} ")]
        if len({m.partition() for m in own}) > 1:
            raise Unmet(f"What {name} did is spread over several partitions.")
        if _texts(own) != [step for who, step in _STEPS if who == name]:
            raise Unmet(f"What {name} did stands in another order: {_texts(own)[0]!r} comes first.")


def _steps_are_spread(sight: Sight) -> None:
    records = _records(sight, "carts")
    if len({m.partition() for m in records}) < 2:
        raise Unmet("All of carts stands in one partition at most: one customer's rush would hold up all the others.")


# -- 01_one_broker --------------------------------------------------------------------------------------------------


def _outage(sight: Sight) -> tuple[Fault, Fault]:
    """The last time that broker 0 was killed, and its restart after that."""
    faults = sight.cluster.faults
    killed = [i for i, f in enumerate(faults) if f.verb == "kill"]
    if not killed:
        if any(f.verb == "stop" for f in faults):
            raise Unmet("The broker was shut down in order. A crash is another thing: which verb of the cluster is SIGKILL?")
        if any(f.verb == "pause" for f in faults):
            raise Unmet("The broker was paused: its process was still there. Which verb of the cluster is SIGKILL?")
        raise Unmet("The broker was not killed yet.")
    back = [f for f in faults[killed[-1] :] if f.verb == "restart"]
    if not back:
        raise Unmet("The broker was killed, and did not come back.")
    return faults[killed[-1]], back[0]


def _outage_is_over(sight: Sight) -> None:
    _outage(sight)
    state = _view(sight).brokers[0].state
    if state != "up":
        raise Unmet(f"Broker 0 came back, but now it is {state}.")


def _made(message: Message) -> float:
    """When the producer was given the record, in seconds since the epoch."""
    _, milliseconds = message.timestamp()
    return milliseconds / 1000


_CLOCK = 0.05  # seconds: a record's time is in whole milliseconds, and a fault is noted just after it happened


def _sent_before(sight: Sight) -> None:
    values = _texts(_records(sight, "atu"))
    wanted = ["one", "two", "three"]
    if missing := [v for v in wanted if v not in values]:
        raise Unmet(f"{missing[0]!r} is not in atu.")
    if [v for v in values if v in wanted] != wanted:
        raise Unmet("They are not in the order one, two, three, each once.")
    killed, _ = _outage(sight)
    late = [m for m in _records(sight, "atu") if _text(m.value()) in wanted and _made(m) > killed.at + _CLOCK]
    if late:
        raise Unmet(f"{_text(late[0].value())!r} was sent only after the broker had been killed.")


def _given_up(sight: Sight) -> None:
    _outage(sight)
    if "lost" in _texts(_records(sight, "atu")):
        raise Unmet("'lost' is in atu: the broker was there, or was back, before the producer gave it up.")
    error = sight.answers.get("error")
    if error is None:
        raise Unmet("Give check() the name of the error in the delivery report of 'lost', as error=…")
    if str(error) != "_MSG_TIMED_OUT":
        raise Unmet(
            f"The delivery report of a record that waited too long has another error than {error!r}. Its name() is "
            "asked for."
        )


def _queued(sight: Sight) -> None:
    killed, back = _outage(sight)
    found = [m for m in _records(sight, "atu") if _text(m.value()) == "waiting"]
    if not found:
        raise Unmet("'waiting' is not in atu. Who has it: did its producer give it up, or did nobody wait for its delivery?")
    if _made(found[0]) < killed.at - _CLOCK:
        raise Unmet("'waiting' was sent while the broker still ran.")
    if _made(found[0]) > back.at + _CLOCK:
        raise Unmet(
            "'waiting' was handed to the producer only after the broker was back. It is to wait in the producer "
            "while there is no broker."
        )


def _works_again(sight: Sight) -> None:
    _, back = _outage(sight)
    found = [m for m in _records(sight, "atu") if _text(m.value()) == "four"]
    if not found:
        raise Unmet("'four' is not in atu.")
    if _made(found[-1]) < back.at - _CLOCK:
        raise Unmet("'four' was sent before the broker was back.")


# -- 01_log_files ---------------------------------------------------------------------------------------------------


def _small_segments(sight: Sight) -> None:
    _topic(sight, "readings", 1)
    size = sight.topic_config("readings")["segment.bytes"]
    if size != _SEGMENT_BYTES:
        raise Unmet(
            f"A segment of readings may have {int(size):,} bytes. It is a setting of the topic; the least that Kafka "
            "takes is 1 MiB."
        )


def _ten_readings(sight: Sight) -> None:
    values = [value.split(":")[0] for value in _texts(_records(sight, "readings"))]
    _each_once(values, _READINGS)


def _log_files(sight: Sight) -> dict[int, str]:
    """Names of the .log files of readings by the offset with which they begin."""
    _records(sight, "readings")
    return {int(name.removesuffix(".log")): name for name in sight.log_files("readings")[0]}


def _files_are_named(sight: Sight) -> None:
    given = sight.answers.get("files")
    if not given:
        raise Unmet("Give check() the names of the .log files of readings, as files=[…].")
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):  # type: ignore[union-attr]
        raise Unmet("files is a list of names, each a text.")
    true = sorted(_log_files(sight).values())
    said = sorted(given)  # type: ignore[call-overload]
    if said == true:
        return
    if other := [name for name in said if not name.endswith(".log")]:
        raise Unmet(f"{other[0]!r} is not a file with records. Their names end in .log, without a folder.")
    if any(len(name) != len(true[0]) for name in said):
        raise Unmet("A name is the first offset, padded with zeros to 20 digits, and .log; not all of yours are.")
    raise Unmet(
        f"You name {counted(len(said), 'file')}; there are {len(true)}, or others. Was the folder copied after "
        "everything had been sent?"
    )


def _holder_is_right(sight: Sight) -> None:
    given = sight.answers.get("holder")
    if given is None:
        raise Unmet(f"Give check() the name of the file in which offset {_SOUGHT_OFFSET} stands, as holder=…")
    files = _log_files(sight)
    holder = files[max(offset for offset in files if offset <= _SOUGHT_OFFSET)]
    if given not in files.values():
        raise Unmet(f"{given!r} is not one of the .log files.")
    if given != holder:
        raise Unmet(f"Offset {_SOUGHT_OFFSET} is not in {given}. A file is named after its *first* record.")


def _dump_is_complete(sight: Sight) -> None:
    records = _records(sight, "readings")
    given = sight.answers.get("dumped")
    if given is None:
        raise Unmet("Give check() how many records kafka-dump-log.sh shows in all files together, as dumped=…")
    if given != len(records):
        raise Unmet(
            f"It is not {given}. Are all files counted, and each record once? With --print-data-log a record's line "
            "begins with |."
        )


LABS = (
    Lab(
        "01_my_topic",
        "Send seven messages to my-topic and find each of them",
        (
            Requirement("my-topic has 13 partitions and one replica of each", _has_partitions("my-topic", 13)),
            Requirement("It holds the seven messages, each once", _holds("my-topic", _SEVEN)),
            Requirement("They stand in several partitions", _is_scattered),
            Requirement("The group my-readers has read them all, and Kafka knows it", _group_has_read),
            Requirement("You can say where each message stands", _places_are_right),
        ),
        (
            "kafka-topics.sh has an option for each of the topic's properties. The producer of confluent-kafka has a setting "
            "that says for how many milliseconds records without a key stay with one partition; the chapter used it.",
            'With "sticky.partitioning.linger.ms": 0 and a flush() after each produce(), every message goes to a '
            'partition of its own choice.',
            "A consumer with group_id, auto_offset_reset='earliest' and subscribe([…]) gets all messages; consume(7, "
            "timeout=30) "
            "returns them; commit(asynchronous=False) tells Kafka.",
            "Each record that a consumer returns has value(), partition() and offset().",
        ),
    ),
    Lab(
        "01_order",
        "Keep the order of what belongs together",
        (
            Requirement("ordered has one partition", _has_partitions("ordered", 1)),
            Requirement("ordered holds the seven messages in the order sent", _in_order("ordered")),
            Requirement("keyed has 13 partitions", _has_partitions("keyed", 13)),
            Requirement("In keyed the seven messages have one key", _one_key),
            Requirement("keyed holds them in the order sent", _in_order("keyed")),
            Requirement("carts has 13 partitions", _has_partitions("carts", 13)),
            Requirement("In carts each step has a key that keeps together what must stay in order, no more", _steps_have_keys),
            Requirement("Each customer's steps are in order", _steps_in_order),
            Requirement("carts uses several partitions", _steps_are_spread),
        ),
        (
            "Order exists within a partition. So the question is always: what brings these records into the same one?",
            "produce(topic, key=…, value=…): the partition is computed from the key.",
            "In carts the customer is what the steps have in common: use the name as the key.",
        ),
    ),
    Lab(
        "01_one_broker",
        "Lose the only broker",
        (
            Requirement("atu has one partition and one replica", _has_partitions("atu", 1)),
            Requirement("Broker 0 was killed and runs again", _outage_is_over),
            Requirement("one, two and three were sent before, and are still there in order", _sent_before),
            Requirement("lost was given up, and you know with which error", _given_up),
            Requirement("waiting was sent while no broker ran, and arrived", _queued),
            Requirement("four was sent after the restart", _works_again),
        ),
        (
            "The order of things: send, kill, hand over two records to the two producers, wait for one to give up, "
            "restart, wait for the other, send.",
            "produce() returns at once. What becomes of the record is told to report() while you call flush() or poll().",
            "impatient.flush() takes as long as its delivery timeout: call it before the restart. patient.flush() "
            "returns once its "
            "record is delivered: call it after the restart.",
            "The error's name is what error.name() returns, with its leading underscore.",
        ),
    ),
    Lab(
        "01_log_files",
        "Read a topic's files",
        (
            Requirement("readings has one partition, and segments of 1 MiB", _small_segments),
            Requirement("It holds ten records", _ten_readings),
            Requirement("You can name its .log files", _files_are_named),
            Requirement(f"You know in which one offset {_SOUGHT_OFFSET} stands", _holder_is_right),
            Requirement("You counted all records with kafka-dump-log.sh", _dump_is_complete),
        ),
        (
            "kafka-topics.sh --create takes settings of the topic as --config name=value; the chapter's topic rolling had one.",
            "The data folder has one folder per partition: the topic's name, a hyphen, the partition's number.",
            "kafka-dump-log.sh --files a.log,b.log --print-data-log prints a line that begins with | for each record. "
            "In a cell, "
            "`lines = !cd {folder} && kafka-dump-log.sh …` gives the lines as a list.",
        ),
    ),
)
