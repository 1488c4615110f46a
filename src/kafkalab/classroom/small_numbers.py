"""What a class may see of itself: counts, and only where they don't point at anybody.

In a room of twenty, a bar with one vote is a person whom the neighbours watch.
"""

from __future__ import annotations

from kafkalab.classroom.released import Results

__all__ = ["FEWEST", "about", "enough", "for_the_class"]

FEWEST = 5
"""Votes below which the class sees nothing of them."""

_FEW = 3  # a count below it, or that far from everybody, isn't told


def enough(count: int) -> int | None:
    """Return a number of votes, or None if it's below `FEWEST`."""
    return count if count >= FEWEST else None


def about(count: int, everybody: int) -> str:
    """Return how many of a class, in words that point at nobody: ``11 of 20``, ``almost all``."""
    if count >= everybody:
        return "all"
    if count < _FEW:
        return f"fewer than {_FEW}"
    return "almost all" if everybody - count < _FEW else f"{count} of {everybody}"


def for_the_class(results: Results) -> Results:
    """Return results without whatever fewer than `FEWEST` seats have told."""
    return Results(
        results.first if sum(results.first) >= FEWEST else (),
        results.second if sum(results.second) >= FEWEST else (),
        results.guesses if len(results.guesses) >= FEWEST else (),
        results.measured if len(results.measured) >= FEWEST else (),
    )
