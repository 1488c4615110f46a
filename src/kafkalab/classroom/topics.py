"""The names of a class's topics."""

from __future__ import annotations

__all__ = ["ANONYMOUS", "LARGEST_BATCH", "PUBLIC", "SEATS", "SEAT_PREFIX", "seat_of", "seat_topic"]

PUBLIC = "class.public"
"""What the instructor has released. Every seat may read it, and only the instructor writes it. Compacted."""

ANONYMOUS = "class.anonymous"
"""All seats' events without their seats, for the class's own queries at the end. Every seat may read it."""

LARGEST_BATCH = 8192
"""Bytes of a batch that a seat's topic takes. An event has some 40."""

SEAT_PREFIX = "board."
SEATS = r"board\..+"
"""Pattern of all seats' topics, for ``subscribePattern``."""


def seat_topic(seat: str) -> str:
    """Return the topic of a seat. Only this seat may write to it, and no seat may read it."""
    return f"{SEAT_PREFIX}{seat}"


def seat_of(topic: str) -> str:
    """Return the seat that a topic belongs to. The permission to write proves it, so events don't name their seat."""
    return topic.removeprefix(SEAT_PREFIX)
