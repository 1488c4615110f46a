"""How the live map shows consumer groups."""

from __future__ import annotations

import re
from dataclasses import replace

import ipywidgets

from kafkalab.widgets import ClusterMap
from kafkalab.widgets.fold import Fold
from kafkalab.widgets.group_rows import group_row, idle_row, is_idle
from kafkalab.widgets.watcher import Watcher
from widget_support import TOPIC, FakeCluster, find_all, group, healthy, html

ACTIVE = group(("c1", ((TOPIC, 0), (TOPIC, 1))), ("c2", ()), lag={(TOPIC, 0): 3, (TOPIC, 1): 0, (TOPIC, 2): 4})
EMPTY = group(state="Empty", id_="over", lag={(TOPIC, 0): 12})


def openers(map_: ClusterMap) -> list[ipywidgets.HTML]:
    return [piece for piece in find_all(map_, ipywidgets.HTML) if "<details" in piece.value]


def test_an_active_group_has_its_lag_and_its_members_with_their_partitions() -> None:
    row = group_row(ACTIVE)
    assert "mygroup" in row and "2 members" in row and "lag 7" in row
    assert re.findall(r'<i class="(\w+)"[^>]*>(\d+)</i>', row) == [("behind", "0"), ("owned", "1")]
    assert "no partitions" in row


def test_the_bar_grows_with_the_lag() -> None:
    shares = [
        int(re.search(r"width:(\d+)%", group_row(group(("c", ((TOPIC, 0),)), lag={(TOPIC, 0): lag})))[1])
        for lag in (0, 9, 99, 9_999, 1_000_000)
    ]
    assert shares == [0, 25, 50, 100, 100]


def test_a_group_of_several_topics_names_them() -> None:
    assert TOPIC not in re.sub(r'(title|data-spot)="[^"]*"', "", group_row(ACTIVE))
    both = group(("c1", ((TOPIC, 0), ("orders", 1))))
    assert f">{TOPIC}</span>" in group_row(both) and ">orders</span>" in group_row(both)


def test_more_members_than_have_room_are_counted() -> None:
    many = group(*((f"c{number}", ((TOPIC, number),)) for number in range(11)))
    row = group_row(many)
    assert row.count('<div class="member">') == 8 and "and 3 more" in row


def test_a_group_is_idle_if_nobody_reads_in_it_and_not_while_it_rebalances() -> None:
    assert is_idle(EMPTY) and is_idle(group(("c1", ())))
    assert not is_idle(ACTIVE) and not is_idle(group(("c1", ()), state="PreparingRebalance"))
    assert "preparing rebalance" in group_row(group(("c1", ()), state="PreparingRebalance"))
    assert "empty" in idle_row(EMPTY) and "lag 12" in idle_row(EMPTY)


def test_empty_groups_are_folded_and_the_fold_never_closes_by_itself(cluster: FakeCluster) -> None:
    """The browser would close a `<details>` whose widget gets another value."""
    cluster.view = replace(healthy(), groups={"mygroup": ACTIVE, "over": EMPTY})
    map_ = ClusterMap(cluster)
    look = Watcher.of(cluster).look
    look(groups=True)
    assert "1 empty group" in html(map_) and "over" in map_._idle_groups.value and "over" not in map_._groups.value
    before = [(opener, opener.value) for opener in openers(map_)]
    cluster.view = replace(healthy(), groups={"mygroup": EMPTY, "over": replace(EMPTY, lag={(TOPIC, 0): 40})})
    look(groups=True)
    assert "2 empty groups" in html(map_) and "lag 40" in map_._idle_groups.value
    assert [(opener, opener.value) for opener in openers(map_)] == before
    cluster.view = replace(healthy(), groups={"mygroup": ACTIVE})
    look(groups=True)
    assert map_._idle.widget.layout.display == "none"


def test_a_fold_has_a_name_for_screen_readers() -> None:
    fold = Fold("Idle groups", ipywidgets.HTML("content"))
    assert '<summary aria-label="Idle groups">' in html(fold.widget)


def test_a_map_without_groups_shows_none(cluster: FakeCluster) -> None:
    cluster.view = replace(healthy(), groups={"mygroup": ACTIVE})
    map_ = ClusterMap(cluster, groups=False)
    Watcher.of(cluster).look(groups=True)
    assert "mygroup" not in map_._groups.value
