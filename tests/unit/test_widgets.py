import ast
import json
import re
import sys
import threading
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

import kafkalab
from kafkalab.checks import Lab, Unmet, check, hint, learner
from kafkalab.cluster import running
from kafkalab.cluster.view import BrokerView, ClusterView, Fault, GroupView, MemberView, PartitionView
from kafkalab.course import Content, Course
from kafkalab.errors import KafkaLabError, UnknownBroker
from kafkalab.progress import LabProgress, ProgressRecord, QuizProgress, load, record_prediction
from kafkalab.waiting import wait_until
from kafkalab.widgets import ClusterMap, LabCard, Predict, Progress, Quiz, Terminals, Timeline, folded_errors, lab_card
from kafkalab.widgets import live as live_module
from kafkalab.widgets import watcher as watcher_module
from kafkalab.widgets.events import Event, events_between
from kafkalab.widgets.folded_errors import fold_errors
from kafkalab.widgets.map_drawing import CARD_WIDTH, broker_rows, draw_group, draw_row, map_picture, summary
from kafkalab.widgets.palette import THEMED
from kafkalab.widgets.panel import ClusterPanel
from kafkalab.widgets.progress_table import progress_html, progress_text
from kafkalab.widgets.quiz import quiz_html, quiz_text
from kafkalab.widgets.quiz_data import load_quiz, quiz_names
from kafkalab.widgets.svg import document, fit
from kafkalab.widgets.terminals_drawing import Pane, pane_html, panes_html, panes_text
from kafkalab.widgets.timeline_drawing import Ack, Mark, describe_gaps, draw_timeline, longest_gap, partition_gaps
from kafkalab.widgets.watcher import Watcher, with_states

TOPIC = "my-failsafe-topic"
SVG = "{http://www.w3.org/2000/svg}"


def broker(id_, state="up", rack=None, controller=False, address=None):
    return BrokerView(id_, f"127.0.0.1:{40000 + id_}" if address is None else address, rack, state, controller, True)


def partition(number, replicas=(0, 1, 2), leader="preferred", isr=None, topic=TOPIC):
    leader = replicas[0] if leader == "preferred" else leader
    return PartitionView(topic, number, leader, 0, replicas, replicas if isr is None else isr)


def healthy(partitions=13, brokers=3):
    parts = tuple(partition(p, tuple((p + i) % brokers for i in range(min(3, brokers)))) for p in range(partitions))
    nodes = {i: broker(i, controller=i == 0) for i in range(brokers)}
    return ClusterView("id", 0, 5, nodes, {TOPIC: parts})


def after_kill(view, dead=0):
    controller = 0 if dead else 1
    states = {i: (node if i != dead else replace(node, state="dead")) for i, node in view.brokers.items()}
    brokers = {i: replace(node, controller=i == controller) for i, node in states.items()}
    moved = []
    for p in view.topics[TOPIC]:
        isr = tuple(i for i in p.isr if i != dead)
        moved.append(replace(p, isr=isr, leader=isr[0] if p.leader == dead else p.leader))
    return replace(view, brokers=brokers, controller=controller, controller_epoch=6, topics={TOPIC: tuple(moved)})


def texts(before, after, at=100.0, faults=()):
    return [event.text for event in events_between(before, after, at, faults)]


def svg_texts(svg):
    return [element.text for element in ET.fromstring(svg).iter(f"{SVG}text")]


# -- events


def test_no_change_is_no_event():
    assert texts(healthy(), healthy()) == []


def test_one_partition_tells_old_and_new_leader_isr_and_the_time_since_the_fault():
    before, after = (
        replace(healthy(), topics={TOPIC: (partition(3, leader=leader, isr=isr),)}) for leader, isr in ((0, None), (2, (1, 2)))
    )
    assert texts(before, after, 101.9, [Fault(100.0, "kill", 0)]) == [
        f"{TOPIC}: partition 3: leader 0 → 2, ISR 2,1, after 1.9 s"
    ]


def test_partitions_that_move_alike_share_a_line():
    lines = texts(healthy(), after_kill(healthy()), 101.9, [Fault(100.0, "kill", 0)])
    assert lines == [
        "broker 0: up → dead, after 1.9 s",
        "active controller 0 → 1, epoch 6, after 1.9 s",
        f"{TOPIC}: partitions 0, 3, 6, 9, 12 now led by 1, ISR 1,2, after 1.9 s",
        f"{TOPIC}: broker 0 left the ISR of partitions 1, 2, 4, 5, 7, 8, 10, 11, after 1.9 s",
    ]


def test_a_broker_that_returns_joins_the_isr_of_all_partitions():
    down = after_kill(healthy())
    back = replace(down, topics={TOPIC: tuple(replace(p, isr=(0, 1, 2)) for p in down.topics[TOPIC])})
    assert texts(down, back) == [f"{TOPIC}: broker 0 joined the ISR of all 13 partitions"]


def test_partitions_without_a_leader():
    before = replace(healthy(), topics={TOPIC: tuple(partition(p) for p in range(3))})
    after = replace(before, topics={TOPIC: (*(partition(p, leader=None) for p in range(2)), partition(2))})
    assert texts(before, after) == [f"{TOPIC}: partitions 0, 1 without a leader"]
    assert texts(after, before) == [f"{TOPIC}: partitions 0, 1 now led by 0, ISR 0,1,2"]


def test_time_is_told_only_after_a_fault_that_came_before_and_not_long_ago():
    before, after = healthy(), after_kill(healthy())
    assert all("after" not in line for line in texts(before, after, 100.0, [Fault(100.5, "kill", 0)]))
    assert all("after" not in line for line in texts(before, after, 900.0, [Fault(100.0, "kill", 0)]))
    assert all("after 2.0 s" in line for line in texts(before, after, 102.0, [Fault(10.0, "kill", 1), Fault(100.0, "kill", 0)]))


def test_topics_come_and_go_and_grow():
    without = replace(healthy(), topics={})
    assert texts(without, healthy()) == [f"{TOPIC}: created, 13 partitions, 3 replicas of each"]
    assert texts(healthy(), without) == [f"{TOPIC}: deleted"]
    assert texts(healthy(13), healthy(15)) == [f"{TOPIC}: partitions 13, 14 added"]


