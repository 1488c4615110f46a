"""The picture of a cluster, and the texts and boxes in it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from kafkalab.widgets.events import Event
from kafkalab.widgets.map_drawing import broker_rows, map_picture, summary
from kafkalab.widgets.svg import fit
from picture_support import SVG, svg_roots, texts
from widget_support import TOPIC, after_kill, broker, group, healthy, partition


def test_the_picture_names_what_it_shows() -> None:
    html = map_picture(after_kill(healthy())).html
    shown = texts(html)
    assert {"broker 0", "broker 1", "broker 2", "dead", "active controller"} <= set(shown)
    assert shown.count("up") == 2
    assert shown.count("active controller") == 1
    titles = [element.text for root in svg_roots(html) for element in root.iter(f"{SVG}title")]
    assert titles.count(f"{TOPIC}, partition 3: leader on 1; leader 1") == 1
    assert titles.count(f"{TOPIC}, partition 3: out of the ISR on 0; leader 1") == 1
    assert titles.count(f"{TOPIC}, partition 3: follower on 2; leader 1") == 1


def test_a_partition_stands_in_the_same_place_on_every_broker() -> None:
    boxes = [root for root in svg_roots(map_picture(healthy()).html) if root.find(f".//{SVG}rect/{SVG}title") is not None]
    places = [
        {
            r.findtext(f"{SVG}title").split(":")[0]: (r.get("x"), r.get("y"))
            for r in box.iter(f"{SVG}rect")
            if r.find(f"{SVG}title") is not None
        }
        for box in boxes
    ]
    assert len(places) == 3 and len(places[0]) == 13
    assert len({y for _, y in places[0].values()}) == 2, "two lines"
    for one, other in pairwise(places):
        shared = one.keys() & other.keys()
        assert shared and all(float(one[name][0]) == pytest.approx(float(other[name][0]), abs=1) for name in shared)


def test_a_stored_picture_holds_no_addresses_and_no_errors() -> None:
    events = [Event(1.0, "error", "kill broker 0 failed: /home/me"), Event(1.0, "fault", "kill broker 0")]
    bundle = map_picture(healthy(), events=events).bundle()
    for content in bundle.values():
        assert "127.0.0.1" not in content and "4000" not in content and "/home" not in content
    assert "kill broker 0" in texts(bundle["text/html"])


def test_all_that_comes_from_outside_is_escaped() -> None:
    nasty = '<script>"&'
    view = replace(
        healthy(1),
        brokers={0: broker(0, rack=nasty)},
        topics={nasty: (partition(0, (0,), topic=nasty),)},
        groups={nasty: group((nasty, ((nasty, 0),)), id_=nasty, state=nasty)},
    )
    html = map_picture(view, events=[Event(1.0, "topic", nasty)]).html
    assert "<script" not in html
    assert texts(html).count(nasty) == 4, "topic, its member and state, and the event"


def test_dedicated_controllers_have_rows_of_their_own() -> None:
    view = healthy()
    nodes = {**view.brokers, 100: broker(100, address=""), 101: broker(101, address="")}
    view = replace(view, brokers=nodes)
    assert broker_rows(view) == [(0, 1, 2), (100, 101)]
    assert "controller 100" in texts(map_picture(view).html)


def test_groups_show_members_partitions_and_lag() -> None:
    view = replace(healthy(), groups={"mygroup": group(("c1", ((TOPIC, 0),)), ("c2", ()), lag={(TOPIC, 0): 3, (TOPIC, 1): 4})})
    shown = texts(map_picture(view).html)
    assert {"group mygroup", "c1", "c2", "lag 3", "lag 7", "idle: owns nothing"} <= set(shown)
    assert "group mygroup" not in texts(map_picture(view, groups=False).html)


def test_only_the_topics_asked_for() -> None:
    view = replace(healthy(), topics={**healthy().topics, "other": (partition(0, topic="other"),)})
    assert "other" not in texts(map_picture(view, topics=[TOPIC, "no-such"]).html)


def test_the_summary_says_it_in_words() -> None:
    words = summary(after_kill(healthy()))
    assert "0 dead, 1 up" in words and "led by 1: 0, 1, 3, 4" in words and "13 with an incomplete ISR" in words


def test_fit_cuts_with_an_ellipsis() -> None:
    assert fit("short", 100, 12) == "short"
    assert fit("dangerous_driving-3", 84, 12, ending="-3") == "dangerous…-3"
    assert fit("x" * 100, 70, 12).endswith("…") and len(fit("x" * 100, 70, 12)) <= 11
