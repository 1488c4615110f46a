"""Rates of writing and reading, from one look at a cluster to the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kafkalab.cluster.view import ClusterView
from kafkalab.widgets.rates import AT_REST, Place, RateMeter, rate_words
from widget_support import TOPIC, group, healthy

P0: Place = (TOPIC, 0)
P1: Place = (TOPIC, 1)


def at(ends: Mapping[Place, int], lag: Mapping[Place, int] | None = None) -> ClusterView:
    groups = {"mygroup": group(("c1", (P0, P1)), lag=lag)} if lag else {}
    return replace(healthy(), ends=ends, groups=groups)


def test_the_first_look_knows_no_rates() -> None:
    assert RateMeter().note(at({P0: 500}, {P0: 0}), 10.0) == AT_REST


def test_two_looks_tell_what_was_written_and_what_a_group_committed() -> None:
    meter = RateMeter()
    for look in range(9):
        rates = meter.note(at({P0: 1000 + 200 * look, P1: 7}, {P0: 100 * look}), look / 2)
    assert rates.written == {P0: pytest.approx(400)}
    assert rates.read == {("mygroup", P0): pytest.approx(200)}


def test_a_group_that_commits_every_five_seconds_reads_all_the_time() -> None:
    meter = RateMeter()
    seen = [meter.note(at({P0: 100_000}, {P0: 100_000 - 500 * (look // 10)}), look / 2).read for look in range(60)]
    assert all(rates == {("mygroup", P0): pytest.approx(100)} for rates in seen[20:])


def test_what_comes_all_at_once_is_not_taken_for_a_stream() -> None:
    meter = RateMeter()
    meter.note(at({P0: 0}), 0.0)
    meter.note(at({P0: 0}), 60.0)
    assert meter.note(at({P0: 1000}), 60.5).written == {P0: pytest.approx(800)}


@pytest.mark.parametrize("after", [{P0: 100}, {P0: 3}, {}])
def test_a_log_that_rests_begins_anew_or_is_out_of_reach_has_no_rate(after: Mapping[Place, int]) -> None:
    meter = RateMeter()
    assert not meter.note(at({P0: 0}), 0.0).written
    assert meter.note(at({P0: 100}), 0.5).written
    meter.note(at(after), 1.5)
    assert not meter.note(at(after), 2.0).written


def test_a_rate_stays_as_it_is_unless_it_differs_much() -> None:
    meter, end = RateMeter(), 0
    seen = []
    for look, more in enumerate([500] * 4 + [560] * 4 + [900] * 8):
        end += more
        seen.append(meter.note(at({P0: end}), look / 2).written.get(P0))
    assert seen[4:8] == [pytest.approx(1000)] * 4
    assert seen[-1] == pytest.approx(1800, rel=0.25) and seen[-1] != pytest.approx(1000)


def test_words_have_two_digits() -> None:
    assert [rate_words(rate) for rate in (0, 0.3, 1, 41.6, 412, 9_874)] == ["", "under 1/s", "1/s", "42/s", "410/s", "9,900/s"]
