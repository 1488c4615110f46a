"""Where the live map puts topics: rows, chips and folds, and in which order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kafkalab.cluster.view import ClusterView, PartitionView
from kafkalab.widgets import ClusterMap
from kafkalab.widgets.events import Event
from kafkalab.widgets.topic_order import TopicOrder, arrange
from kafkalab.widgets.topic_rows import topic_chips, topic_row
from kafkalab.widgets.watcher import Watcher
from widget_support import TOPIC, FakeCluster, after_kill, broker, healthy, html, partition


def with_topics(shapes: dict[str, int]) -> ClusterView:
    """Three brokers and topics of so many partitions."""
    return replace(healthy(), topics={name: partitions(name, number) for name, number in shapes.items()})


def partitions(topic: str, number: int) -> tuple[PartitionView, ...]:
    return tuple(partition(p, topic=topic) for p in range(number))


def changed(topic: str, at: float) -> Event:
    return Event(at, "isr", "", topic)


def names(markup: str) -> list[str]:
    return re.findall(r'<div class="topic"><b title="[^"]*">([^<]*)</b>', markup)


def arranged(view: ClusterView, named: Sequence[str] = ()) -> tuple[tuple[str, ...], ...]:
    where = arrange(view, TopicOrder(named).of(view.topics), named, columns=3)
    return where.rows, where.chips, where.folded


def test_topics_that_changed_last_come_first_and_those_that_the_caller_named_before_them() -> None:
    order = TopicOrder(["named", "also-named"])
    topics = ["also-named", "b", "c", "d", "named"]
    assert order.of(topics) == ["named", "also-named", "b", "c", "d"]
    order.note([changed("c", 100.0)])
    order.note([changed("d", 200.0)])
    assert order.of(topics) == ["named", "also-named", "d", "c", "b"]


def test_topics_keep_their_order_while_the_consequences_of_one_fault_come_in() -> None:
    order = TopicOrder([])
    order.note([changed(topic, 100.0) for topic in "ab"])
    order.note([changed("b", 102.0)])
    assert order.of("abc") == ["a", "b", "c"]


def test_topics_of_one_partition_share_a_line_if_there_are_more_than_two() -> None:
    assert arranged(with_topics({"one": 1, "two": 1, "wide": 3})) == (("one", "two", "wide"), (), ())
    assert arranged(with_topics({"one": 1, "two": 1, "three": 1, "wide": 3})) == (("wide",), ("one", "three", "two"), ())
    rows, chips, _ = arranged(with_topics({"one": 1, "two": 1, "three": 1, "four": 1}), named=["two"])
    assert (rows, chips) == (("two",), ("four", "one", "three"))


def test_what_does_not_fit_is_folded_and_a_change_brings_it_forward(cluster: FakeCluster) -> None:
    cluster.view = with_topics({f"topic-{number:02}": 3 for number in range(20)})
    map_ = ClusterMap(cluster)
    rows, more = map_._rows, map_._more_rows
    shown = names(rows.value)
    assert shown == [f"topic-{number:02}" for number in range(len(shown))]
    assert len(names(more.value)) == 20 - len(shown)
    assert f"{20 - len(shown)} more topics" in html(map_)
    topics = dict(cluster.view.topics)
    topics["topic-19"] = tuple(replace(p, isr=(0, 1)) for p in topics["topic-19"])
    cluster.view = replace(cluster.view, topics=topics)
    Watcher.of(cluster).look()
    assert names(rows.value) == ["topic-19", *shown[:-1]]


def test_the_topics_that_a_cell_names_come_first_and_the_others_follow(cluster: FakeCluster) -> None:
    cluster.view = with_topics({"a": 3, "b": 3, "c": 3})
    assert names(ClusterMap(cluster, topics=["c", "no-such"])._rows.value) == ["c", "a", "b"]


def test_however_many_topics_there_are_the_first_has_a_row() -> None:
    rows, _, folded = arranged(with_topics({"large": 900, "small": 3}))
    assert (rows, folded) == (("large",), ("small",))


def test_a_replica_shows_what_it_is_by_more_than_its_colour() -> None:
    view = after_kill(healthy(3), 0)
    lagging = tuple(replace(p, isr=(p.leader,)) for p in view.topics[TOPIC])
    row = topic_row(replace(view, topics={TOPIC: lagging}), TOPIC, [0, 1, 2])
    assert re.findall(r'aria-label="([^"]*)"', row) == [
        "broker 0: down 0, 1, 2",
        "broker 1: leads 0, 1; out of the ISR 2",
        "broker 2: leads 2; out of the ISR 0, 1",
    ]
    assert row.count('<i class="down') == 3 and row.count('<i class="leader') == 3 and row.count('<i class="out') == 3


def test_a_row_says_what_is_amiss() -> None:
    parts = (partition(0), partition(1, leaderless=True, isr=(2,)), partition(2, isr=(0,)))
    row = topic_row(replace(healthy(), topics={TOPIC: parts}), TOPIC, [0, 1, 2])
    assert "no leader: p1; 2 of 3 with an incomplete ISR" in row
    assert 'class="bad"' not in topic_row(healthy(), TOPIC, [0, 1, 2])


def test_a_chip_tells_the_leader_and_what_is_amiss() -> None:
    topics = {
        "well": partitions("well", 1),
        "lags": (partition(0, isr=(0, 1)),),
        "lost": (partition(0, leaderless=True),),
    }
    chips = re.sub(r'<span data-spot="[^"]*">([^<]*)</span>', r"\1", topic_chips(replace(healthy(), topics=topics), topics))
    assert re.findall(r'<span([^>]*?) title="[^"]*">([^<]*)</span>', chips) == [
        ("", "well → 0"),
        (' class="bad"', "lags → 0, ISR 2 of 3"),
        (' class="bad"', "lost → no leader"),
    ]


def test_each_broker_is_a_column_and_controllers_stand_above(cluster: FakeCluster) -> None:
    view = healthy(12, brokers=6)
    cluster.view = replace(view, brokers={**view.brokers, 100: broker(100, address="", controller=True)})
    map_ = ClusterMap(cluster)
    controllers, brokers = map_._nodes.widget.children
    assert (len(controllers.children), len(brokers.children)) == (1, 6)
    assert f"grid-template-columns:{brokers.layout.grid_template_columns}" in map_._rows.value  # below their heads
    assert "controller 100" in html(controllers) and "controller 100" not in html(brokers)


def test_all_that_comes_from_outside_is_escaped(cluster: FakeCluster) -> None:
    nasty = '<script>"&'
    view = with_topics({nasty: 3, f"{nasty}1": 1, f"{nasty}2": 1, f"{nasty}3": 1})
    cluster.view = replace(view, brokers={**view.brokers, 0: broker(0, rack=nasty)})
    assert "<script" not in html(ClusterMap(cluster))