def test_reassigned_replicas():
    before, after = (replace(healthy(), topics={TOPIC: (partition(0, replicas),)}) for replicas in ((0, 1), (0, 2)))
    assert f"{TOPIC}: partition 0: replicas 0,1 → 0,2" in texts(before, after)


def test_brokers_and_controllers_come_and_go():
    assert texts(healthy(brokers=3), replace(healthy(brokers=3), brokers=healthy(brokers=4).brokers)) == ["broker 3 added: up"]
    assert "no active controller (was 0)" in texts(healthy(), replace(healthy(), controller=None))
    assert "active controller none → 0, epoch 5" in texts(replace(healthy(), controller=None), healthy())


def group(*members, state="Stable", lag=None, id_="mygroup"):
    return GroupView(id_, state, tuple(MemberView(f"{name}-x", name, parts) for name, parts in members), lag or {})


def test_groups_tell_who_owns_how_much_once_they_are_settled():
    quiet = healthy()
    both = replace(quiet, groups={"mygroup": group(("c1", ((TOPIC, 0), (TOPIC, 1))), ("c2", ((TOPIC, 2),)), ("c3", ()))})
    moving = replace(quiet, groups={"mygroup": group(("c1", ()), state="PreparingRebalance")})
    empty = replace(quiet, groups={"mygroup": group(state="Empty")})
    assert texts(quiet, both) == ["group mygroup: 3 members own partitions: c1 2, c2 1, c3 idle"]
    assert texts(both, moving) == []
    assert texts(both, empty) == ["group mygroup: no members"]
    assert texts(both, replace(both, groups={"mygroup": replace(both.groups["mygroup"], lag={(TOPIC, 0): 7})})) == []


# -- the map's picture


def test_the_picture_is_svg_and_names_what_it_shows():
    svg = map_picture(after_kill(healthy())).svg
    shown = svg_texts(svg)
    assert {"broker 0", "broker 1", "broker 2", "dead", "active controller"} <= set(shown)
    assert shown.count("up") == 2
    assert shown.count("active controller") == 1
    titles = [element.text for element in ET.fromstring(svg).iter(f"{SVG}title")]
    assert titles.count(f"{TOPIC}, partition 3: leader on 1; leader 1") == 1
    assert titles.count(f"{TOPIC}, partition 3: out of the ISR on 0; leader 1") == 1
    assert titles.count(f"{TOPIC}, partition 3: follower on 2; leader 1") == 1


def test_thirteen_partitions_on_three_brokers_stand_in_one_line():
    squares = [r for r in ET.fromstring(map_picture(healthy()).svg).iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    assert len(squares) == 39
    assert len({r.get("y") for r in squares}) == 1


@pytest.mark.parametrize("brokers", [1, 2, 3, 4, 5, 6, 7, 12])
def test_nothing_is_drawn_outside(brokers):
    picture = ET.fromstring(map_picture(healthy(30, brokers)).svg)
    for r in picture.iter(f"{SVG}rect"):
        assert float(r.get("x")) >= -10 and float(r.get("x")) + float(r.get("width")) <= 910.01


def test_a_stored_picture_holds_no_addresses_and_no_errors():
    events = [Event(1.0, "error", "kill broker 0 failed: /home/me"), Event(1.0, "fault", "kill broker 0")]
    bundle = map_picture(healthy(), events=events).bundle()
    for content in bundle.values():
        assert "127.0.0.1" not in content and "4000" not in content and "/home" not in content
    assert "kill broker 0" in svg_texts(bundle["image/svg+xml"])


def test_all_that_comes_from_outside_is_escaped():
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


def test_dedicated_controllers_have_rows_of_their_own():
    view = healthy()
    nodes = view.brokers | {100: broker(100, address=""), 101: broker(101, address="")}
    view = replace(view, brokers=nodes)
    assert broker_rows(view) == [(0, 1, 2), (100, 101)]
    assert "controller 100" in svg_texts(map_picture(view).svg)


def test_many_brokers_are_spread_evenly_over_rows():
    assert broker_rows(healthy(brokers=7)) == [(0, 1, 2, 3), (4, 5, 6)]


def test_groups_show_members_partitions_and_lag():
    view = replace(healthy(), groups={"mygroup": group(("c1", ((TOPIC, 0),)), ("c2", ()), lag={(TOPIC, 0): 3, (TOPIC, 1): 4})})
    shown = svg_texts(map_picture(view).svg)
    assert {"group mygroup", "c1", "c2", "lag 3", "lag 7", "idle: owns nothing"} <= set(shown)
    assert "group mygroup" not in svg_texts(map_picture(view, groups=False).svg)


def test_only_the_topics_asked_for():
    view = replace(healthy(), topics={**healthy().topics, "other": (partition(0, topic="other"),)})
    assert "other" not in svg_texts(map_picture(view, topics=[TOPIC, "no-such"]).svg)


def test_the_summary_says_it_in_words():
    words = summary(after_kill(healthy()))
    assert "0 dead, 1 up" in words and "led by 1: 0, 1, 3, 4" in words and "13 with an incomplete ISR" in words


def test_a_live_picture_follows_the_theme():
    live = document(draw_row(healthy(), (0,), None, THEMED, CARD_WIDTH), "broker 0", palette=THEMED, live=True)
    assert "var(--jp-" in live
    ET.fromstring(live)


def test_live_drawings_fit_a_narrow_panel_with_text_of_12_pixels():
    view = healthy(30, 6)
    view = replace(view, brokers=view.brokers | {0: broker(0, "isolated", rack="a-rack-with-a-long-name", controller=True)})
    owned = tuple((TOPIC, number) for number in range(30))
    long = group(("a-member-with-a-long-name", owned), lag={(TOPIC, 3): 7}, id_="a-group-with-a-long-name")
    groups = [long, group(state="Empty")]
    drawings = [draw_row(view, (id_,), None, THEMED, CARD_WIDTH) for id_ in view.brokers]
    drawings += [draw_group(group_, THEMED) for group_ in groups]
    for drawing in drawings:
        assert drawing.width == CARD_WIDTH <= 330  # a panel of 360 pixels has margins and a scroll bar
        picture = ET.fromstring(document(drawing, "title", palette=THEMED, live=True))
        for element in picture.iter(f"{SVG}text"):
            assert float(element.get("font-size")) >= 12, element.text
        for r in picture.iter(f"{SVG}rect"):
            assert float(r.get("x")) >= 0 and float(r.get("x")) + float(r.get("width")) <= CARD_WIDTH


def test_fit_cuts_with_an_ellipsis():
    assert fit("short", 100, 12) == "short"
    assert fit("dangerous_driving-3", 84, 12, ending="-3") == "dangerous…-3"
    assert fit("x" * 100, 70, 12).endswith("…") and len(fit("x" * 100, 70, 12)) <= 11


# -- the live map


class FakeCluster:
    """Follows the interface of `Cluster` as far as widgets use it."""

    backend = "local"

    def __init__(self, name="cluster"):
        self.name = name
        self.faults = []
        self.view = healthy()
        self.callbacks = []
        self.answers = True
        self.killing = threading.Event()
        self.kill_error = None

    def describe(self, groups=True, internal=False):
        if not self.answers:
            raise RuntimeError("no answer from any broker")
        return self.view if groups else replace(self.view, groups={})

    def states(self):
        return {id_: node.state for id_, node in self.view.brokers.items()}

    def on_stop(self, callback):
        self.callbacks.append(callback)

    def stop(self):
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()

    def kill(self, broker):
        self.killing.set()
        if self.kill_error:
            raise self.kill_error
        self.faults.append(Fault(time.time(), "kill", broker))
        self.view = after_kill(self.view, broker)

    pause = resume = restart = kill


@pytest.fixture
def shown(monkeypatch):
    """What was displayed, by display id: the newest bundle last."""
    found = {}

    def show(bundle, *, raw, display_id):
        found.setdefault(display_id, []).append(bundle)

    monkeypatch.setattr(live_module, "display", show)
    monkeypatch.setattr(live_module, "update_display", show)
    return found


@pytest.fixture
def folder_of_progress(monkeypatch, tmp_path):
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path))


