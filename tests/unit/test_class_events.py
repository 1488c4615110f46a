"""What a seat sends, and how it takes its seat."""

from __future__ import annotations

import json
import os
import stat
import struct
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import fastavro
import pytest

from kafkalab.classroom import link as link_module
from kafkalab.classroom import membership, presence
from kafkalab.classroom.events import SCHEMA, Event, NotAnEvent, decode, encode
from kafkalab.classroom.join_code import JoinCode, read_join_code
from kafkalab.classroom.link import Link
from kafkalab.classroom.membership import Membership
from kafkalab.classroom.outbox import Outbox
from kafkalab.classroom.released import NOTHING, Poll, Released, Results
from kafkalab.classroom.seats import free_seat, is_seat
from kafkalab.classroom.topics import seat_of, seat_topic
from kafkalab.errors import KafkaLabError
from kafkalab.waiting import wait_until
from support import PATIENCE

CHECKED = Event("checked", "02_failsafe", at=2, met=[1, 2], unmet=[3], waiting=[4], attempt=2, hints=1)
VOTED = Event("voted", "02-gap", at=1, round=1, option=2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path))
    return tmp_path / "class"


def seat(**changes: object) -> Membership:
    given = Membership("c1a55", "brave-otter", "127.0.0.1:1", "secret", "", 7, time.time() + 3600)
    return replace(given, **changes)


@pytest.mark.parametrize("event", [CHECKED, VOTED, Event("measured", "02-gap", number=1.9), Event("help", "x", raised=True)])
def test_an_event_is_the_same_after_the_wire(event: Event) -> None:
    value = encode(event, 7)
    assert value[:5] == struct.pack(">bI", 0, 7)  # as every serializer of the registry begins
    assert decode(value, 7) == event


def test_an_event_keeps_its_millisecond() -> None:
    for at in (*range(1000), *range(1_795_820_854_000, 1_795_820_855_000)):
        assert decode(encode(replace(VOTED, at=at), 7), 7).at == at


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"hello",
        b"\0\0\0\0\7",
        encode(VOTED, 8),
        encode(VOTED, 7)[:-2],
        encode(VOTED, 7) + b"x",
        b"\0\0\0\0\7" + b"\xff" * 40,
    ],
)
def test_whatever_else_is_no_event(value: bytes) -> None:
    with pytest.raises(NotAnEvent):
        decode(value, 7)


def test_an_event_has_no_room_for_words() -> None:
    texts = [f["name"] for f in json.loads(SCHEMA)["fields"] if f["type"] == "string"]
    assert texts == ["subject"] and fastavro.parse_schema(json.loads(SCHEMA))
    for words in ("/home/ann/x.ipynb", "Ann Smith", "a@b", "", "x" * 81, "print(1)"):
        with pytest.raises(NotAnEvent, match="isn't the id"):
            Event("checked", words)
    with pytest.raises(NotAnEvent, match="no event"):
        Event("typed", "02-gap")


