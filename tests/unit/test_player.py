"""Recordings of a cluster: stored small, read again, and shown on a page that plays them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from kafkalab.cluster import ClusterView
from kafkalab.widgets.timeline_drawing import Ack, Mark
from player import player
from recording import Moment, Recording
from widget_support import TOPIC, after_kill, healthy

STORED = sorted((Path(__file__).parents[2] / "docs/site/recordings").glob("*.json"))


@pytest.fixture
def recording() -> Recording:
    acks = [Ack(at / 10, at % 3) for at in (*range(20), *range(39, 60))]
    moments = [Moment(0.0, healthy(), ()), Moment(2.0, after_kill(healthy()), ("broker 0 <killed>", "new leaders"))]
    return Recording(moments, acks, [Mark(2.0, "fault", "kill 0"), Mark(3.8, "leader", "new leaders")])


def shape(view: ClusterView) -> tuple[object, ...]:
    brokers = {id_: (broker.state, broker.controller) for id_, broker in view.brokers.items()}
    return brokers, view.topics, view.controller


def test_a_recording_is_read_as_it_was_written_but_for_addresses(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    recording.write(path)
    again = Recording.read(path)
    assert [(moment.at, moment.events, shape(moment.view)) for moment in again.moments] == [
        (moment.at, moment.events, shape(moment.view)) for moment in recording.moments
    ]
    assert sorted(again.acks, key=lambda ack: ack.at) == list(recording.acks)
    assert again.marks == recording.marks
    assert again.seconds == 5.9
    for broker in healthy().brokers.values():
        assert broker.address not in path.read_text()


def test_a_page_has_each_moment_and_shows_the_last_without_a_script(recording: Recording) -> None:
    html = player(recording)
    assert re.findall(r'class="moment" data-at="([\d.]+)"( hidden)?', html) == [("0.00", " hidden"), ("2.00", "")]
    assert "broker 0 &lt;killed&gt;; new leaders" in html
    assert 'alt="Brokers: 0 dead' in html
    assert 'alt="41 messages: no acknowledgement for 2.0 s' in html
    assert '<div class="controls" hidden>' in html  # without a script they'd do nothing
    assert 'max="5.9"' in html


def test_what_is_of_no_use_is_not_stored(recording: Recording, tmp_path: Path) -> None:
    view = replace(recording.moments[0].view, cluster_id="secret")
    Recording([Moment(0.0, view, ())], recording.acks, ()).write(tmp_path / "one.json")
    assert "secret" not in (tmp_path / "one.json").read_text()
    assert TOPIC in (tmp_path / "one.json").read_text()


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_stored_recording_shows_a_failover(path: Path) -> None:
    recording = Recording.read(path)
    states = [{broker.state for broker in moment.view.brokers.values()} for moment in recording.moments]
    assert states[0] == states[-1] == {"up"}
    assert any("dead" in seen for seen in states)
    assert [moment.at for moment in recording.moments] == sorted(moment.at for moment in recording.moments)
    assert {mark.kind for mark in recording.marks} == {"fault", "leader"}
    assert path.stat().st_size < 100_000 and len(player(recording)) < 600_000