@pytest.fixture
def cluster():
    fake = FakeCluster()
    yield fake
    fake.stop()


def value_of(map_):
    return "".join(node._picture.value for node in map_._nodes.values()) + map_._status.value + map_._log.value


def test_the_map_moves_within_half_a_second(cluster):
    """It looks often enough for that; other tests may have the processor meanwhile."""
    assert watcher_module._INTERVAL <= 0.2
    map_ = ClusterMap(cluster)
    wait_until(lambda: "broker 0" in value_of(map_), 30, "the map to be drawn")
    cluster.kill(0)
    wait_until(lambda: ">dead<" in value_of(map_), 30, "the map to show it")
    # That broker 0 is dead may be known from its process, before the brokers tell who leads now.
    led = re.compile(r"now led by 1, ISR 1,2, after \d+\.\d s")
    wait_until(lambda: any(map(led.search, map_.events)), 30, "the map to tell who leads", last_seen=lambda: map_.events)
    assert map_.events[0] == "kill broker 0"


def test_a_fault_that_was_taken_back_hides_none_of_those_to_come(cluster):
    map_ = ClusterMap(cluster)
    cluster.faults.append(Fault(time.time(), "stop", 1))
    wait_until(lambda: "stop broker 1" in map_.events, 30, "the map to tell of it")
    cluster.faults[:] = [Fault(time.time(), "kill", 2)]  # the stop failed
    wait_until(lambda: "kill broker 2" in map_.events, 30, "the map to tell of the next one")


def test_the_map_shows_what_became_of_the_only_broker_although_nobody_answers(cluster):
    map_ = ClusterMap(cluster)
    wait_until(lambda: "broker 0" in value_of(map_), 30, "the map to be drawn")
    cluster.answers = False
    cluster.kill(0)
    wait_until(lambda: ">dead<" in value_of(map_), 30, "the map to show it")
    wait_until(lambda: "no broker answers" in map_._status.value, 30, "the map to say so")
    cluster.answers = True
    wait_until(lambda: "no broker answers" not in map_._status.value, 30, "the map to see again")


def test_what_is_known_last_is_corrected_by_the_states_of_the_processes():
    view = healthy()
    view = replace(view, brokers=view.brokers | {1: broker(1, "starting")})
    later = with_states(view, {0: "paused", 1: "up", 2: "dead"})
    assert [node.state for node in later.brokers.values()] == ["paused", "starting", "dead"]
    assert later.controller is None and not later.brokers[0].controller
    assert with_states(view, {0: "up"}) == view
    assert with_states(later, {2: "up"}).brokers[2].state == "starting"


def test_a_question_that_hangs_does_not_hold_up_the_map(cluster, monkeypatch):
    assert watcher_module._SILENCE + watcher_module._PROCESS_INTERVAL <= 0.4  # it moves within half a second
    monkeypatch.setattr(watcher_module, "_LONG_SILENCE", 60)  # a busy machine may take more than a second to draw
    map_ = ClusterMap(cluster)
    wait_until(lambda: "broker 0" in value_of(map_), 30, "the map to be drawn")
    answered = threading.Event()
    cluster.describe = lambda groups=True, internal=False: answered.wait(60) and cluster.view
    cluster.view = replace(cluster.view, brokers=cluster.view.brokers | {2: broker(2, "paused")})
    wait_until(lambda: ">paused<" in value_of(map_), 30, "the map to show it")
    assert "no broker answers" not in map_._status.value
    answered.set()


def test_a_button_acts_in_the_background_and_shows_its_error(cluster):
    map_ = ClusterMap(cluster)
    wait_until(lambda: map_._rows, 30, "the map to be drawn")
    cluster.kill_error = RuntimeError("it is <dead>\nlog: …")
    map_._nodes[1]._controls._kill.click()
    assert cluster.killing.wait(30)
    wait_until(lambda: "&lt;dead&gt;" in map_._log.value, 30, "the error to be shown", last_seen=lambda: map_.events)
    assert map_.events == ["kill broker 1 failed: it is <dead>"]


def test_buttons_fit_the_state(cluster):
    map_ = ClusterMap(cluster)
    wait_until(lambda: "broker 2" in value_of(map_), 30, "the last node to be drawn")  # nothing draws the first one again
    controls = map_._nodes[0]._controls
    controls.show(broker(0, "paused"))
    assert controls._pause.description == "Resume 0" and not controls._pause.disabled
    controls.show(broker(0, "dead"))
    assert controls._kill.disabled and controls._pause.disabled and not controls._restart.disabled


