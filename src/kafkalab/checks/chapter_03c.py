"""Chapter 03, the ledger: what a dead leader costs with each acknowledgement, and what retries make of two dead brokers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight, text_of

if TYPE_CHECKING:
    from kafkalab.workers import LedgerProducer

__all__ = ["LABS"]

_DOWN = ("kill", "stop")


# -- what both labs ask ---------------------------------------------------------------------------------------------


def _answer(sight: Sight, name: str, what: str) -> Mapping:
    given = sight.answers.get(name)
    if not isinstance(given, Mapping) or not given:
        raise Unmet(f"Give check() {name}=…: {what}.")
    return given


def _ledger(sight: Sight, topic: str) -> LedgerProducer:
    ledgers = _answer(sight, "ledgers", "the producers with their ledgers, by topic")
    if topic not in ledgers:
        raise Unmet(f"ledgers has no {topic!r}.")
    return ledgers[topic]


def _all_up(sight: Sight) -> None:
    for broker in sight.cluster.describe(groups=False).brokers.values():
        if broker.state != "up":
            raise Unmet(f"Broker {broker.id} is {broker.state}. It should be back.")


def _verbs(sight: Sight, broker: int) -> list[str]:
    return [fault.verb for fault in sight.cluster.faults if fault.broker == broker]


# -- the ledger -----------------------------------------------------------------------------------------------------

_WAYS = ("acks-0", "acks-1", "acks-all", "idempotent")
_TOPICS = tuple(f"{story}-{way}" for story in ("plain", "worst") for way in _WAYS)


def _killed_twice(sight: Sight) -> None:
    kills = _verbs(sight, 0).count("kill")
    if kills < 2:
        raise Unmet(f"Broker 0, the leader, was killed {('not yet', 'once')[kills]}. It should be: once in each story.")
    _all_up(sight)


def _frozen_before_the_kill(sight: Sight) -> None:
    """Before the last kill of broker 0, both others are frozen, broker 1 first."""
    faults = [(fault.verb, fault.broker) for fault in sight.cluster.faults]
    if ("kill", 0) not in faults:
        raise Unmet("Broker 0 was not killed yet.")
    last_kill = len(faults) - 1 - faults[::-1].index(("kill", 0))
    frozen: list[int] = []
    for verb, broker in faults[:last_kill]:
        if verb == "pause":
            frozen.append(broker)
        elif broker in frozen:
            frozen.remove(broker)
    for broker in (1, 2):
        if broker not in frozen:
            raise Unmet(f"When broker 0 was killed for the last time, broker {broker} was not frozen. There is a verb: pause.")
    if frozen != [1, 2]:
        raise Unmet("Broker 2 was frozen before broker 1. Which of them should have more when the leader dies?")


def _rows(sight: Sight) -> dict[str, tuple[int, int]]:
    table = _answer(sight, "table", "{topic: (lost, doubled)}")
    for topic in _TOPICS:
        if topic not in table:
            raise Unmet(f"table has no {topic!r}.")
        if not isinstance(table[topic], Sequence) or len(table[topic]) != 2:
            raise Unmet(f"table[{topic!r}] should be two numbers: lost, doubled.")
    return {topic: tuple(table[topic]) for topic in _TOPICS}


def _counted_rightly(sight: Sight) -> None:
    rows = _rows(sight)
    for topic in _TOPICS:
        there = Counter(map(text_of, sight.records(topic)))
        told = {entry.value for entry in _ledger(sight, topic).entries}
        if len(told) < 100:
            raise Unmet(f"The ledger of {topic} has {len(told)} lines. Let it go on before and after the kill.")
        lost, doubled = len(told - there.keys()), sum(number > 1 for number in there.values())
        if rows[topic][0] != lost:
            raise Unmet(
                f"{topic}: {rows[topic][0]} lost is not what the ledger says. Lost is what was acknowledged and is not in the "
                "topic. Have the ledgers stopped?"
            )
        if rows[topic][1] != doubled:
            raise Unmet(f"{topic}: {rows[topic][1]} doubled is not what the topic says. Which values are in it more than once?")


def _only_all_lost_nothing(sight: Sight) -> None:
    rows = _rows(sight)
    for topic, (lost, _) in rows.items():
        if topic.endswith(("all", "idempotent")) and lost:
            raise Unmet(f"{topic} lost {lost}. Every replica in sync had what was acknowledged. Did the ledgers stop first?")
    for topic in ("worst-acks-0", "worst-acks-1"):
        if not rows[topic][0]:
            raise Unmet(
                f"{topic} lost nothing. Was anything acknowledged by the leader alone before it died, and were the others "
                "resumed only after that?"
            )


def _only_retries_doubled(sight: Sight) -> None:
    rows = _rows(sight)
    if not rows["worst-acks-all"][1]:
        raise Unmet(
            "Nothing is doubled in worst-acks-all. Was there a time when broker 2 still copied and broker 1 no more, so that "
            "records were kept but not acknowledged?"
        )
    for topic in ("plain-idempotent", "worst-idempotent"):
        if rows[topic][1]:
            raise Unmet(f"{topic} has {rows[topic][1]} doubled. Was its ledger started as it was given, with idempotence?")


# -- retries --------------------------------------------------------------------------------------------------------

_IN_FLIGHT = "max.in.flight.requests.per.connection"
_ASKED: Mapping[str, Mapping[str, object]] = {
    "three-tries": {_IN_FLIGHT: 1, "retries": 3},
    "patient": {_IN_FLIGHT: 1, "delivery.timeout.ms": 60_000},
    "idempotent": {_IN_FLIGHT: 1, "delivery.timeout.ms": 60_000, "enable.idempotence": True},
}


def _three_ways(sight: Sight) -> None:
    for topic, asked in _ASKED.items():
        given = _ledger(sight, topic).settings
        for name in (_IN_FLIGHT, "retries", "delivery.timeout.ms", "enable.idempotence"):
            if name in asked and name not in given:
                raise Unmet(f"{topic} was not given {name}.")
            if name in asked and str(given[name]).lower() != str(asked[name]).lower():
                raise Unmet(f"{topic} was given {name}={given[name]!r}. What does the text ask for?")
            if name not in asked and given.get(name):
                raise Unmet(f"{topic} was given {name}, too. Then you cannot tell which of its settings made the difference.")


def _two_were_down(sight: Sight) -> None:
    down: set[int] = set()
    most = 0
    for fault in sight.cluster.faults:
        if fault.verb in _DOWN:
            down.add(fault.broker)
        elif fault.verb == "restart":
            down.discard(fault.broker)
        most = max(most, len(down))
    if most < 2:
        raise Unmet(f"At most {('no broker was', 'one broker was')[most]} down at a time. The second death is the hard one.")
    _all_up(sight)


def _numbers(sight: Sight, topic: str) -> dict[bytes | None, list[int]]:
    """The numbers of a topic's records by key, in order of offset."""
    found: dict[bytes | None, list[int]] = defaultdict(list)
    for message in sight.records(topic):
        found[message.key()].append(int(text_of(message).rpartition(" ")[2]))
    return found


