"""A wait ends when its condition is true, when time is up, or when it can't come true any more."""

from __future__ import annotations

import pytest

from kafkalab import wait_until
from kafkalab.errors import WaitTimeout
from support import PATIENCE


def test_it_ends_at_once_when_the_condition_cannot_come_true() -> None:
    looks: list[int] = []

    def gone() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise LookupError("it's gone")

    with pytest.raises(LookupError, match="it's gone"):
        wait_until(lambda: 1 / 0, PATIENCE, "the end", ignore=(ArithmeticError, LookupError), unless=gone, interval=0)
    assert len(looks) == 3


def test_a_condition_that_is_true_is_all_that_counts() -> None:
    def gone() -> None:
        raise LookupError

    assert wait_until(lambda: "there", 0, "it", unless=gone) == "there"
    with pytest.raises(WaitTimeout, match="waited 0 s for it"):
        wait_until(lambda: None, 0, "it", unless=lambda: None)
