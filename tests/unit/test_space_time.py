from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import pytest

from kafkalab.cluster.view import Fault
from kafkalab.history import judge
from kafkalab.history.judgement import verdict_on
from kafkalab.history.records import History, Outcome, Poll, Record, Send
from kafkalab.history.verdict import Verdict
from kafkalab.widgets import SpaceTime
from kafkalab.widgets.palette import LIGHT, THEMED, Palette
from kafkalab.widgets.picture import flow, phrases, spoken
from kafkalab.widgets.space_time_drawing import draw_space_time, title
from kafkalab.widgets.space_time_layout import Run, lay_out
from picture_support import SVG, svg_roots
from picture_support import texts as texts_in

BEGAN = 1000.0


def send(
    offset: int, partition: int = 0, outcome: Outcome = "acknowledged", value: str | None = None, began: float | None = None
) -> Send:
    began = BEGAN + offset / 100 if began is None else began
    return Send("t", partition, offset, value or f"m{offset}", "ledger", outcome, began, began + 0.004)


def record(offset: int, partition: int = 0, value: str | None = None) -> Record:
    return Record("t", partition, offset, value or f"m{offset}")


def poll(offset: int, call: int = 0, partition: int = 0, who: str = "billing") -> Poll:
    return Poll("t", partition, offset, f"m{offset}", who, call)


def verdict(sends: Iterable[Send] = (), log: Iterable[Record] | None = None, polls: Iterable[Poll] = ()) -> Verdict:
    return verdict_on(History(tuple(sends), log if log is None else tuple(log), tuple(polls)))


def cut_off(good: int = 100, lost: int = 50, after: int = 20) -> Verdict:
    """A leader that was alone: what it acknowledged is gone, and others have its offsets."""
    sends = [send(n) for n in range(good + lost)]
    sends += [send(good + n, value=f"new{n}", began=BEGAN + (good + lost + n) / 100) for n in range(after)]
    return verdict(sends, [record(s.offset, value=s.value) for s in (*sends[:good], *sends[good + lost :])])


def texts(judged: Verdict, faults: Sequence[Fault] = ()) -> list[str]:
    """Return the title in one piece, and then all words of the drawing."""
    html = SpaceTime(judged, faults).snapshot().html
    shown = texts_in(html)
    first = len(texts_in(phrases(title(judged))))
    return ["".join(shown[:first]), *shown[first:]]


def runs(judged: Verdict, status: str) -> list[Run]:
    return [run for run in lay_out(judged).runs if run.status == status]


# -- layout


def test_lines_stand_in_the_order_of_a_records_way() -> None:
    sends = [send(0, partition) for partition in (10, 9)]
    polls = [poll(0, partition=partition) for partition in (9, 10)]
    lanes = lay_out(verdict(sends, polls=polls)).lanes
    assert lanes == (("producer", "ledger"), ("partition", "t-9"), ("partition", "t-10"), ("consumer", "billing"))


def test_a_long_topics_partitions_keep_their_numbers() -> None:
    records = [Record("dangerous_driving_and_driver_s", partition, 0, f"m{partition}") for partition in (0, 12)]
    shown = [words for words in texts(verdict(log=records)) if "…" in words]
    assert shown == ["dangerous_dr…-0", "dangerous_d…-12"]


def test_a_record_goes_from_its_send_to_the_log_and_on_to_its_poll() -> None:
    first, second = (run.arrows[0] for run in lay_out(verdict([send(0)], [record(0)], [poll(0)])).runs)
    assert first.start < first.end == second.start < second.end
    assert first.target == second.source == ("partition", "t-0")


def test_many_records_alike_are_folded_into_the_first_and_the_last() -> None:
    right, later = runs(cut_off(), "right")
    assert (len(right.arrows), len(later.arrows), right.folded) == (100, 19, True)
    assert [arrow.record.offset for arrow in right.shown] == [0, 99]
    [few] = runs(verdict([send(n) for n in range(4)]), "right")
    assert len(few.shown) == 4


def test_lost_writes_do_not_arrive() -> None:
    [lost] = runs(cut_off(), "lost write")
    assert len(lost.arrows) == 50
    assert not any(arrow.arrives for arrow in lost.arrows)


def test_the_further_copies_of_a_duplicate_are_the_offending_ones() -> None:
    log = [record(0), record(1), record(2, value="m0")]
    [run] = runs(verdict([send(0), send(1)], log), "duplicate")
    assert [arrow.record.offset for arrow in run.arrows] == [2]
    [right] = runs(verdict([send(0), send(1)], log), "right")
    assert run.arrows[0].start == right.arrows[0].start
    assert run.arrows[0].end > right.arrows[1].end


def test_duplicates_far_from_each_other_are_runs_of_their_own() -> None:
    sends = [send(n) for n in range(20)]
    log = [record(n) for n in range(20)] + [record(20 + n, value=f"m{n}") for n in (3, 4, 15)]
    assert [len(run.arrows) for run in runs(verdict(sends, log), "duplicate")] == [2, 1]


def test_a_duplicate_that_nobody_is_known_to_have_sent_stays_on_the_line() -> None:
    [run] = runs(judge(log=["a", "b", "a"]), "duplicate")
    assert run.arrows[0].source == run.arrows[0].target == ("partition", "the topic")