def _judge(found: Mapping[bytes | None, Sequence[int]], sent: int) -> tuple[int, int, int]:
    """How many are missing, doubled, and behind a later one of their key, as first written."""
    there = sum(len(set(numbers)) for numbers in found.values())
    written = sum(map(len, found.values()))
    firsts = [list(dict.fromkeys(numbers)) for numbers in found.values()]
    return sent - there, written - there, sum(a > b for first in firsts for a, b in pairwise(first))


def _judged_rightly(sight: Sight) -> None:
    judged = _answer(sight, "judged", "{topic: (missing, doubled, inverted)}")
    for topic in _ASKED:
        given = judged.get(topic)
        if not isinstance(given, Sequence) or len(given) != 3:
            raise Unmet(f"judged[{topic!r}] should be three numbers: missing, doubled, inverted.")
        clues = (
            "Missing is what was sent (ledger.sent) and is not in the topic at all.",
            "Doubled is how many records there are too many.",
            "Look at the first time that each number comes, key by key: how often is one smaller than the one before it?",
        )
        right = _judge(_numbers(sight, topic), _ledger(sight, topic).sent)
        for what, mine, yours, clue in zip(("missing", "doubled", "inverted"), right, given, clues, strict=True):
            if mine != yours:
                raise Unmet(f"{topic}: {yours} {what} is not what the topic says. {clue}")