def test_an_attached_cluster_has_no_buttons(cluster):
    cluster.backend = "attached"
    map_ = ClusterMap(cluster)
    wait_until(lambda: map_._rows, 30, "the map to be drawn")
    assert map_._nodes[0]._controls is None


def test_a_display_has_a_picture_besides_the_widget_and_only_that_after_the_stop(cluster, shown):
    map_ = ClusterMap(cluster)
    wait_until(lambda: map_._view, 30, "the map to see something")
    map_._ipython_display_()
    map_._ipython_display_()
    for (first,) in shown.values():
        assert {"image/svg+xml", "text/plain", live_module._WIDGET_VIEW} == set(first)
    cluster.kill(0)
    map_.snapshot()
    cluster.stop()
    cluster.stop()
    assert len(shown) == 2
    for _, last in shown.values():
        assert set(last) == {"image/svg+xml", "text/plain"}
        assert "0 dead" in last["text/plain"]
        assert "kill broker 0" in svg_texts(last["image/svg+xml"])
    map_._ipython_display_()
    assert live_module._WIDGET_VIEW not in list(shown.values())[-1][-1]


def test_a_snapshot_is_of_now_and_stays_after_the_stop(cluster):
    map_ = ClusterMap(cluster)
    assert "0 up" in map_.snapshot().summary
    cluster.kill(0)
    assert "0 dead" in map_.snapshot().summary
    cluster.stop()
    cluster.answers = False
    assert "0 dead" in map_.snapshot().summary


def test_two_maps_of_a_cluster_share_a_watcher(cluster):
    assert ClusterMap(cluster)._watcher is ClusterMap(cluster)._watcher
    assert len(cluster.callbacks) == 1


def test_no_thread_outlives_the_cluster():
    cluster = FakeCluster()
    ClusterMap(cluster)
    cluster.stop()
    wait_until(
        lambda: not [t for t in threading.enumerate() if t.name.startswith("kafkalab-watcher")], 30, "the watchers to end"
    )


# -- the panel


@pytest.fixture
def panel(monkeypatch):
    panel = ClusterPanel()
    monkeypatch.setattr(live_module.Live, "beside", panel)
    return panel


def test_the_panel_is_empty_until_a_cluster_starts_and_says_when_it_has_stopped(panel, cluster):
    assert panel._body.children == ()
    panel.follow(cluster, ClusterMap)
    (shown_map,) = panel._body.children
    wait_until(lambda: "3 of 3 nodes up" in shown_map.children[0].value, 30, "the map to be drawn")
    cluster.stop()
    (words,) = panel._body.children
    assert "The cluster has stopped." in words.value


def test_a_map_that_a_cell_shows_takes_the_place_of_the_panels_own(panel, cluster, shown):
    panel.follow(cluster, ClusterMap)
    (own,) = panel._body.children
    cell_map = ClusterMap(cluster, topics=TOPIC)
    cell_map._ipython_display_()
    assert panel._body.children == (cell_map.widget,)
    assert own.comm is None  # closed: it would be drawn for nobody
    ((bundle,),) = shown.values()
    assert bundle[live_module._WIDGET_VIEW]["model_id"] != cell_map.widget.model_id  # a line that says where the map is
    assert "image/svg+xml" in bundle
    cluster.stop()
    assert set(next(iter(shown.values()))[-1]) == {"image/svg+xml", "text/plain"}


def test_two_clusters_stand_one_below_the_other_under_their_names(panel):
    clusters = [FakeCluster("<home>"), FakeCluster("backup")]
    for one in clusters:
        panel.follow(one, ClusterMap)
    assert [child.value for child in panel._body.children[::2]] == ["<b>&lt;home&gt;</b>", "<b>backup</b>"]
    clusters[0].stop()
    assert len(panel._body.children) == 1
    clusters[1].stop()


def test_who_wants_to_hear_of_clusters_hears_of_those_that_run_and_of_those_that_start():
    register = running.Register()
    clusters, heard = [FakeCluster(str(number)) for number in range(3)], []
    for one in clusters[:2]:
        register.announce(one)
    clusters[0].stop()
    register.for_each(heard.append)
    register.announce(clusters[2])
    assert heard == clusters[1:]


# -- timeline


def test_the_longest_gap():
    assert longest_gap([]) is None and longest_gap([1.0]) is None
    assert longest_gap([5.0, 1.0, 2.0]).seconds == 3.0


def test_gaps_of_partitions_count_the_time_still_waited():
    acks = [Ack(0.0, 0), Ack(0.1, 1), Ack(0.2, 0), Ack(2.3, 1)]
    assert {p: round(g.seconds, 1) for p, g in partition_gaps(acks).items()} == {0: 0.2, 1: 2.2}
    assert {p: round(g.seconds, 1) for p, g in partition_gaps(acks, until=3.0).items()} == {0: 2.8, 1: 2.2}
    assert describe_gaps(acks) == "no acknowledgement for 2.1 s; longest in one partition (1): 2.2 s"
    assert describe_gaps([]) == "nothing acknowledged yet"


def test_the_timeline_shows_gap_and_marks():
    acks = [Ack(at / 10, at % 3) for at in (*range(30), *range(51, 90))]
    drawing = draw_timeline(
        acks, [Mark(3.0, "fault", "kill 0"), Mark(4.9, "leader", "new leaders after 1.9 s"), Mark(-5.0, "fault", "old")]
    )
    shown_texts = svg_texts(document(drawing, "timeline"))
    assert {"no acknowledgement for 2.2 s", "kill 0", "new leaders after 1.9 s"} <= set(shown_texts)
    assert "old" not in shown_texts


@pytest.mark.parametrize("acks", [[], [Ack(1.0, 0)], [Ack(1.0, 0), Ack(1.0, 0)]])
def test_a_timeline_of_almost_nothing(acks):
    ET.fromstring(document(draw_timeline(acks, []), "timeline"))


