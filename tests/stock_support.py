"""What tests of the stock applications use without a broker."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Record", "records"]


@dataclass(frozen=True)
class Record:
    """A message with a price, as far as a book asks it."""

    place: int
    part: int = 0
    text: bytes | None = b'{"name": "IBM", "dollars": 90, "cents": 5}'

    def topic(self) -> str:
        return "stock-prices"

    def partition(self) -> int:
        return self.part

    def offset(self) -> int:
        return self.place

    def key(self) -> bytes:
        return b"IBM"

    def value(self) -> bytes | None:
        return self.text


def records(first: int, last: int, part: int = 0) -> list[Record]:
    """Messages at these offsets, the last one included."""
    return [Record(place, part) for place in range(first, last + 1)]