def _three_tries_were_too_few(sight: Sight) -> None:
    ledger = _ledger(sight, "three-tries")
    if not ledger.failed:
        raise Unmet(
            "three-tries gave nothing up. Does it give up after three retries, and did two brokers stay down long enough?"
        )
    missing, _, _ = _judge(_numbers(sight, "three-tries"), ledger.sent)
    if not missing:
        raise Unmet("Nothing is missing in three-tries. Did it send while two brokers were down?")


def _sent_by(sight: Sight, topic: str) -> tuple[int, int, int]:
    ledger = _ledger(sight, topic)
    if not ledger.sent:
        raise Unmet(f"{topic} has sent nothing. Was it started, and stopped when the brokers were back?")
    missing, doubled, inverted = _judge(_numbers(sight, topic), ledger.sent)
    if missing:
        raise Unmet(f"{missing} of {topic} are missing. How long may it go on trying, and is that by time or by number?")
    return missing, doubled, inverted


def _patient_has_all(sight: Sight) -> None:
    _sent_by(sight, "patient")


def _idempotent_is_perfect(sight: Sight) -> None:
    _, doubled, inverted = _sent_by(sight, "idempotent")
    if doubled:
        raise Unmet(
            f"{doubled} of idempotent are there twice. Which setting lets the broker recognize a retry? And how many requests "
            "may be in flight?"
        )
    if inverted:
        raise Unmet("idempotent is out of order. Which setting lets the broker refuse what comes out of turn?")


LABS: tuple[Lab, ...] = (
    Lab(
        "03_ledger",
        "What a dead leader costs",
        (
            Requirement("the leader was killed in both stories, and came back", _killed_twice),
            Requirement("the second time, both followers were behind", _frozen_before_the_kill),
            Requirement("your table says what the ledgers and the topics say", _counted_rightly),
            Requirement("acknowledged by all, nothing is lost; by the leader alone, it may be", _only_all_lost_nothing),
            Requirement("a retry doubles, but not with idempotence", _only_retries_doubled),
        ),
        (
            "cluster.wait_for(lambda view: all(view.topics[name][0].leader not in (0, None) for name in topics), 'leaders') "
            "waits for new leaders; more(…) waits for the producers.",
            "In the second story: cluster.pause(1), more('worst-acks-1'), cluster.pause(2), more('worst-acks-1'), "
            "cluster.kill(0), then resume 2 and 1 without delay.",
            "Count the copies first: written.groupBy('topic', 'value').count(). Then join with acknowledged on topic and "
            "value, 'full', so that nothing falls out on either side.",
            "F.count_if(condition) counts the rows for which it holds; a side that has no partner is null.",
        ),
    ),
    Lab(
        "03_retries",
        "One broker dead, then two",
        (
            Requirement("three producers try again in three ways", _three_ways),
            Requirement("two brokers were down at the same time, and all are back", _two_were_down),
            Requirement("three retries were too few, and left gaps", _three_tries_were_too_few),
            Requirement("patient lost nothing", _patient_has_all),
            Requirement("idempotent lost nothing, wrote nothing twice, and kept the order of each key", _idempotent_is_perfect),
            Requirement("you found how many are missing, doubled, inverted", _judged_rightly),
        ),
        (
            "LedgerProducer takes librdkafka's settings as keywords, with underscores for dots: max_in_flight, retries, "
            "retry_backoff_ms, delivery_timeout_ms, enable_idempotence.",
            "A number of retries is used up while the brokers are away. Leave it out, and the time of delivery.timeout.ms "
            "counts alone.",
            "list(dict.fromkeys(numbers)) keeps the first of each; itertools.pairwise gives neighbours.",
        ),
    ),
)
