"""The dashboard of chapter 11: its figures, and what it draws of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from kafkacourse.ch11_spark_pipeline.dashboard_drawing import draw_dashboard, in_words
from kafkacourse.ch11_spark_pipeline.reading import Place, Rate, Reading, _Delay, _latency, _rate
from kafkalab.widgets.picture import flow
from picture_support import texts
from truck_pipeline import Trucks


def test_the_rates_of_a_micro_batch() -> None:
    """What a stream took is by the time since the batch before it began; the first one has none."""
    first = {"timestamp": "2026-01-01T00:00:10Z", "numInputRows": 300, "durationMs": {"triggerExecution": 500}}
    began = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC).timestamp()
    assert _rate(first) == Rate(began, 0.0, 600.0)
    assert _rate(first | {"inputRowsPerSecond": 150.0}) == Rate(began, 150.0, 600.0)


def test_the_dashboard_draws_what_was_read() -> None:
    places = tuple(Place(e.latitude, e.longitude, e.kind) for r in Trucks().reports(300) if (e := r.event) and e.dangerous)
    rates = tuple(Rate(1.0 * n, 100 + n, 900.0) for n in range(50))
    reading = Reading(True, 1234, 56, (("Lila <Page>", 30, 400), ("driver 28", 26, 500)), places, rates, (1.25, 3.5), 4321, 17)
    drawn = texts(flow(draw_dashboard(reading), in_words(reading)))
    for tile, value in (("events per second", "149"), ("rows of state", "4,321"), ("lag", "17")):
        assert drawn[drawn.index(tile) + 1] == value
    assert {"taken", "could be processed"} < set(drawn)
    for shown in ("1,234", "Lila <Page>", "30 of 400", "driver 28", "1.2 s · 3.5 s", "4,321", "Chicago", "Overspeed"):
        assert shown in drawn, shown
    assert in_words(reading) == (
        "1234 events in the tables, 56 of them dangerous; most of them by Lila <Page>; lag 17; the stream runs"
    )
    slow = texts(flow(draw_dashboard(replace(reading, latency=(11.14, 129.4))), ""))
    assert "11 s · 129 s" in slow
    nothing = Reading()
    assert "stopped" in texts(flow(draw_dashboard(nothing), in_words(nothing))) and "no stream runs" in in_words(nothing)


def test_latency_of_all_events() -> None:
    quick, slow = _Delay(98, 1.5, 2.0), _Delay(2, 10.0, 11.0)
    assert _latency([slow, quick]) == (1.5, 11.0) and _latency([quick]) == (1.5, 2.0)
