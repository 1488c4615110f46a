import json
import threading
import time
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from kafkalab.cluster.view import BrokerView, ClusterView, Fault, GroupView, MemberView, PartitionView
from kafkalab.progress import LabProgress, ProgressRecord, QuizProgress, load
from kafkalab.waiting import wait_until
from kafkalab.widgets import ClusterMap, Progress, Quiz, Terminals, Timeline
from kafkalab.widgets import live as live_module
from kafkalab.widgets.events import Event, events_between
from kafkalab.widgets.map_drawing import broker_rows, draw_legend, map_picture, summary
from kafkalab.widgets.palette import THEMED
from kafkalab.widgets.progress_table import progress_html, progress_text
from kafkalab.widgets.quiz import quiz_html, quiz_text
from kafkalab.widgets.quiz_data import load_quiz, quiz_names
from kafkalab.widgets.svg import document, fit
from kafkalab.widgets.terminals_drawing import Pane, pane_html, panes_html, panes_text
from kafkalab.widgets.timeline_drawing import Ack, Mark, describe_gaps, draw_timeline, longest_gap, partition_gaps
from kafkalab.widgets.watcher import with_states

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
        assert -10 <= float(r.get("x")) and float(r.get("x")) + float(r.get("width")) <= 910.01


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
    live = document(draw_legend(THEMED), "legend", palette=THEMED, live=True)
    assert "var(--jp-" in live
    ET.fromstring(live)


def test_fit_cuts_with_an_ellipsis():
    assert fit("short", 100, 12) == "short"
    assert fit("x" * 100, 70, 12).endswith("…") and len(fit("x" * 100, 70, 12)) <= 11


# -- the live map


class FakeCluster:
    """Follows the interface of `Cluster` as far as widgets use it."""

    backend = "local"

    def __init__(self):
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
        for callback in self.callbacks:
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
def cluster():
    fake = FakeCluster()
    yield fake
    fake.stop()


def value_of(map_):
    return "".join(row._picture.value for row in map_._rows) + map_._status.value + map_._log.value


def test_the_map_moves_within_half_a_second(cluster):
    map_ = ClusterMap(cluster)
    wait_until(lambda: "broker 0" in value_of(map_), 2, "the map to be drawn")
    cluster.kill(0)
    wait_until(lambda: ">dead<" in value_of(map_), 0.5, "the map to show it")
    assert map_.events[0] == "kill broker 0"
    assert any("now led by 1, ISR 1,2, after 0." in line for line in map_.events)


def test_the_map_shows_what_became_of_the_only_broker_although_nobody_answers(cluster):
    map_ = ClusterMap(cluster)
    wait_until(lambda: "broker 0" in value_of(map_), 2, "the map to be drawn")
    cluster.answers = False
    cluster.kill(0)
    wait_until(lambda: ">dead<" in value_of(map_), 1, "the map to show it")
    wait_until(lambda: "no broker answers" in map_._status.value, 2, "the map to say so")
    cluster.answers = True
    wait_until(lambda: "no broker answers" not in map_._status.value, 1, "the map to see again")


def test_what_is_known_last_is_corrected_by_the_states_of_the_processes():
    view = healthy()
    view = replace(view, brokers=view.brokers | {1: broker(1, "starting")})
    later = with_states(view, {0: "paused", 1: "up", 2: "dead"})
    assert [node.state for node in later.brokers.values()] == ["paused", "starting", "dead"]
    assert later.controller is None and not later.brokers[0].controller
    assert with_states(view, {0: "up"}) == view
    assert with_states(later, {2: "up"}).brokers[2].state == "starting"


def test_a_question_that_hangs_does_not_hold_up_the_map(cluster):
    map_ = ClusterMap(cluster)
    wait_until(lambda: "broker 0" in value_of(map_), 2, "the map to be drawn")
    answered = threading.Event()
    cluster.describe = lambda groups=True, internal=False: answered.wait(5) and cluster.view
    cluster.view = replace(cluster.view, brokers=cluster.view.brokers | {2: broker(2, "paused")})
    wait_until(lambda: ">paused<" in value_of(map_), 0.6, "the map to show it")
    assert "no broker answers" not in map_._status.value
    answered.set()


def test_a_button_acts_in_the_background_and_shows_its_error(cluster):
    map_ = ClusterMap(cluster)
    wait_until(lambda: map_._rows, 2, "the map to be drawn")
    cluster.kill_error = RuntimeError("it is <dead>\nlog: …")
    map_._rows[0]._controls[1]._kill.click()
    assert cluster.killing.wait(2)
    wait_until(lambda: map_.events, 2, "the error to be shown")
    assert map_.events == ["kill broker 1 failed: it is <dead>"]
    assert "&lt;dead&gt;" in map_._log.value


def test_buttons_fit_the_state(cluster):
    map_ = ClusterMap(cluster)
    wait_until(lambda: map_._rows, 2, "the map to be drawn")
    controls = map_._rows[0]._controls[0]
    controls.show(broker(0, "paused"))
    assert controls._pause.description == "Resume" and not controls._pause.disabled
    controls.show(broker(0, "dead"))
    assert controls._kill.disabled and controls._pause.disabled and not controls._restart.disabled


def test_an_attached_cluster_has_no_buttons(cluster):
    cluster.backend = "attached"
    map_ = ClusterMap(cluster)
    wait_until(lambda: map_._rows, 2, "the map to be drawn")
    assert map_._rows[0]._controls == []


def test_a_display_has_a_picture_besides_the_widget_and_only_that_after_the_stop(cluster, shown):
    map_ = ClusterMap(cluster)
    wait_until(lambda: map_._view, 2, "the map to see something")
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
        lambda: not [t for t in threading.enumerate() if t.name.startswith("kafkalab-watcher")], 2, "the watchers to end"
    )


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
    wait_until(lambda: [b for b in shown.values() if live_module._WIDGET_VIEW not in b[-1]], 2, "the still picture")
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
    wait_until(lambda: "m1" in terminals._panes[0].value, 1, "the line")
    for worker in workers:
        worker.alive, worker.state = False, "killed"
    (bundles,) = shown.values()
    wait_until(lambda: live_module._WIDGET_VIEW not in bundles[-1], 3, "the still copy")
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
        ("06_schema_registry", 5),
        ("07_security", 8),
        ("08_mirrormaker", 10),
    ],
)
def test_every_review_question_of_the_curriculum_is_there(name, number):
    assert len(load_quiz(name).questions) >= number


@pytest.mark.parametrize("name", quiz_names())
def test_right_answers_do_not_always_stand_in_the_same_place(name):
    assert len({min(q.right) for q in load_quiz(name).questions if q.right}) > 2


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