def test_skipped_records_are_drawn_where_they_would_have_come() -> None:
    judged = verdict([send(n) for n in range(4)], [record(n) for n in range(4)], [poll(0), poll(3, 1)])
    [skipped] = runs(judged, "poll skip")
    assert [(arrow.record.offset, arrow.arrives) for arrow in skipped.arrows] == [(1, False), (2, False)]
    ends = {
        run.arrows[0].record.offset: run.arrows[0].end for run in runs(judged, "right") if run.arrows[0].target[0] == "consumer"
    }
    assert ends[0] < skipped.arrows[0].end < ends[3]


def test_an_aborted_read_is_marked_from_the_send_to_the_poll() -> None:
    arrows = [run.arrows[0] for run in runs(verdict([send(0, outcome="aborted")], polls=[poll(0)]), "aborted read")]
    assert [arrow.target[0] for arrow in arrows] == ["partition", "consumer"]


def test_an_aborted_record_that_nobody_read_does_not_arrive() -> None:
    [run] = runs(verdict([send(0), send(1, outcome="aborted")], [record(0)]), "not acknowledged")
    assert not run.arrows[0].arrives


def test_of_very_many_anomalies_the_worst_are_drawn_and_the_others_folded() -> None:
    sends = [send(n) for n in range(200)]
    judged = verdict(sends, [record(n) for n in range(200) if n % 2], [poll(n) for n in range(1, 200, 2)])
    layout = lay_out(judged)
    assert sum(run.offending for run in layout.runs) == 12
    [folded] = runs(judged, "folded")
    assert len(folded.arrows) == 200 - 12 * 2 + 1


def test_order_is_told_by_the_lists_where_nobody_noted_the_time() -> None:
    layout = lay_out(judge(sent=["a", "b"], log=["a", "b"], polled=["a", "b"]))
    assert layout.clock == ()
    assert layout.order_at(BEGAN) is None


def test_a_fault_has_its_place_between_the_sends_around_it() -> None:
    layout = lay_out(cut_off())
    starts = {arrow.record.offset: arrow.start for run in layout.runs for arrow in run.arrows if arrow.arrives}
    assert starts[10] < layout.order_at(BEGAN + 0.105) < starts[11]
    assert layout.order_at(BEGAN - 1) is None
    assert layout.order_at(BEGAN + 60) is None


# -- drawing


def test_the_drawing_names_what_is_wrong() -> None:
    words = texts(cut_off(), [Fault(BEGAN + 0.99, "isolate", 1), Fault(BEGAN + 99, "heal", 1)])
    assert words[0] == "t: 170 acknowledged, 120 in the log · 50 lost writes · 20 inconsistent offsets · 1 non-monotonic send"
    assert {"ledger", "producer", "t-0", "partition", "50 lost writes", "100 records", "non-monotonic send"} <= set(words)
    assert {"m0", "m100", "149", "isolate 1", "seconds", "0.00"} <= set(words)
    assert "heal 1" not in words  # after all that was sent


def test_a_right_history_says_so() -> None:
    assert texts(verdict([send(0)], [record(0)]))[0] == "t: 1 acknowledged, 1 in the log · no anomaly"


def test_a_few_skipped_and_aborted_records() -> None:
    words = texts(verdict([send(n) for n in range(4)], [record(n) for n in range(4)], [poll(0), poll(3), poll(3)]))
    assert {"poll skip: 2 records", "non-monotonic poll"} <= set(words)
    assert {"aborted", "aborted read"} <= set(texts(verdict([send(0, outcome="aborted")], polls=[poll(0)])))
    assert "in order of time →" in texts(judge(sent=["a"], log=["a"]))


def test_nothing_to_draw() -> None:
    assert texts(judge()) == ["nothing: no records · no anomaly"]


@pytest.mark.parametrize("palette", [LIGHT, THEMED])
def test_everything_has_a_place_within_the_picture(palette: Palette) -> None:
    drawing = draw_space_time(lay_out(cut_off()), [Fault(BEGAN + 0.5, "kill", 0)], palette)
    for root, part in zip(svg_roots(flow([drawing], "title", palette)), (drawing.names, drawing.drawing), strict=True):
        for element in root.iter(f"{SVG}text"):
            assert 0 <= float(element.get("x")) <= part.width
            assert 0 <= float(element.get("y")) <= part.height
        assert not any("nan" in value for element in root.iter() for value in element.attrib.values())


def test_values_are_escaped() -> None:
    assert "<b>" in texts(judge(sent=["<b>"], log=[]))


def test_its_size_does_not_grow_with_the_records() -> None:
    large, small = (len(SpaceTime(judged).snapshot().html) for judged in (cut_off(20_000, 10_000, 5000), cut_off()))
    assert large < 1.1 * small


def test_the_widget_has_a_still_picture_and_the_verdict_in_words() -> None:
    judged = cut_off()
    shown = SpaceTime(judged)
    assert shown.snapshot().summary == repr(judged)
    still = shown.snapshot().html
    assert all(root.find(f"{SVG}rect").get("fill") == "#ffffff" for root in svg_roots(still))
    assert f'alt="{escape(spoken(repr(judged)))}"' in still
    assert "var(--jp-layout-color1" in shown.widget.children[0].value