def labels_and_distances(svg):
    """Of each "new leaders after N s": N, and the seconds on the axis between its line and that of the fault before it."""
    root = ET.fromstring(svg)
    ticks = [
        (float(e.get("x")), float(e.text))
        for e in root.iter(f"{SVG}text")
        if e.get("text-anchor") == "middle" and e.text[0].isdigit()
    ]
    (x0, s0), (x1, s1) = ticks[0], ticks[-1]
    second = (x1 - x0) / (s1 - s0)
    upright = [
        e for e in root.iter(f"{SVG}line") if e.get("x1") == e.get("x2") and float(e.get("y2")) - float(e.get("y1")) > 100
    ]
    faults = [float(e.get("x1")) for e in upright if not e.get("stroke-dasharray")]
    leaders = sorted(float(e.get("x1")) for e in upright if e.get("stroke-dasharray"))
    told = [float(words.split()[-2]) for words in svg_texts(svg) if words and words.startswith("new leaders after")]
    assert len(told) == len(leaders)
    return [(words, (x - max(f for f in faults if f <= x)) / second) for words, x in zip(told, leaders, strict=True)]


def test_each_label_of_the_timeline_is_its_distance_on_the_axis(cluster, tmp_path):
    producer = FakeProducer(tmp_path / "ledger.jsonl")
    began = time.time() - 40
    producer.write(*[(began + i / 5, i % 2) for i in range(200)])
    cluster.faults.append(Fault(began + 5, "kill", 0))
    timeline = Timeline(cluster, producer)
    timeline.seen(cluster.view, [Event(began + 6.9, "leader", "…", TOPIC)], True)
    # Of a verb that takes its time the effects are seen first: it is in the list when the picture is drawn.
    timeline.seen(cluster.view, [Event(began + 20.4, "leader", "…", TOPIC)], True)
    cluster.faults.append(Fault(began + 20, "stop", 1))
    measured = labels_and_distances(timeline.snapshot().svg)
    assert [told for told, _ in measured] == [1.9, 0.4]
    for told, shown in measured:
        assert shown == pytest.approx(told, abs=0.1)


class FakeProducer:
    topic = TOPIC

    def __init__(self, ledger):
        self.ledger = ledger
        self.alive = True

    def write(self, *entries, end="\n"):
        with open(self.ledger, "a") as file:
            file.write("\n".join(json.dumps({"at": at, "partition": p}) for at, p in entries) + end)


def test_the_timeline_follows_the_ledger_and_leaves_a_still_picture(cluster, shown, tmp_path):
    producer = FakeProducer(tmp_path / "ledger.jsonl")
    timeline = Timeline(cluster, producer)
    timeline._ipython_display_()
    assert timeline.gap == 0.0
    now = time.time()
    producer.write((now - 3, 0), (now - 1, 1), (now, 0))
    assert timeline.gap == pytest.approx(2.0)
    producer.write((now + 5, 0), end="")  # half written
    assert timeline.gap == pytest.approx(2.0)
    assert timeline.gaps == {0: pytest.approx(3.0)}
    producer.alive = False
    wait_until(lambda: [b for b in shown.values() if live_module._WIDGET_VIEW not in b[-1]], 30, "the still picture")
    assert "no acknowledgement for 2.0 s" in next(iter(shown.values()))[-1]["text/plain"]


def test_a_ledger_that_went_with_its_cluster_is_remembered(cluster, tmp_path):
    producer = FakeProducer(tmp_path / "ledger.jsonl")
    producer.write((10.0, 0), (12.0, 0))
    timeline = Timeline(cluster, producer)
    cluster.stop()
    producer.ledger.unlink()
    assert timeline.gap == 2.0


# -- terminals


def test_panes_are_escaped_and_say_how_it_ended():
    html = pane_html(Pane("<c1>", ["<b>m1</b>", "\x1b[31mred\x1b[0m"], "killed"))
    assert "&lt;c1&gt;" in html and "&lt;b&gt;m1&lt;/b&gt;" in html and "\x1b" not in html and "killed" in html


def test_still_panes_hold_no_addresses_and_folders():
    panes = [Pane("c1", ["127.0.0.1:40001 refused", "see /tmp/kafkalab-0/x.log", "a/b and 3/4 stay"], "ended")]
    for still in (panes_html(panes, 1), panes_text(panes)):
        assert "40001" not in still and "/tmp" not in still and "a/b and 3/4 stay" in still


class FakeWorker:
    def __init__(self, name):
        self.name, self.lines, self.alive, self.state, self.callbacks = name, [], True, "running", []

    def on_line(self, callback):
        self.callbacks.append(callback)

    def say(self, line):
        self.lines.append(line)
        for callback in self.callbacks:
            callback(line)


def test_lines_arrive_and_stay_when_the_workers_have_ended(shown):
    workers = [FakeWorker("c1"), FakeWorker("c2")]
    terminals = Terminals(*workers)
    terminals._ipython_display_()
    workers[0].say("m1")
    wait_until(lambda: "m1" in terminals._panes[0].value, 30, "the line")
    for worker in workers:
        worker.alive, worker.state = False, "killed"
    (bundles,) = shown.values()
    wait_until(lambda: live_module._WIDGET_VIEW not in bundles[-1], 30, "the still copy")
    assert "m1" in bundles[-1]["text/html"] and "[c1: killed]" in bundles[-1]["text/plain"]


def test_terminals_can_be_closed(shown):
    terminals = Terminals(FakeWorker("c1"))
    terminals._ipython_display_()
    terminals.close()
    terminals.close()
    (bundles,) = shown.values()
    assert len(bundles) == 2 and "[c1: running]" in bundles[-1]["text/plain"]


def test_what_another_thread_published_is_said_again_in_the_next_cell(shown, monkeypatch):
    hooks = []

    class Events:
        register = staticmethod(lambda _, hook: hooks.append(hook))
        unregister = staticmethod(lambda _, hook: hooks.remove(hook))

    monkeypatch.setattr(live_module, "get_ipython", lambda: type("Shell", (), {"events": Events}))
    terminals = Terminals(FakeWorker("c1"))
    terminals._ipython_display_()
    thread = threading.Thread(target=terminals.close)
    thread.start()
    thread.join()
    (bundles,) = shown.values()
    hooks[0](None)
    assert bundles[-1] == bundles[-2] and not hooks


