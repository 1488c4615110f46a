"""The truck pipeline without Kafka and Spark: what trucks report, and which answers that gives."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from kafkalab.widgets.svg import document
from pipeline import DRIVERS, Trucks, answers
from pipeline.__main__ import main
from pipeline.dashboard_drawing import draw_dashboard, in_words
from pipeline.ledger import Answers
from pipeline.reading import Place, Rate, Reading
from pipeline.settings import Settings
from pipeline.trucks import Event

EVENTS = 4000


def test_the_same_trucks_report_the_same() -> None:
    assert Trucks().reports(300) == Trucks().reports(300) != Trucks(seed=12).reports(300)
    first = Trucks().reports(1)[0].event
    assert first == Event(1506974400000, 105, 35, 1198242881, "Unsafe following distance", 41.6559, -87.8085, "105-000000")


def test_what_goes_wrong_on_the_way() -> None:
    reports = Trucks().reports(EVENTS)
    events = [report.event for report in reports if report.event]
    copies = Counter(event.correlation for event in events)
    assert len(copies) == EVENTS
    assert 0.01 < sum(copies.values()) / EVENTS - 1 < 0.03  # repeats
    spoilt = [report.malformed for report in reports if not report.event]
    assert 0.005 < len(spoilt) / EVENTS < 0.015 and len(set(spoilt)) == 4
    ahead, late = 0, []
    for event in events:
        ahead = max(ahead, event.timestamp)
        late.append((ahead - event.timestamp) / 1000)
    assert 10 < max(late) <= 32  # seconds: within the pipeline's patience
    assert 0.02 < sum(seconds > 1.5 for seconds in late) / len(late) < 0.05


def test_trucks_stay_on_their_routes() -> None:
    events = [report.event for report in Trucks().reports(EVENTS) if report.event]
    assert all(38 < event.latitude < 42 and -95 < event.longitude < -87 for event in events)
    assert len({event.driver for event in events}) == 12
    assert {driver.id for driver in DRIVERS} == {event.driver for event in events} - {28}


def test_answers_from_a_ledger() -> None:
    kinds = {"a": (1_000, "Normal"), "b": (59_999, "Overspeed"), "c": (60_000, "Overspeed")}
    events = [Event(time, 1, 11, 5, kind, 40.0, -90.0, name) for name, (time, kind) in kinds.items()]
    events.append(Event(61_000, 2, 28, 5, "Lane Departure", 40.0, -90.0, "d"))
    found = answers(events)
    assert found.counts == {(0, 11): (2, 1), (60, 11): (1, 1), (60, 28): (1, 1)} and found.events == 4
    assert found.dangerous == {"b": (11, "Micky Isaacson"), "c": (11, "Micky Isaacson"), "d": (28, None)}
    random.Random(1).shuffle(events)
    assert answers(events + events[:2]) == found
    assert answers(events[:2]).lacks(found) == 4 - len(events[:2]) and found.lacks(Answers({}, {})) == 0


def test_settings_do_not_show_the_password() -> None:
    settings = Settings({"kafka.bootstrap.servers": "here"}, "http://registry", "postgresql://me:secret@here/db", "/tmp/point")
    assert "secret" not in repr(settings)


def test_the_sink_sends_in_batches_unless_told_otherwise() -> None:
    given = {"kafka.bootstrap.servers": "here:1"}
    assert Settings(given, "", "", "").sink("alarms") == {**given, "topic": "alarms", "kafka.linger.ms": "20"}
    assert Settings({**given, "kafka.linger.ms": "0"}, "", "", "").sink("alarms")["kafka.linger.ms"] == "0"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "required: --bootstrap-servers, --registry, --checkpoint"),
        (
            ["--bootstrap-servers", "a:1", "--registry", "http://b", "--checkpoint", "c"],
            "give --database, or set PIPELINE_DATABASE",
        ),
        (["--kafka", "sasl"], "'sasl' isn't NAME=VALUE"),
    ],
)
def test_a_command_line_that_lacks_something(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIPELINE_DATABASE", raising=False)
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err


def test_the_dashboard_draws_what_was_read() -> None:
    places = tuple(Place(e.latitude, e.longitude, e.kind) for r in Trucks().reports(300) if (e := r.event) and e.dangerous)
    rates = tuple(Rate(1.0 * n, 100 + n, 900.0) for n in range(50))
    reading = Reading(3, 1234, 56, (("Lila <Page>", 30, 400), ("driver 28", 26, 500)), places, rates, (1.25, 3.5), 4321, 17)
    drawing = document(draw_dashboard(reading), in_words(reading))
    ElementTree.fromstring(drawing)  # it is XML, whatever names it holds
    for shown in ("1,234", "Lila &lt;Page&gt;", "30 of 400", "driver 28", "1.2 s · 3.5 s", "4,321", "Chicago", "Overspeed"):
        assert shown in drawing, shown
    assert in_words(reading) == (
        "1234 events in the tables, 56 of them dangerous; most of them by Lila <Page>; lag 17; the streams run"
    )
    slow = document(draw_dashboard(replace(reading, latency=(11.14, 129.4))), "")
    assert "11 s · 129 s" in slow
    nothing = Reading()
    assert "stopped" in document(draw_dashboard(nothing), in_words(nothing)) and "no stream runs" in in_words(nothing)
