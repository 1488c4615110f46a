"""What the board knows and shows: the latest event counts, and the wall points at nobody."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from kafkalab.classroom.events import Event
from kafkalab.classroom.facts import Facts
from kafkalab.classroom.lesson import Lesson
from kafkalab.classroom.released import Released, Results
from kafkalab.classroom.small_numbers import about
from kafkalab.classroom.views import advice, instructor_view, wall_view
from kafkalab.course.questions import Question
from kafkalab.errors import KafkaLabError

GAP = Question("02-gap", "02_cluster_failover", "How long has partition 3 no leader?", unit="s")
BOTH = Question(
    "02-both", "02_cluster_failover", "Which of the two does `careful` acknowledge?", ("both", "one", "none"), right=1
)
SEATS = [f"seat-{number}" for number in range(20)]
NOON = 1_700_000_000.0
NOTHING_TO_SHOW = {"first": [], "second": [], "guesses": [], "measured": []}


def words(check: str, number: int) -> str:
    return f"Requirement {number} of {check}"


class Class:
    """A class of 20 seats whose events come without Kafka."""

    def __init__(self) -> None:
        self.seats = list(SEATS)
        self.facts = Facts()
        self.published: list[Released] = []
        self.lesson = Lesson([GAP, BOTH], self.facts, lambda: self.seats, self.published.append)
        self.lesson.begin()

    def tell(self, seat: str, event: Event, appended: float = NOON) -> None:
        self.facts.upsert([(seat, event, appended)])

    def vote(self, options: list[int], number: int = 1) -> None:
        for seat, option in zip(SEATS, options):
            self.tell(seat, Event("voted", BOTH.id, at=number, round=number, option=option))

    def board(self, now: float = NOON) -> dict:
        return instructor_view(self.facts, self.lesson, self.seats, words, now)

    def wall(self) -> dict:
        return wall_view(self.facts, self.lesson, self.seats, words)


@pytest.fixture
def room() -> Class:
    return Class()


def test_events_that_come_twice_or_in_another_order_change_nothing() -> None:
    events = [(seat, Event("voted", BOTH.id, at=at, round=1, option=at % 3), NOON) for seat in SEATS for at in (1, 2, 3)]
    results = set()
    for seed in range(5):
        facts = Facts()
        random.Random(seed).shuffle(events)
        for event in events:
            facts.upsert([event])
        facts.upsert(events)
        results.add(tuple(facts.results(BOTH.id, 3, SEATS).first))
    assert results == {(20, 0, 0)}


def test_what_is_not_an_event_is_counted_once(room: Class) -> None:
    room.facts.count_foreign([("seat-1", 0, 5), ("seat-1", 0, 4), ("seat-2", 0, 4)])
    room.facts.count_foreign([("seat-1", 0, 4), ("seat-1", 0, 5), ("seat-1", 0, 6)])
    assert {row["seat"]: row["foreign"] for row in room.board()["seats"] if row["foreign"]} == {"seat-1": 3, "seat-2": 1}


def test_votes_outside_the_question_are_not_counted(room: Class) -> None:
    room.vote([0, 1, 1, 7, -1])
    room.tell("seat-8", Event("voted", BOTH.id, round=1, number=3.0))
    room.tell("stranger", Event("voted", BOTH.id, round=1, option=0))
    assert room.facts.results(BOTH.id, 3, SEATS).first == (1, 2, 0)
    assert room.facts.voters(BOTH.id, 1, 3, SEATS) == 3


def test_numbers_are_the_last_guesses_and_what_was_measured_and_finite(room: Class) -> None:
    for number, seat in enumerate(SEATS[:6]):
        room.tell(seat, Event("voted", GAP.id, at=1, round=1, number=float(number)))
        room.tell(seat, Event("measured", GAP.id, number=1.5 if number else float("nan")))
    room.tell("seat-0", Event("voted", GAP.id, at=2, round=2, number=9.0))
    room.tell("seat-5", Event("voted", GAP.id, at=2, round=2, number=float("inf")))
    results = room.facts.results(GAP.id, 0, SEATS)
    assert results == Results([], [], [1, 2, 3, 4, 9], [1.5] * 5)
    assert room.facts.ran(GAP.id, SEATS) == 6


def test_calls_for_help_come_by_waiting_time_and_can_be_lowered(room: Class) -> None:
    room.tell("seat-1", Event("help", "02_failsafe", at=10, raised=True), NOON - 60)
    room.tell("seat-2", Event("help", "02_isolated", at=5, raised=True), NOON - 300)
    room.tell("seat-2", Event("help", "02_isolated", at=6, raised=True), NOON - 10)  # pressed again: it waits for five minutes
    room.tell("seat-3", Event("help", "02_isolated", at=5, raised=True), NOON - 300)
    room.tell("seat-3", Event("help", "02_failsafe", at=6, raised=False), NOON)  # lowered, in another notebook
    assert [(call["seat"], call["minutes"]) for call in room.board()["help"]] == [("seat-2", 5), ("seat-1", 1)]
    room.facts.lower("seat-2")
    room.tell("seat-2", Event("help", "02_isolated", at=6, raised=True), NOON)  # the same, delivered again
    assert [call["seat"] for call in room.board()["help"]] == ["seat-1"]
    room.tell("seat-2", Event("help", "02_isolated", at=7, raised=True), NOON)
    assert [call["seat"] for call in room.board()["help"]] == ["seat-1", "seat-2"]


def test_a_row_shows_the_notebook_in_which_a_seat_works(room: Class) -> None:
    def exercise(seat: str = "seat-1") -> str:
        return {row["seat"]: row["exercise"] for row in room.board()["seats"]}[seat]

    room.tell("seat-1", Event("alive", "02_cluster_failover", at=1))
    room.tell("seat-1", Event("checked", "02_failsafe_twice", at=2, met=[1]))
    room.tell("seat-1", Event("alive", "02_failsafe", at=3))
    assert exercise() == "02_failsafe"
    room.tell("seat-1", Event("checked", "02_failsafe_twice", at=4, met=[1]))
    assert exercise() == "02_failsafe"  # a check's id is no notebook
    room.tell("seat-1", Event("help", "02_isolated", at=5, raised=True))
    assert exercise() == "02_isolated"
    room.tell("seat-1", Event("alive", "02_failsafe", at=4))  # late
    assert exercise() == "02_isolated"
    room.tell("seat-2", Event("checked", "02_failsafe", at=1, met=[1]))
    assert (exercise("seat-2"), exercise("seat-3")) == ("02_failsafe", "")


def test_a_seat_is_stuck_after_eight_minutes_and_three_attempts(room: Class) -> None:
    room.tell("seat-1", Event("checked", "02_failsafe", at=1, met=[1], unmet=[2], waiting=[3], attempt=1), NOON)
    assert not room.board(NOON + 600)["stuck"]
    room.tell("seat-1", Event("checked", "02_failsafe", at=2, met=[1], unmet=[2], waiting=[3], attempt=3, hints=2), NOON + 400)
    assert not room.board(NOON + 479)["stuck"]
    (stuck,) = room.board(NOON + 480)["stuck"]
    assert stuck == {
        "seat": "seat-1",
        "check": "02_failsafe",
        "number": 2,
        "words": "Requirement 2 of 02_failsafe",
        "minutes": 8,
        "attempts": 3,
        "hints": 2,
    }
    room.tell("seat-1", Event("checked", "02_failsafe", at=3, met=[1, 2], unmet=[3], attempt=4), NOON + 500)
    assert not room.board(NOON + 900)["stuck"]


def test_many_failing_begins_with_three_seats(room: Class) -> None:
    for number in range(3):
        assert not room.board()["failing"]
        room.tell(f"seat-{number}", Event("checked", "02_failsafe", unmet=[2], attempt=1))
    assert room.board()["failing"] == [
        {"check": "02_failsafe", "number": 2, "words": "Requirement 2 of 02_failsafe", "seats": 3}
    ]


def test_a_seat_that_makes_things_up_gets_no_room_and_breaks_nothing(room: Class) -> None:
    for number in range(3000):
        room.tell("seat-1", Event("checked", f"made-up-{number}", round=7, unmet=range(1000), attempt=9), NOON)
    seat = room.facts.seats(["seat-1"])["seat-1"]
    assert len(seat.latest) == 1000
    assert len(seat.unmet) < 100_000
    assert room.board(NOON + 900)["stuck"]
    assert room.wall()["lab"] is None


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ([10, 2, 0], "17% are right. Explain again, or ask something simpler."),
        ([7, 3, 0], "30% are right. Let them discuss."),
        ([3, 7, 0], "70% are right. Let them discuss."),
        ([2, 8, 0], "80% are right. Explain briefly, and go on."),
        ([0, 0, 0], ""),
    ],
)
def test_advice_after_the_first_vote(first: list[int], told: str) -> None:
    assert advice(1, Results(first)) == told
    assert advice(None, Results(first)) == ""


def test_a_poll_from_asking_to_the_reveal(room: Class) -> None:
    room.lesson.ask(BOTH.id)
    room.vote([0] * 8 + [1] * 6)
    poll = room.board()["poll"]
    assert poll["votes"] == [14, 0] and poll["first"] == [8, 6, 0] and "Let them discuss" in poll["advice"]
    assert room.wall()["poll"]["votes"] == 14
    for phase in ("discuss", "second"):
        room.lesson.move(phase)
    room.vote([0] * 2 + [1] * 12, 2)
    room.lesson.move("run")
    for seat in SEATS[:9]:
        room.tell(seat, Event("measured", BOTH.id))
    assert room.wall()["poll"]["ran"] == 9
    room.lesson.move("revealed")
    assert room.published[-1].revealed[BOTH.id] == Results([8, 6, 0], [2, 12, 0])
    assert room.published[-1].held == {GAP.id}
    assert [one.poll and one.poll.phase for one in room.published] == [None, "first", "discuss", "second", "run", "revealed"]
    assert room.wall()["poll"]["second"] == [2, 12, 0]
    room.lesson.close()
    assert room.wall()["poll"] is None
    assert [question["state"] for question in room.board()["questions"]] == ["held", "revealed"]


def test_wrong_moves_are_refused_and_change_nothing(room: Class) -> None:
    lesson = room.lesson

    def refused(sentence: str, move: Callable[..., object], *arguments: object) -> None:
        before = lesson.released
        with pytest.raises(KafkaLabError, match=sentence):
            move(*arguments)
        assert lesson.released is before and room.published[-1] is before

    refused("no poll runs", lesson.move, "discuss")
    refused("no question 'other'", lesson.ask, "other")
    refused("no revealed poll", lesson.close)
    refused("'other' isn't held back", lesson.release, ["other"])
    lesson.ask(BOTH.id)
    refused("the poll '02-both' runs", lesson.ask, GAP.id)
    refused("the second vote doesn't follow the first vote: the discussion or running the cell does", lesson.move, "second")
    refused("the reveal doesn't follow", lesson.move, "revealed")
    refused("'nonsense' doesn't follow", lesson.move, "nonsense")
    lesson.move("run")
    lesson.move("revealed")
    refused("the first vote doesn't follow the reveal: another question does", lesson.move, "first")
    refused("'02-both' is open already", lesson.ask, BOTH.id)
    lesson.end()
    refused("the class is over", lesson.ask, GAP.id)
    lesson.end()


def test_what_cannot_be_published_has_not_happened(room: Class) -> None:
    def gone(_: Released) -> None:
        raise KafkaLabError("the class's cluster is gone")

    lesson = Lesson([GAP], room.facts, lambda: SEATS, gone)
    with pytest.raises(KafkaLabError, match="is gone"):
        lesson.begin()
    assert lesson.released == Released()


def test_a_question_is_released_without_a_poll(room: Class) -> None:
    room.lesson.ask(BOTH.id)
    room.lesson.release([BOTH.id])
    assert room.published[-1] == Released(None, frozenset([GAP.id]))
    assert [question["state"] for question in room.board()["questions"]] == ["held", "released"]


def test_the_wall_shows_no_bars_before_the_reveal_and_nothing_of_four_votes(room: Class) -> None:
    room.lesson.ask(BOTH.id)
    room.vote([0, 1, 1, 2])
    assert room.wall()["poll"]["votes"] is None
    room.vote([0, 1, 1, 2, 2])
    assert room.wall()["poll"]["votes"] == 5
    for phase in ("discuss", "second", "run"):
        room.lesson.move(phase)
        assert not {"first", "second", "guesses", "measured"} & room.wall()["poll"].keys()


def test_a_reveal_of_four_votes_shows_no_votes_to_anybody(room: Class) -> None:
    room.lesson.ask(BOTH.id)
    room.vote([0, 1, 1, 2])
    room.lesson.move("run")
    room.lesson.move("revealed")
    assert room.published[-1].revealed == {BOTH.id: Results()}
    assert {name: room.wall()["poll"][name] for name in NOTHING_TO_SHOW} == NOTHING_TO_SHOW
    assert room.board()["poll"]["first"] == [1, 2, 1]  # the instructor's own


def test_the_wall_names_no_seat_whatever_happens(room: Class) -> None:
    """Every state of a poll, with a class that does everything that a class can do."""
    walls = []
    for seat in SEATS:
        for event in (
            Event("checked", "02_failsafe", met=[1], unmet=[2], attempt=4, hints=1),
            Event("help", "02_failsafe", raised=True),
            Event("done", "02_failsafe", raised=True),
            Event("alive", "02_cluster_failover"),
            Event("voted", BOTH.id, round=1, option=1),
            Event("voted", BOTH.id, round=2, option=1),
            Event("measured", BOTH.id, number=1.9),
        ):
            room.tell(seat, event, NOON - 900)
    room.facts.count_foreign([(seat, 0, 1) for seat in SEATS])
    walls.append(room.wall())
    room.lesson.ask(BOTH.id)
    for phase in ("discuss", "second", "run", "revealed"):
        walls.append(room.wall())
        room.lesson.move(phase)
    walls.append(room.wall())
    room.lesson.close()
    room.lesson.end()
    walls.append(room.wall())
    shown = json.dumps(walls)
    assert not [seat for seat in SEATS if seat in shown]
    assert all(seat in json.dumps(room.board()) for seat in SEATS)


def test_the_wall_shows_how_far_the_class_is(room: Class) -> None:
    for number, seat in enumerate(SEATS[:14]):
        met = [1, 2] if number < 2 else [1]
        room.tell(seat, Event("checked", "02_failsafe", met=met, unmet=[] if number < 2 else [2], waiting=[3], attempt=1))
        if number == 3:
            assert room.wall()["lab"] is None  # four have run it
    assert room.wall()["lab"] == {
        "check": "02_failsafe",
        "requirements": [
            {"words": "Requirement 1 of 02_failsafe", "met": "14 of 20"},
            {"words": "Requirement 2 of 02_failsafe", "met": "fewer than 3"},
            {"words": "Requirement 3 of 02_failsafe", "met": "fewer than 3"},
        ],
        "obstacle": "Requirement 2 of 02_failsafe",
    }


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "fewer than 3"), (2, "fewer than 3"), (3, "3 of 20"), (17, "17 of 20"), (18, "almost all"), (20, "all")],
)
def test_counts_in_words_point_at_nobody(count: int, told: str) -> None:
    assert about(count, 20) == told


def test_a_seat_that_left_is_not_counted(room: Class) -> None:
    room.lesson.ask(BOTH.id)
    room.vote([1] * 20)
    room.seats = SEATS[:6]
    assert room.board()["poll"]["votes"] == [6, 0]
    assert room.wall()["joined"] == 6