# -- quiz and progress


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("KAFKALAB_PROGRESS", str(tmp_path))


@pytest.mark.parametrize("name", quiz_names())
def test_every_question_has_a_sound_answer(name):
    quiz = load_quiz(name)
    assert quiz.title and quiz.questions
    for question in quiz.questions:
        assert question.ask and len(question.explanation) > 60
        assert "  " not in question.explanation, "a line of the file was joined badly"
        assert len({option.text for option in question.options}) == len(question.options)
        if question.kind != "open":
            assert len(question.options) >= 3 and question.is_right(question.right)
            assert not question.is_right(())
            assert not question.is_right(range(len(question.options)))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("00_start_here", 18),
        ("01_single_node", 7),
        ("02_cluster_failover", 11),
        ("03_producer", 9),
        ("04_consumer", 17),
        ("05_log_and_replication", 14),
        ("06_schema_registry", 5),
        ("07_security", 8),
        ("08_mirrormaker", 10),
        ("09_connect", 12),
        ("10_streams", 6),
        ("11_spark_pipeline", 3),
        ("12_kafka_4", 7),
    ],
)
def test_every_review_question_of_the_curriculum_is_there(name, number):
    assert len(load_quiz(name).questions) >= number


@pytest.mark.parametrize("name", quiz_names())
def test_right_answers_do_not_always_stand_in_the_same_place(name):
    assert len({min(q.right) for q in load_quiz(name).questions if q.right}) > 2


@pytest.mark.parametrize("name", quiz_names())
def test_right_answers_are_not_told_by_their_length(name):
    questions = [question for question in load_quiz(name).questions if question.kind == "one"]
    longest = [max(range(len(q.options)), key=lambda i, q=q: len(q.options[i].text)) in q.right for q in questions]
    assert sum(longest) <= len(questions) / 2


def test_an_unknown_quiz_names_those_that_there_are():
    with pytest.raises(LookupError, match="02_cluster_failover"):
        load_quiz("99_nothing")


def test_the_still_form_has_all_questions_with_answers_folded():
    quiz = load_quiz("02_cluster_failover")
    html = quiz_html(quiz)
    assert html.count("<details>") == len(quiz.questions)
    assert "<code>my-failsafe-topic</code>" in html
    assert all(question.options[0].text.replace("`", "") in quiz_text(quiz) for question in quiz.questions)


def choose(form, indexes):
    if form._question.kind == "one":
        (form._choice.index,) = indexes
    elif form._question.kind == "many":
        for i, box in enumerate(form._choice.children):
            box.value = i in indexes
    form._check(None)


def test_answering_all_rightly_counts_and_is_kept(kept):
    quiz = Quiz("00_start_here")
    for form in quiz._forms:
        choose(form, form._question.right)
    assert quiz.result == (17, 17)
    assert (load().quizzes["00_start_here"].right, load().quizzes["00_start_here"].questions) == (17, 17)
    assert "Finished: 17 of 17 right" in quiz._head.value


def test_a_wrong_answer_is_explained_and_may_be_mended(kept):
    quiz = Quiz("01_single_node")
    form = quiz._forms[0]
    form._check(None)
    assert "Choose an answer" in form._feedback.value and quiz._results[0] is None
    choose(form, {0})
    assert "Not quite" in form._feedback.value and "ZooKeeper" in form._feedback.value
    assert quiz.result == (0, 7)
    choose(form, form._question.right)
    assert quiz.result == (1, 7)


def test_the_progress_table(kept):
    record = ProgressRecord(
        {"02_failsafe": LabProgress(True, 2, "2026-01-02T03:04:05+00:00"), "02_<x>": LabProgress(False, 3, None)},
        {"01_single_node": QuizProgress(7, 7, "2026-01-02T03:04:05+00:00")},
    )
    labs = {"02_failsafe": "Kill <a> broker", "01_my_topic": "Send seven lines"}
    later = [name[:2] for name in quiz_names() if name[:2] > "02"]
    assert progress_text(record, labs).splitlines() == [
        "  00 quiz      not answered yet",
        "  01_my_topic  not checked yet",
        "x 01 quiz      7 of 7 right",
        "x 02_failsafe  passed on 2026-01-02",
        "  02_<x>       checked 3 ×, not passed yet",
        "  02 quiz      not answered yet",
        *(f"  {chapter} quiz      not answered yet" for chapter in later),
    ]
    html = progress_html(record, labs)
    assert f"2 of {6 + len(later)} done" in html and "02_&lt;x&gt;" in html and "Kill &lt;a&gt; broker" in html


def test_progress_shows_itself(kept):
    assert set(Progress({"02_failsafe": "Kill a broker"})._repr_mimebundle_()) == {"text/html", "text/plain"}


# -- predictions


def test_a_prediction_is_kept_and_opens_the_explanation_with_both(shown, folder_of_progress):
    prediction = Predict("How much longer?", options=["the same", "2×", "more than `100`×"])
    explanation = prediction.explain("The *first* one waits.", measured="676×")
    explanation._ipython_display_()
    ((closed,),) = shown.values()
    assert live_module._WIDGET_VIEW in closed
    prediction._field.value = "2×"
    prediction._button.click()
    assert load().predictions == {"How much longer?": "2×"}
    ((_, opened),) = shown.values()
    assert opened["text/markdown"] == "**You said 2×. Measured: 676×.** The *first* one waits."
    assert live_module._WIDGET_VIEW not in opened
    assert prediction._field.disabled and prediction._button.disabled  # no more guesses once the answer is in sight


def test_a_prediction_of_another_day_opens_the_explanation_at_once(shown, folder_of_progress):
    record_prediction("How long?", "7 s")
    prediction = Predict("How long?", unit="s")
    assert prediction.guess == "7 s" and prediction._field.value == "7"
    prediction.explain("Because.", measured="1.9 s")._ipython_display_()
    ((bundle,),) = shown.values()
    assert bundle["text/plain"] == "You said 7 s. Measured: 1.9 s. Because."
    assert live_module._WIDGET_VIEW not in bundle


