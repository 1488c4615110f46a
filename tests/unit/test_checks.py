"""The frame of checks: requirements that wait for others, answers of the right type, names that are meant."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from confluent_kafka import KafkaError, KafkaException

from kafkalab.checks import Check, CheckContext, Unmet, check, evaluate, find_check, labs
from kafkalab.checks.answers import WrongType, convert
from kafkalab.errors import KafkaLabError, WaitTimeout


@pytest.fixture
def lab() -> Check:
    lab = Check("99_lab", "A lab")

    @lab.requires("The topic exists")
    def exists(ctx: CheckContext) -> None:
        if "topic" not in ctx.answers:
            raise Unmet("There is no topic.")

    @lab.requires("It's empty", after=exists)
    def is_empty(ctx: CheckContext) -> None:
        if ctx.answers["topic"]:
            raise Unmet("It holds records.")

    return lab


def states(lab: Check, **answers: object) -> list[str]:
    return [result.state for result in evaluate(lab, CheckContext(None, answers)).results]


def test_a_requirement_waits_for_the_one_it_rests_on(lab: Check) -> None:
    assert states(lab) == ["unmet", "waiting"]
    assert states(lab, topic=[1]) == ["met", "unmet"]
    assert states(lab, topic=[]) == ["met", "met"]
    report = evaluate(lab, CheckContext(None, {}))
    assert not report
    assert "· It's empty\n      Not looked at yet. First: The topic exists." in str(report)
    assert report.summary == "0 of 2 requirements are met."


@pytest.mark.parametrize(
    "error", [TimeoutError("timed out"), ConnectionResetError("reset"), KafkaException(KafkaError._TRANSPORT)]
)
def test_what_nobody_answers_is_no_verdict_on_the_learner(lab: Check, error: Exception) -> None:
    @lab.requires("A broker says so")
    def said(ctx: CheckContext) -> None:
        raise error

    [*_, result] = evaluate(lab, CheckContext(None, {"topic": []})).results
    assert result.state == "unmet" and "This could not be looked up" in str(result)


def test_a_report_counts_in_plain_english(lab: Check) -> None:
    assert evaluate(lab, CheckContext(None, {"topic": []})).summary == "All 2 requirements are met. Lab passed."
    one = Check("99_one", "One")
    one.requires("It's so")(lambda ctx: None)
    assert evaluate(one, CheckContext(None, {})).summary == "The requirement is met. Lab passed."


def test_a_requirement_comes_after_registered_ones_only(lab: Check) -> None:
    with pytest.raises(ValueError, match="not registered before"):
        lab.requires("It's so", after=lambda ctx: None)


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        (3, int, 3),
        (np.int64(3), int, 3),
        (3, float, 3.0),
        (np.float64(0.5), float, 0.5),
        ("0", int, 0),
        (" -1\n", int, -1),
        ("1,024", int, 1024),
        ("1_024", int, 1024),
        (3.0, int, 3),
        (Decimal("3"), int, 3),
        ("3.0", int, 3),
        ("200000.0", float, 200_000.0),
        ("4e5", float, 400_000.0),
        ("1,234.5", float, 1234.5),
        (Decimal("0.5"), float, 0.5),
        ({"0": "1"}, dict[int, int], {0: 1}),
        (["0", "1", "1"], list[int], [0, 1, 1]),
        ("0,1", set[int], {0, 1}),
        ("[2, 0, 1]", list[int], [2, 0, 1]),
        ({"by-java": "0 1 1"}, dict[str, list[int]], {"by-java": [0, 1, 1]}),
        (np.True_, bool, True),
        (bytearray(b"a"), bytes, b"a"),
        ("true", bool, True),
        (["False"], bool, False),
        (["409"], int, 409),
        (["_FENCED"], str, "_FENCED"),
        ((1, 2), list[int], [1, 2]),
        ([1, 2], set[int], {1, 2}),
        (["a", 1], tuple[str, int], ("a", 1)),
        ({np.int64(0): (1, 2)}, dict[int, list[int]], {0: [1, 2]}),
        ((n for n in "ab"), list[str], ["a", "b"]),
        ("here", Path, Path("here")),
        ({"a": None, "b": np.int64(3)}, dict[str, int | None], {"a": None, "b": 3}),
        ([b"a", "b"], list[str | bytes], [b"a", "b"]),
    ],
)
def test_an_answer_is_right_in_any_shape_that_means_the_same(value: object, kind: type, wanted: object) -> None:
    converted = convert(value, kind)
    assert converted == wanted
    assert type(converted) is type(wanted)


@pytest.mark.parametrize(
    ("value", "kind", "sentence"),
    [
        (True, int, "`given` should be a whole number, not True or False."),
        (1.5, int, "`given` should be a whole number, not a number."),
        (math.nan, int, "`given` should be a whole number, not a number."),
        ("three", int, "`given` should be a whole number, not text."),
        ("1,02", int, "`given` should be a whole number, not text."),
        ("3.5", int, "`given` should be a whole number, not text."),
        ("nan", float, "`given` should be a number, not text."),
        (True, float, "`given` should be a number, not True or False."),
        (b"3", int, "`given` should be a whole number, not bytes."),
        ("abc", list[str], "`given` should be a list, not text."),
        ("0,1", list[str], "`given` should be a list, not text."),
        ("no row", set[int], "`given` should be a set, not text."),
        ([1], dict[int, int], "`given` should be a dictionary, not a list."),
        ({0: "x"}, dict[int, int], "`given[0]` should be a whole number, not text."),
        ({"x": 0}, dict[int, int], "Each key of `given` should be a whole number, not text (one is 'x')."),
        ({0, "x"}, set[int], "Each item of `given` should be a whole number, not text (one is 'x')."),
        ({"a": [0, "x"]}, dict[str, list[int]], "Each item of `given['a']` should be a whole number, not text (one is 'x')."),
        ([{0: 1}, {"x": 1}], list[dict[int, int]], "Each key of `given[1]` should be a whole number, not text (one is 'x')."),
        ([{0: "x"}], list[dict[int, int]], "`given[0][0]` should be a whole number, not text."),
        ([(1, "x")], list[tuple[int, int]], "`given[0][1]` should be a whole number, not text."),
        (("a", "b"), tuple[str, int], "`given[1]` should be a whole number, not text."),
        ((1, 2, 3), tuple[int, int], "`given` should be a tuple of 2, not of 3."),
        (1, bool, "`given` should be True or False, not a whole number."),
        ("yes", bool, "`given` should be True or False, not text."),
        (["409", "200"], int, "`given` should be a whole number, not a list."),
        (["here"], Path, "`given` should be a path, not a list."),
        ({0: "x"}, dict[int, int | None], "`given[0]` should be a whole number or None, not text."),
        ({0: None}, dict[int, int], "`given[0]` should be a whole number, not None."),
        (["x"], list[Callable[..., object]], "Each item of `given` should be a function, not text (one is 'x')."),
    ],
)
def test_an_answer_of_another_type_is_named(value: object, kind: type, sentence: str) -> None:
    with pytest.raises(WrongType) as told:
        convert(value, kind)
    assert told.value.about("given") == sentence


def test_the_sentence_about_a_part_says_what_the_whole_answer_holds() -> None:
    ctx = CheckContext(None, {"causes": {"first": "VALUE_CONVERTER"}})
    with pytest.raises(Unmet, match=r"^Each key of `causes` should be .*\. `causes` should hold offset → stage\.$"):
        ctx.answer("causes", dict[int, str], "offset → stage")


def test_an_answer_that_is_missing_none_or_empty() -> None:
    ctx = CheckContext(None, {"none": None, "empty": [], "zero": 0})
    for name, sentence in (("absent", "as absent=…"), ("none", "still None"), ("empty", "is empty")):
        with pytest.raises(Unmet, match=sentence):
            ctx.answer(name, list[int], "numbers")
    assert ctx.answer("empty", list[int], "numbers", may_be_empty=True) == []
    assert ctx.answer("zero", int, "a number") == 0


FENCED = KafkaError(KafkaError._FENCED)


@pytest.mark.parametrize(
    "given", ["_FENCED", " _FENCED\n", FENCED, KafkaException(FENCED), str(FENCED), str(KafkaException(FENCED))]
)
def test_an_error_by_its_name_itself_or_as_printed(given: object) -> None:
    assert CheckContext(None, {"fenced": given}).error_name("fenced", "the error") == "_FENCED"


@pytest.mark.parametrize("given", [None, 7, ValueError("_FENCED"), KafkaException()])
def test_what_is_no_error_of_kafkas(given: object) -> None:
    with pytest.raises(Unmet, match="`fenced` "):
        CheckContext(None, {"fenced": given}).error_name("fenced", "the error")


def test_a_topic_that_cannot_be_read_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def __init__(self, config: object) -> None: ...
        def assign(self, partitions: object) -> None: ...
        def close(self) -> None: ...

        def consume(self, number: int, seconds: float) -> list[object]:
            return [SimpleNamespace(error=lambda: KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))]

        def position(self, partitions: object) -> list[object]:
            return [SimpleNamespace(partition=0, offset=-1)]

    monkeypatch.setattr("kafkalab.checks.context.Consumer", Silent)
    monkeypatch.setattr("kafkalab.checks.context.watermarks", lambda cluster, topic: {0: (0, 3)})
    monkeypatch.setattr("kafkalab.checks.context._READ_TIMEOUT", 0)
    ctx = CheckContext(SimpleNamespace(client_config=dict))
    with pytest.raises(WaitTimeout, match="0 records, and KafkaError{code=TOPIC_AUTHORIZATION_FAILED"):
        ctx.records("customers")


def test_a_name_that_is_nearly_right() -> None:
    with pytest.raises(KafkaLabError, match="did you mean 00_first_record"):
        find_check("00_first_recrod")


@pytest.mark.parametrize("given", [["a cluster"], None, "localhost:9092"])
def test_a_check_without_a_cluster(given: object) -> None:
    with pytest.raises(TypeError, match=f"takes your cluster next, such as cluster, not a {type(given).__name__}"):
        check("00_first_record", given)


def test_the_notebook_of_one_check_may_be_named_instead() -> None:
    for stem, lab in labs().items():
        if len(lab.checks) == 1:
            assert find_check(stem) is lab.checks[0]
        elif stem not in [check.id for check in lab.checks]:
            with pytest.raises(KafkaLabError, match=f"{stem} is a notebook with {len(lab.checks)} checks"):
                find_check(stem)


class Brokers:
    """An AdminClient of brokers of which the first that is asked hasn't heard of the topic yet."""

    asked = 0

    def __init__(self, config: object) -> None: ...

    def poll(self, timeout: float) -> None: ...

    def describe_configs(self, resources: list[object], **_: object) -> dict[object, Future[dict[str, object]]]:
        answer: Future[dict[str, object]] = Future()
        Brokers.asked += 1
        if Brokers.asked == 1:
            answer.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        else:
            answer.set_result({"cleanup.policy": SimpleNamespace(value="compact")})
        return dict.fromkeys(resources, answer)


def test_a_broker_may_hear_of_a_topic_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalab.cluster.asking.AdminClient", Brokers)
    monkeypatch.setattr(Brokers, "asked", 0)
    cluster = SimpleNamespace(client_config=dict, describe=lambda groups: SimpleNamespace(topics={"customers": ()}))
    ctx = CheckContext(cluster)
    assert ctx.topic_config("customers") == {"cleanup.policy": "compact"}
    Brokers.asked = 0
    with pytest.raises(KafkaLabError, match="settings of orders could not be read"):
        ctx.topic_config("orders")
