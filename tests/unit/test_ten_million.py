"""The plan for 10 million events a second: the page's tables are what its sums give, from what its first table measured."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs/ten-million.md").read_text()
SUMS = "".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
UNITS = {"GB": 1e9, "GB/s": 1e9, "TB": 1e12}


def names(rate: int = 10_000_000) -> dict[str, Any]:
    """What the page's sums give."""
    result: dict[str, Any] = {}
    exec(SUMS.replace("rate = 10_000_000", f"rate = {rate}"), result)
    return result


def rows(head: str) -> list[list[str]]:
    """The cells of the table whose head begins so."""
    lines = PAGE.partition(f"\n| {head}")[2].partition("\n\n")[0].splitlines()[2:]
    return [line.strip("| ").split(" | ") for line in lines]


def shown(cell: str, value: float) -> bool:
    """Whether a cell shows a value, in its own unit and with its own digits."""
    number, _, unit = cell.partition(" ")
    digits = len(number.partition(".")[2])
    return number == f"{value / UNITS.get(unit, 1):,.{digits}f}"


def test_the_sums_take_what_was_measured() -> None:
    measured = {what: float(median.split()[0].replace(",", "")) for what, median, _ in rows("measured")}
    sums = names()
    for name, what, unit in (
        ("spark", "processor time per event: Spark", 1e-6),
        ("brokers_work", "processor time per event: brokers", 1e-6),
        ("postgresql", "processor time per event: PostgreSQL", 1e-6),
        ("python", "processor time per event: Python", 1e-6),
        ("decoding", "stream that decodes and drops repeats, and writes nothing", 1),
        ("event", "an event in the topic, each replica", 1),
        ("alarm", "alarms in their topic, per event, each replica", 1),
        ("rows", "rows in PostgreSQL with their indexes, per event", 1),
        ("state_row", "memory of a row of state", 1),
        ("batch", "a micro-batch, at 1,000 events/s", 1),
    ):
        assert sums[name] == pytest.approx(measured[what] * unit), name


def test_the_plan_has_what_the_sums_give_for_each_rate() -> None:
    plans = [names(rate) for rate in (100_000, 1_000_000, 10_000_000)]
    table = rows("|")
    assert len(table) == 11
    for what, *cells in table:
        name = what.split("`")[1]
        assert [cell for cell, plan in zip(cells, plans, strict=True) if not shown(cell, plan[name])] == [], what


def test_few_trucks_leave_processors_idle() -> None:
    sums = names()
    for trucks, mean, fullest, busy in rows(f"trucks, on {sums['partitions']} partitions"):
        number = int(trucks.replace(",", ""))
        assert shown(mean, number / sums["partitions"]) and shown(fullest, sums["fullest"](number)), trucks
        assert busy == f"{1 / sums['slower'](number):.0%}"


def test_a_burst_is_caught_up_with_as_the_sums_say() -> None:
    sums = names()
    need = sums["rate"] * sums["spark"] / sums["executor_cores"]
    for executors, times, latency, lag, minutes in rows("executors | of what"):
        assert int(executors) == pytest.approx(need * float(times), abs=1)
        outcome = sums["burst"](int(executors))
        if outcome is None:
            assert (latency, lag, minutes) == ("grows", "grows", "never")
        else:
            assert shown(latency, outcome[0]) and shown(lag, outcome[1] / 1e9) and shown(minutes, outcome[2] / 60), executors