def test_show_me_opens_the_explanation_without_a_prediction(shown, folder_of_progress):
    prediction = Predict("Which brokers does it know?")
    explanation = prediction.explain("Every broker can answer.", answer="it knows all three")
    explanation._ipython_display_()
    explanation.widget.children[1].click()
    ((_, opened),) = shown.values()
    assert opened["text/plain"] == "What happened: it knows all three. Every broker can answer."
    assert load().predictions == {}


def test_what_was_said_shows_code_as_code(folder_of_progress):
    prediction = Predict("Which columns differ?", options=["only `Leader`", "`Leader` and `Isr`"])
    prediction._field.value = "only `Leader`"
    prediction._button.click()
    assert "<b>only <code>Leader</code></b>" in prediction._said.value
    prediction.explain("Because.", answer="`Leader` and `Isr`")
    assert "<b>only <code>Leader</code></b>" in prediction._said.value


@pytest.mark.parametrize(
    ("prediction", "typed", "said"),
    [
        ({"unit": "s"}, "long", "Type a number."),
        ({"unit": "s"}, "", "Type a number."),
        ({}, " ", "Type your prediction first."),
        ({"options": ["a", "b"]}, None, "Choose one of the options first."),
    ],
)
def test_what_is_no_prediction_is_not_kept(prediction, typed, said, folder_of_progress):
    predict = Predict("How long?", **prediction)
    predict._field.value = typed
    predict._button.click()
    assert said in predict._said.value
    assert predict.guess is None and load().predictions == {}


def test_the_stored_question_does_not_tell_what_was_said(shown, folder_of_progress):
    record_prediction("How long?", "7 s")
    Predict("How long?", unit="s")._ipython_display_()
    Predict("Which?", options=["one", "two"])._ipython_display_()
    number, choice = (bundle["text/plain"] for (bundle,) in shown.values())
    assert number == "Predict: How long? (s)"
    assert choice == "Predict: Which?\n- one\n- two"


# -- the lab card

FACTS = {"difficulty": "easy", "minutes": 20, "needs": "chapter 08"}


@pytest.fixture
def lab_notebook(monkeypatch, folder_of_progress, tmp_path):
    """A notebook with two checks; what their probes find can be changed."""
    lab = Lab("09_games")
    path = tmp_path / "labs/09_chapter/09_games.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(metadata={"kafkalab": FACTS}), path)
    state = {"topic": False, "records": False, "expected": None}
    first = lab.add_check("09_topic", "Make a topic", hints=("Think.", "Use `create`."))

    @first.requires("There is a topic")
    def topic(ctx):
        assert state["expected"] in (None, ctx.cluster)
        if not state["topic"]:
            raise Unmet("There's no topic `games`.")

    @first.requires("It holds the records", after=topic)
    def records(ctx):
        assert ctx.answer("count", int, "records") == 3
        if not state["records"]:
            raise Unmet("It holds no record.")

    second = lab.add_check("09_group", "Read it", hints=("Read.",))
    second.requires("The group has read")(lambda ctx: None)
    monkeypatch.setattr("kafkalab.course.find_course", lambda: Course("gamescourse", Content(tmp_path)))
    monkeypatch.setattr("kafkalab.checks.lab.find_course", lambda: Course("gamescourse", Content(tmp_path)))
    monkeypatch.setitem(sys.modules, "gamescourse.ch09_chapter.games", SimpleNamespace(lab=lab))
    learner.on_report.clear()
    monkeypatch.setattr(LabCard, "_newest", {})
    return state


def test_the_card_says_how_long_the_cells_ran(lab_notebook, tmp_path, monkeypatch):
    for more, says in (({}, "20 minutes ·"), ({"seconds": 35}, "20 minutes (all cells of its solution run in 35 s) ·")):
        notebook = nbformat.v4.new_notebook(metadata={"kafkalab": FACTS | more})
        nbformat.write(notebook, tmp_path / "labs/09_chapter/09_games.ipynb")
        assert says in LabCard("09_games").widget.children[0].value


def test_a_check_in_a_cell_updates_the_card(lab_notebook, cluster, capsys):
    card = LabCard("09_games")
    assert "easy · about 20 minutes · needs chapter 08" in card.widget.children[0].value
    assert "0 of 2 passed" in card._list.value and "✗" not in card._list.value
    check("09_topic", cluster, count=3)
    assert "There&#x27;s no topic <code>games</code>." in card._list.value
    assert 'aria-label="not met">✗' in card._list.value and "0 of 2 met" in card._list.value
    lab_notebook.update(topic=True, records=True)
    check("09_topic", cluster, count=3)
    assert "1 of 2 passed" in card._list.value
    assert card.current.id == "09_group"


def test_the_button_checks_with_the_variables_of_the_notebook(lab_notebook, cluster, monkeypatch):
    monkeypatch.setattr(lab_card, "get_ipython", lambda: SimpleNamespace(user_ns={"cluster": cluster, "count": 3}))
    card = LabCard("09_games")
    lab_notebook.update(topic=True, records=True)
    card._check.click()
    wait_until(lambda: "1 of 2 passed" in card._list.value, 30, "the card to show it", last_seen=lambda: card._said.value)
    assert load().labs["09_topic"].passed
    assert not card._check.disabled


def test_the_button_says_when_there_is_no_cluster_yet(lab_notebook, monkeypatch):
    monkeypatch.setattr(lab_card, "get_ipython", lambda: None)
    card = LabCard("09_games")
    card._check.click()
    assert card._said.value == "There's no cluster yet. Run the cell that starts it."


def test_earlier_hints_stay_and_after_the_last_there_is_no_next(lab_notebook):
    card = LabCard("09_games")
    card._hint.click()
    assert "Hint 1 of 2" in card._opened.value and "Use <code>" not in card._opened.value
    card._hint.click()
    assert "Think." in card._opened.value and "Use <code>create</code>." in card._opened.value
    assert card._hint.disabled


def test_hints_are_counted_once_for_the_card_and_the_cell(lab_notebook, capsys):
    hint("09_topic")
    card = LabCard("09_games")
    assert "Hint 1 of 2" in card._opened.value
    hint("09_topic")
    hint("09_topic")
    assert capsys.readouterr().out.splitlines()[1:] == [
        "Hint 2 of 2: Use `create`.",
        "That was the last hint. `kafkalab solution 09_topic` in a terminal opens the solution.",
    ]
    card._hint.click()
    assert "Hint 2 of 2" in card._opened.value and card._hint.disabled


