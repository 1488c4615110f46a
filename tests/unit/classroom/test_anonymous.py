"""The class's own events, given back without seats."""

from __future__ import annotations

import json
import random

from kafkalab.classroom.anonymous import anonymous
from kafkalab.classroom.events import Event

NOON = 1_700_000_000


def test_seats_are_numbers_and_times_are_rounded_and_what_the_room_saw_is_left_out() -> None:
    events = [
        ("amber-fox", Event("voted", "02-gap", at=NOON * 1000 + 1, round=1, option=0)),
        ("amber-fox", Event("voted", "02-gap", at=NOON * 1000 + 2, round=1, option=2)),
        ("calm-lynx", Event("voted", "02-gap", at=NOON * 1000 + 3, round=1, option=1)),
        ("calm-lynx", Event("help", "02-gap", at=NOON * 1000 + 3, raised=True)),
        ("calm-lynx", Event("done", "02-gap", at=NOON * 1000 + 3, raised=True)),
        ("calm-lynx", Event("checked", "02_failsafe", at=1000, unmet=[1], attempt=1)),
        ("calm-lynx", Event("checked", "02_failsafe", at=2000, met=[1], attempt=2)),
        ("calm-lynx", Event("checked", "02_failsafe", at=2000, met=[1], attempt=2)),
    ]
    rows = anonymous(events, random.Random(1))
    assert not [name for name in ("amber", "fox", "calm", "lynx", "help", "done") if name in json.dumps(rows)]
    assert sorted((row["kind"], row["option"], row["attempt"]) for row in rows if row["kind"] == "checked") == [
        ("checked", None, 1),
        ("checked", None, 2),
    ]
    votes = {row["seat"]: row["option"] for row in rows if row["kind"] == "voted"}
    assert sorted(votes.values()) == [1, 2] and set(votes) == {1, 2}
    assert {row["at"] % 300 for row in rows} == {0}


def test_each_copy_deals_other_numbers() -> None:
    events = [(f"seat-{number}", Event("alive", f"notebook-{number}")) for number in range(20)]
    dealt = {
        tuple(row["seat"] for row in sorted(anonymous(events, random.Random(seed)), key=lambda row: row["subject"]))
        for seed in range(9)
    }
    assert len(dealt) == 9
