"""The picture of a cluster, and the texts and boxes in it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from kafkalab.widgets.events import Event
from kafkalab.widgets.map_drawing import broker_rows, map_picture, summary
from kafkalab.widgets.svg import fit
from widget_support import SVG, TOPIC, after_kill, broker, group, healthy, partition, svg_texts


def test_the_picture_is_svg_and_names_what_it_shows() -> None:
    svg = map_picture(after_kill(healthy())).svg
    shown = svg_texts(svg)
    assert {"broker 0", "broker 1", "broker 2", "dead", "active controller"} <= set(shown)
    assert shown.count("up") == 2
    assert shown.count("active controller") == 1
    titles = [element.text for element in ET.fromstring(svg).iter(f"{SVG}title")]
    assert titles.count(f"{TOPIC}, partition 3: leader on 1; leader 1") == 1
    assert titles.count(f"{TOPIC}, partition 3: out of the ISR on 0; leader 1") == 1
    assert titles.count(f"{TOPIC}, partition 3: follower on 2; leader 1") == 1


def test_thirteen_partitions_on_three_brokers_stand_in_one_line() -> None:
    squares = [r for r in ET.fromstring(map_picture(healthy()).svg).iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    assert len(squares) == 39
    assert len({r.get("y") for r in squares}) == 1


@pytest.mark.parametrize("brokers", [1, 2, 3, 4, 5, 6, 7, 12])
def test_nothing_is_drawn_outside(brokers: int) -> None:
    picture = ET.fromstring(map_picture(healthy(30, brokers)).svg)
    for r in picture.iter(f"{SVG}rect"):
        assert float(r.get("x")) >= -10 and float(r.get("x")) + float(r.get("width")) <= 910.01


def test_a_stored_picture_holds_no_addresses_and_no_errors() -> None:
    events = [Event(1.0, "error", "kill broker 0 failed: /home/me"), Event(1.0, "fault", "kill broker 0")]
    bundle = map_picture(healthy(), events=events).bundle()
    for content in bundle.values():
        assert "127.0.0.1" not in content and "4000" not in content and "/home" not in content
    assert "kill broker 0" in svg_texts(bundle["image/svg+xml"])


def test_all_that_comes_from_outside_is_escaped() -> None:
    nasty = '<script>"&'
    view = replace(
        healthy(1),
        brokers={0: broker(0, rack=nasty)},
        topics={nasty: (partition(0, (0,), topic=nasty),)},
        groups={nasty: group((nasty, ((nasty, 0),)), id_=nasty, state=nasty)},
    )
    svg = map_picture(view, events=[Event(1.0, "topic", nasty)]).svg
    assert "<script" not in svg
    assert nasty in svg_texts(svg)


def test_dedicated_controllers_have_rows_of_their_own() -> None:
    view = healthy()
    nodes = {**view.brokers, 100: broker(100, address=""), 101: broker(101, address="")}
    view = replace(view, brokers=nodes)
    assert broker_rows(view) == [(0, 1, 2), (100, 101)]
    assert "controller 100" in svg_texts(map_picture(view).svg)


def test_many_brokers_are_spread_evenly_over_rows() -> None:
    assert broker_rows(healthy(brokers=7)) == [(0, 1, 2, 3), (4, 5, 6)]


def test_groups_show_members_partitions_and_lag() -> None:
    view = replace(healthy(), groups={"mygroup": group(("c1", ((TOPIC, 0),)), ("c2", ()), lag={(TOPIC, 0): 3, (TOPIC, 1): 4})})
    shown = svg_texts(map_picture(view).svg)
    assert {"group mygroup", "c1", "c2", "lag 3", "lag 7", "idle: owns nothing"} <= set(shown)
    assert "group mygroup" not in svg_texts(map_picture(view, groups=False).svg)


def test_only_the_topics_asked_for() -> None:
    view = replace(healthy(), topics={**healthy().topics, "other": (partition(0, topic="other"),)})
    assert "other" not in svg_texts(map_picture(view, topics=[TOPIC, "no-such"]).svg)


def test_the_summary_says_it_in_words() -> None:
    words = summary(after_kill(healthy()))
    assert "0 dead, 1 up" in words and "led by 1: 0, 1, 3, 4" in words and "13 with an incomplete ISR" in words


def test_fit_cuts_with_an_ellipsis() -> None:
    assert fit("short", 100, 12) == "short"
    assert fit("dangerous_driving-3", 84, 12, ending="-3") == "dangerous…-3"
    assert fit("x" * 100, 70, 12).endswith("…") and len(fit("x" * 100, 70, 12)) <= 11