def test_the_button_checks_the_cluster_that_the_variable_holds_now(lab_notebook, cluster, monkeypatch, capsys):
    variables = {"cluster": FakeCluster("another"), "berlin": cluster, "count": 3}
    monkeypatch.setattr(lab_card, "get_ipython", lambda: SimpleNamespace(user_ns=variables))
    card = LabCard("09_games")
    check("09_topic", cluster, count=3)
    variables["berlin"] = lab_notebook["expected"] = FakeCluster("new")
    lab_notebook.update(topic=True, records=True)
    card._check.click()
    wait_until(lambda: "1 of 2 passed" in card._list.value, 30, "the card to show it", last_seen=lambda: card._list.value)


def test_a_card_that_is_made_again_takes_the_place_of_the_one_before(lab_notebook, cluster, shown, capsys):
    older, newer = LabCard("09_games"), LabCard("09_games")
    for card in (older, newer):
        card._ipython_display_()
    assert learner.on_report == [newer._reported]
    assert older._finished and not newer._finished


def test_reset_and_solution_ask_first(lab_notebook, monkeypatch, tmp_path):
    done = []
    monkeypatch.setattr("kafkalab.course.reset", lambda name: done.append(f"reset {name}"))
    solution = tmp_path / "09_games.ipynb"
    monkeypatch.setattr("kafkalab.course.solution", lambda name: done.append(f"solution {name}") or solution)
    card = LabCard("09_games")
    for press, number in ((card._solution, 1), (card._reset, 1), (card._solution, 0)):
        press.click()
        card._asking.children[1].children[number].click()  # 0: yes, 1: no
        assert card._asking.children == ()
    assert done == ["solution 09_games"]
    assert 'data-kafkalab-open="' in card._said.value and "09_games.ipynb" in card._said.value


def test_a_stored_card_is_text_that_does_not_depend_on_progress(lab_notebook, cluster, shown, capsys):
    card = LabCard("09_games")
    check("09_group", cluster)
    card._ipython_display_()
    ((bundle,),) = shown.values()
    assert bundle["text/plain"].splitlines() == [
        "09_games: easy, 20 minutes, needs chapter 08",
        "09_topic: Make a topic",
        "  · There is a topic",
        "  · It holds the records",
        "09_group: Read it",
        "  · The group has read",
    ]


def test_the_panel_shows_the_card_above_the_maps(lab_notebook, panel, cluster, shown):
    panel.follow(cluster, ClusterMap)
    card = LabCard("09_games")
    card._ipython_display_()
    assert panel._card.children == (card.widget,)
    assert len(panel._body.children) == 1


def test_an_unknown_lab_names_those_that_may_be_meant(lab_notebook):
    with pytest.raises(KafkaLabError, match="did you mean 09_games"):
        LabCard("09_game")


# -- errors


@pytest.fixture
def shell():
    shell = InteractiveShell()
    yield shell
    shell.history_manager.end_session()


def test_an_error_of_ours_is_one_sentence_with_the_traceback_folded(shell, monkeypatch, capsys):
    folded = []
    monkeypatch.setattr(folded_errors, "display", lambda bundle, raw: folded.append(bundle))
    fold_errors(shell)
    shell.user_ns["UnknownBroker"] = UnknownBroker
    result = shell.run_cell("raise UnknownBroker('There is no broker <9>.\\nLog: …')")
    assert not result.success
    assert capsys.readouterr().out.strip() == "\x1b[31mUnknownBroker\x1b[0m: There is no broker <9>."
    (bundle,) = folded
    assert "<details>" in bundle["text/html"] and "&lt;9&gt;" in bundle["text/html"]
    assert "raise UnknownBroker" in bundle["text/plain"] and "Log: …" in bundle["text/plain"]


def test_other_errors_look_as_ever(shell, monkeypatch, capsys):
    monkeypatch.setattr(folded_errors, "display", lambda *_, **__: pytest.fail("it was folded"))
    fold_errors(shell)
    assert not shell.run_cell("1 / 0").success
    assert "Traceback (most recent call last)" in capsys.readouterr().out


def test_a_wrong_argument_is_folded_where_kafkalab_refuses_it(shell, monkeypatch, capsys):
    folded = []
    monkeypatch.setattr(folded_errors, "display", lambda bundle, raw: folded.append(bundle))
    fold_errors(shell)
    assert not shell.run_cell("from kafkalab import Cluster\nCluster('3')").success
    assert len(folded) == 1
    assert "Traceback" not in capsys.readouterr().out
    assert not shell.run_cell("int('three')").success
    assert len(folded) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().out


def test_a_deleted_group_vanishes_and_one_whose_coordinator_moves_stays():
    cluster = FakeCluster()
    cluster.view = replace(healthy(), groups={"mygroup": group(("c1", ((TOPIC, 0),)))})
    watcher = Watcher(cluster)
    watcher.look(groups=True)
    kept = cluster.view
    cluster.view = replace(after_kill(kept, 1), groups={})
    watcher.look(groups=True)
    assert set(watcher._groups) == {"mygroup"}
    cluster.view = replace(kept, groups={})
    watcher.look(groups=True)
    assert not watcher._groups
    cluster.view = kept
    watcher.look(groups=True)
    cluster.faults.append(Fault(time.time(), "restart", 1))
    cluster.view = replace(kept, groups={})
    watcher.look(groups=True)
    assert set(watcher._groups) == {"mygroup"}


def test_html_as_wide_as_its_cell_is_made_in_one_place():
    """Its margin matters: with the usual one the right edge is cut off by four pixels."""
    assert (live_module.wide_html().layout.width, live_module.wide_html().layout.margin) == ("100%", "2px 0")
    source = Path(kafkalab.__file__).parents[1]
    calls = [
        (path.name, node)
        for path in source.rglob("*.py")
        if path != Path(live_module.__file__) and "ipywidgets.HTML(" in path.read_text()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ipywidgets.HTML"
    ]
    layouts = [(name, ast.unparse(k.value)) for name, call in calls for k in call.keywords if k.arg == "layout"]
    assert layouts and [(name, layout) for name, layout in layouts if "width='auto'" not in layout] == []