def code(**changes: object) -> JoinCode:
    given = JoinCode("192.168.1.7", 29400, (time.time() // 60 + 60) * 60, b"secret", b"fingerprin")
    return replace(given, **changes)


@pytest.mark.parametrize("host", ["192.168.1.7", "127.0.0.1", "fe80::1"])
def test_a_join_code_comes_back_as_it_was(host: str) -> None:
    one = code(host=host)
    assert read_join_code(str(one)) == one
    assert read_join_code(f"  {str(one).lower().replace('-', ' ')} ") == one
    assert "secret" not in repr(one)


def test_a_wrong_join_code_is_refused() -> None:
    text = str(code())
    swapped = text[:8] + ("A" if text[8] != "A" else "B") + text[9:]
    for wrong in ("", "hello", text[:-3], swapped, text + "AAAAAA"):
        with pytest.raises(KafkaLabError, match="isn't a join code, or a part of it is missing"):
            read_join_code(wrong)


def test_a_join_code_of_yesterday_is_refused() -> None:
    with pytest.raises(KafkaLabError, match=r"this code's class ended on \d{4}-\d\d-\d\d .* Ask for today's code"):
        read_join_code(str(code(expires=time.time() - 120)))


def test_a_seat_is_kept_where_only_its_owner_can_read_it(folder: Path) -> None:
    membership.keep(seat())
    assert membership.membership() == seat(expires=membership.membership().expires)
    assert stat.S_IMODE((folder / "seat.json").stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "secret" not in repr(membership.membership())
    membership.forget()
    assert membership.membership() is None


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"seat": 3}', "\0"])
def test_a_seat_that_cannot_be_read_is_none(folder: Path, content: str) -> None:
    membership.keep(seat())
    (folder / "seat.json").write_text(content)
    assert membership.membership() is None and presence.current() is None


def test_a_seat_ends_with_its_class() -> None:
    membership.keep(seat(expires=time.time() - 1))
    assert membership.membership() is None


def test_what_is_not_acknowledged_outlives_its_process(folder: Path) -> None:
    ended = Outbox(folder)
    ended._path.rename(folder / "outbox-1.jsonl")  # of another process
    first, second = ended.add(VOTED), ended.add(CHECKED)
    ended.delivered(first)
    assert ended.waiting() == 1 and Outbox(folder).left_over() == []  # it still runs
    ended.close()
    mine = Outbox(folder)
    assert mine.left_over() == [VOTED, CHECKED]  # the class counts the first one once
    assert mine.left_over() == [] and second == 1


def test_a_file_is_empty_once_all_is_acknowledged_and_gone_at_the_end(folder: Path) -> None:
    box = Outbox(folder)
    number = box.add(VOTED)
    assert box._path.stat().st_size and stat.S_IMODE(box._path.stat().st_mode) == 0o600
    box.delivered(number)
    assert not box._path.stat().st_size
    box.close()
    assert not list(folder.iterdir())


def test_half_a_line_of_a_full_disk_is_left_out(folder: Path) -> None:
    folder.mkdir()
    (folder / "outbox-1.jsonl").write_text(json.dumps(asdict(VOTED)) + '\n{"kind": "vo')
    assert Outbox(folder).left_over() == [VOTED]


def test_an_outbox_that_cannot_be_written_keeps_in_memory(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    box = Outbox(tmp_path / "taken")
    box.delivered(box.add(VOTED))
    box.add(CHECKED)
    assert box.waiting() == 1 and box.left_over() == []
    box.close()


def test_released_comes_back_as_it_was() -> None:
    one = Released(Poll("02-gap", "second"), frozenset({"02-gap"}), {"02-led": Results([1, 2], [0, 3], [], [1.5])}, ended=True)
    assert Released.from_json(one.as_json()) == one
    assert Released.from_json(NOTHING.as_json()) == NOTHING
    for wrong in ("{}", "[]", "x", '{"poll": {"question": "a", "phase": "b"}, "held": [], "revealed": {}, "ended": false}'):
        with pytest.raises(ValueError):  # noqa: PT011 - any will do
            Released.from_json(wrong)


def test_seats_are_two_words_that_are_free() -> None:
    taken: set[str] = set()
    for _ in range(2000):
        name = free_seat(taken)
        assert name not in taken and is_seat(name)
        taken.add(name)
    assert not any(map(is_seat, ("otter", "Brave-Otter", "brave otter", "a/b", "", "instructor", "brave-otter\n")))
    assert seat_of(seat_topic("brave-otter")) == "brave-otter"


def test_without_a_class_nothing_happens(folder: Path) -> None:
    presence.tell_checked("02_failsafe", ["met"], 1, 0)
    assert presence.current() is None and not folder.exists()


def test_a_class_that_is_gone_delays_no_check(folder: Path) -> None:
    membership.keep(seat())  # nobody listens there
    link = presence.current()
    try:
        began = time.monotonic()
        for attempt in range(20):
            presence.tell_checked("02_failsafe", ["met", "unmet", "waiting"], attempt, 0)
        assert time.monotonic() - began < 20 * 0.05
        assert len(link.sent) == 20 and link.sent[-1].unmet == (2,) and not link.holds("02-gap")
    finally:
        link.close()
    [kept] = folder.glob(f"outbox-{os.getpid()}-*.jsonl")
    assert kept.read_text().count("\n") == 20  # for the next kernel
    presence.current().leave()
    assert presence.current() is None and not list(folder.iterdir())


def open_notebook(name: str, monkeypatch: pytest.MonkeyPatch) -> Link:
    monkeypatch.setenv("JPY_SESSION_NAME", name)
    return Link(seat())


def says(link: Link, notebook: str) -> bool:
    return bool(link.sent) and (link.sent[-1].kind, link.sent[-1].subject) == ("alive", notebook)


def test_each_open_notebook_says_where_the_learner_last_did_something(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_ALIVE", 0.2)
    membership.keep(seat())
    chapter = open_notebook("notebooks/02_cluster_failover.ipynb", monkeypatch)
    lab = open_notebook("labs/02_cluster_failover/02_failsafe (1).ipynb", monkeypatch)

    def both_say(notebook: str) -> bool:
        return says(chapter, notebook) and says(lab, notebook)

    def wait_for(notebook: str) -> None:
        wait_until(
            partial(both_say, notebook), PATIENCE, f"{notebook} from both", last_seen=lambda: (chapter.sent[-1:], lab.sent[-1:])
        )  # fmt: skip

    try:
        wait_for("02_failsafe-1-")  # it was opened last
        chapter.works_here()
        wait_for("02_cluster_failover")
        lab.send(CHECKED)
        wait_for("02_failsafe-1-")
    finally:
        chapter.close()
        lab.close()
    membership.forget()
    assert not list(folder.iterdir())


def test_a_learner_who_goes_to_another_notebook_is_seen_there_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chapter = open_notebook("notebooks/02_cluster_failover.ipynb", monkeypatch)
    wait_until(lambda: says(chapter, "02_cluster_failover"), PATIENCE, "the first sign of life")
    lab = open_notebook("labs/02_cluster_failover/02_failsafe.ipynb", monkeypatch)
    try:
        chapter.send(VOTED)  # the next sign of life would be due in a minute
        wait_until(
            lambda: [event.subject for event in chapter.sent if event.kind == "alive"] == ["02_cluster_failover"] * 2,
            PATIENCE, "another one", last_seen=lambda: chapter.sent,
        )  # fmt: skip
    finally:
        chapter.close()
        lab.close()
