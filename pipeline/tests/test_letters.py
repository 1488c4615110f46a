"""Dead letters keep what the record had, and say what was cut."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from truck_pipeline.letters import letter

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def dead(**changed: Any) -> dict[str, Any]:
    place = {"topic": "truck_position", "partition": 1, "offset": 7, "timestamp": NOON}
    return {"key": b"99", "value": b"no event", "headers": None, "reason": "header", **place, **changed}


@pytest.mark.parametrize(
    ("changed", "sizes", "cut"),
    [
        ({"key": b"k" * 100_000, "value": b"v" * 900_000}, (100_000, 900_000), None),
        ({"key": b"k" * 100_001}, (100_000, 8), b"100009"),
        ({"value": b"v" * 900_001}, (2, 900_000), b"900003"),
        ({"key": b"k" * 200_000, "value": b"v" * 1_000_000}, (100_000, 900_000), b"1200000"),
        ({"key": b"k" * 100_001, "value": None}, (100_000, 0), b"100001"),
    ],
)
def test_a_letter_that_is_cut_says_so(changed: dict[str, Any], sizes: tuple[int, int], cut: bytes | None) -> None:
    record = letter(dead(**changed))
    assert (len(record.key or b""), len(record.value or b"")) == sizes
    assert dict(record.headers or ()).get("dead.cut") == cut


def test_a_letter_has_its_own_headers_and_the_count_of_replays() -> None:
    headers = [{"key": name, "value": b"1"} for name in ("origin", "dead.replays", "dead.reason", "dead.cut")]
    record = letter(dead(headers=headers))
    assert record.timestamp == int(NOON.timestamp() * 1000)
    assert [name for name, _ in record.headers or ()] == ["origin", "dead.replays", *(
        f"dead.{name}" for name in ("reason", "topic", "partition", "offset", "timestamp")
    )]  # fmt: skip
    assert dict(record.headers or ())["dead.reason"] == b"header"
