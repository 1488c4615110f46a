"""The plan for 10 million events a second: its page has the tool's tables, and the simulation does what queues do."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import bench_pipeline
from ten_million import FIGURES, PAGE, WHERE, Assumed, Burst, Measured, Plan, blocks, main, simulate, skew, slower, written

MEASURED = Measured(
    spark=60e-6,
    brokers=12e-6,
    database=3e-6,
    python=6e-6,
    decoding=100_000,
    size=70,
    alarms=40,
    rows=50,
    state_row=250,
    batch=0.5,
)


def test_the_page_has_the_tables_that_the_measured_figures_give(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text()
    tables = blocks(json.loads(FIGURES.read_text()), Assumed())
    assert written(page, tables) == page, "run tools/ten_million.py --write"
    assert all(text in page for text in tables.values())
    main([])
    assert capsys.readouterr().out.strip() == "\n\n".join(tables.values())


def test_tables_go_where_the_page_wants_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    saved = {
        "machine": "a machine",
        "figures": [{"what": what, "unit": "u", "values": [9, 1, 2]} for _, what, _ in WHERE.values()],
    }
    tables = blocks(saved, Assumed())
    assert tables["assumed"] in PAGE.read_text()
    page = written(PAGE.read_text(), tables)
    assert all(text in page for text in tables.values()) and "Not measured" not in page
    assert written(page, tables) == page
    assert "| memory of a row of state | 2.0 u | 1.0 – 9.0 |" in page
    monkeypatch.setattr("ten_million.FIGURES", tmp_path / "none")
    with pytest.raises(SystemExit, match="nothing is measured yet: run tools/bench.py"):
        main([])


def test_the_rows_of_the_bench_are_there() -> None:
    assert {row for row, _, _ in WHERE.values()} <= bench_pipeline.ROWS.keys()


def test_a_plan_grows_with_the_rate_and_never_below_three_brokers() -> None:
    small, large = Plan(1_000, MEASURED), Plan(10_000_000, replace(MEASURED, state_row=1000))
    assert (small.partitions, small.executors, small.brokers) == (1, 1, 3)
    assert (large.partitions, large.executors_to_work) == (1000, 250)
    assert large.executors == math.ceil(10e6 * 300 * 1000 * 2 / 16e9) == 375  # state decides
    assert large.incoming == pytest.approx(3.3e9) and large.outgoing == pytest.approx(3.3e9)
    assert large.disk == pytest.approx(3.3e9 * 86_400) and large.database_disk == pytest.approx(10e6 * 50 * 86_400)
    forgetful = Plan(large.rate, large.measured, replace(Assumed(), patience=10))
    assert forgetful.executors == large.executors_to_work and forgetful.cost < large.cost


def test_few_keys_leave_processors_idle() -> None:
    factors = [skew(keys, 100) for keys in (100, 1_000, 10_000, 100_000)]
    assert factors == sorted(factors, reverse=True) and factors[0] > 3 and 1 < factors[-1] < 1.15
    assert skew(5, 1) == 1


def test_only_reading_and_decoding_wait_for_the_fullest_partition() -> None:
    assert MEASURED.uneven == pytest.approx(20 / 60)  # of 60 µs, two processors need 20 for 100,000 events a second
    assert slower(2.5, MEASURED) == pytest.approx(1.5) and slower(1, MEASURED) == 1
    assert replace(MEASURED, decoding=1).uneven == 1


def test_a_limit_caps_what_a_stream_can_take() -> None:
    """By default a batch of 50,000 events starts once a second, however many executors there are."""
    burst = Burst(60_000)
    assert simulate(burst, 1_000, 60e-6, 0.5, most=50_000).caught_up == math.inf
    assert simulate(Burst(40_000), 1_000, 60e-6, 0.5, most=50_000).caught_up == pytest.approx(
        9 * 40_000 * 60 / 10_000 - 60, rel=0.1
    )
    free, limited = (simulate(burst, 5, 60e-6, 0.5, most=most) for most in (math.inf, 600_000))
    assert free.caught_up < limited.caught_up < 1.5 * free.caught_up


def test_what_cannot_keep_up_never_catches_up() -> None:
    burst = Burst(10_000)
    assert simulate(burst, 0.99, 100e-6, 0.5).caught_up == math.inf
    assert simulate(burst, 1.5, 100e-6, 0.5, unfair=1.6).caught_up == math.inf  # one partition holds all up


def test_more_processors_catch_up_sooner() -> None:
    burst = Burst(10_000)
    outcomes = [simulate(burst, cores, 100e-6, 0.5) for cores in (1.2, 1.5, 2, 4, 20)]
    for what in ("caught_up", "latency"):
        values = [getattr(outcome, what) for outcome in outcomes]
        assert values == sorted(values, reverse=True), what
    assert outcomes[-1].lag < outcomes[0].lag / 10
    # In the burst 85,000 events a second too many come for 1.5 processors; afterwards they work off 5,000 a second more than come.
    assert outcomes[1].caught_up == pytest.approx((10 - 1.5) * 60 / 0.5, rel=0.1)
    assert outcomes[-1].latency == 2  # a trigger of a second


def test_a_burst_counts_its_events() -> None:
    burst = Burst(100, times=10, start=60, seconds=60)
    assert [burst.arrived(time) for time in (0, 60, 61, 120, 200)] == [0, 6_000, 7_000, 66_000, 74_000]
