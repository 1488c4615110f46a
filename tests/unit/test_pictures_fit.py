"""Every picture fits into a column of 520 pixels, or scrolls in a box of its own, and no text is smaller than 12 pixels."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafkacourse.ch11_spark_pipeline.dashboard_drawing import draw_dashboard
from kafkacourse.ch11_spark_pipeline.reading import Place, Rate, Reading
from kafkalab import TopologyMap
from kafkalab.cluster.log_files import LogFolder
from kafkalab.cluster.log_offsets import LogOffsets
from kafkalab.cluster.log_reader import LogView
from kafkalab.cluster.view import Fault
from kafkalab.history.judgement import verdict_on
from kafkalab.history.records import History, Poll, Record, Send
from kafkalab.widgets import SpaceTime
from kafkalab.widgets.events import Event
from kafkalab.widgets.log_drawing import log_picture, overview_html, segments_html
from kafkalab.widgets.map_drawing import map_picture
from kafkalab.widgets.palette import LIGHT, THEMED, Palette
from kafkalab.widgets.picture import flow
from kafkalab.widgets.svg import Drawing, rect
from kafkalab.widgets.terminals_drawing import Pane, panes_html
from kafkalab.widgets.timeline_drawing import Ack, Mark, draw_timeline
from log_support import batch, write_segment
from picture_support import SVG, svg_roots
from widget_support import group, healthy, partition

ROOT = Path(__file__).parents[2]
COLUMN, LEAST = 520, 12.0
LONG = "dangerous-driving-and-everything-that-came-of-it"


def boxes(html: str) -> Iterator[str]:
    """Split a picture into its boxes: each begins where a drawing or a scrolling box does."""
    yield from re.split(r"(?=<div)", html)


def widths_without_scrolling(html: str) -> list[float]:
    """Return the width of each row's widest unbreakable piece: drawings side by side in a box, unless it scrolls."""
    widths = []
    for box in boxes(html):
        drawn = sum(float(root.get("width")) for root in svg_roots(box))
        framed = 2 if "border:1px" in box else 0
        if drawn and "overflow-x:auto" in box and "tabindex" in box:
            continue
        widths.append(drawn + framed)
    return widths


def assert_fits(html: str) -> None:
    roots = svg_roots(html)
    assert roots
    assert max(widths_without_scrolling(html)) <= COLUMN
    for root in roots:
        left, top, width, height = map(float, root.get("viewBox").split())
        assert (width, height) == (float(root.get("width")), float(root.get("height"))), "not scaled"
        sizes = [float(element.get("font-size")) for element in root.iter(f"{SVG}text")]
        assert min(sizes, default=LEAST) >= LEAST
        for shape in root.iter(f"{SVG}rect"):
            assert float(shape.get("x")) >= left - 0.1
            assert float(shape.get("x")) + float(shape.get("width")) <= left + width + 0.1
    sizes = [float(size) for size in re.findall(r"font(?:-size)?:(?:\d+ )?([\d.]+)px", html)]
    assert min(sizes, default=LEAST) >= LEAST
    assert not re.search(r"font-size='(?!1[2-9]|[2-9]\d)", html)


@pytest.mark.parametrize("brokers", [1, 2, 3, 4, 5, 6, 7, 12])
@pytest.mark.parametrize(("topics", "partitions"), [(1, 1), (1, 13), (1, 120), (20, 3)])
def test_a_map_fits(brokers: int, topics: int, partitions: int) -> None:
    names = [f"{LONG}-{number}" for number in range(topics)]
    shown = {name: tuple(partition(p, topic=name) for p in range(partitions)) for name in names}
    members = ((f"{LONG}-{number}", tuple((name, p) for name in names for p in range(partitions))) for number in range(2))
    groups = {id_: group(*members, id_=id_, lag={(names[0], 0): 10**9}) for id_ in ("a", LONG)}
    view = replace(healthy(1, brokers), topics=shown, groups=groups)
    assert_fits(map_picture(view, events=[Event(1.0, "fault", LONG * 5)]).html)
    assert_fits(map_picture(replace(view, groups={LONG: groups[LONG]})).html)


@pytest.mark.parametrize("palette", [LIGHT, THEMED])
@pytest.mark.parametrize("seconds", [0, 1, 20, 300, 7200])
@pytest.mark.parametrize("partitions", [1, 12])
def test_a_timeline_fits_or_scrolls(seconds: int, partitions: int, palette: Palette) -> None:
    acks = [Ack(at / 2, at % partitions) for at in range(1 + 2 * seconds) if not 10 < at < 20]
    marks = [Mark(at, "leader" if at % 2 else "fault", f"new leaders after {at} s") for at in range(0, seconds, 3)]
    assert_fits(flow([draw_timeline(acks, marks, palette)], "timeline", palette))


def test_a_long_timeline_scrolls_beside_its_names() -> None:
    def drawn(seconds: int) -> str:
        return flow([draw_timeline([Ack(float(at), at % 2) for at in range(seconds)], [])], "timeline")

    assert "tabindex" not in drawn(30)
    assert 'tabindex="0"' in drawn(300)
    assert drawn(300).count("position:sticky") == 1
    assert float(svg_roots(drawn(300))[1].get("width")) > 2000


@pytest.mark.parametrize("records", [1, 6, 30, 3000])
@pytest.mark.parametrize("partitions", [1, 3])
def test_a_space_time_diagram_fits_or_scrolls(records: int, partitions: int) -> None:
    sends = [Send(LONG, n % partitions, n, f"m{n}", "ledger", "acknowledged", n / 50, n / 50 + 0.004) for n in range(records)]
    log = [Record(LONG, s.partition, s.offset, s.value) for s in sends if s.offset % 5]
    polls = [Poll(LONG, r.partition, r.offset, r.value, "billing", 0) for r in log]
    shown = SpaceTime(verdict_on(History(tuple(sends), tuple(log), tuple(polls))), [Fault(0.1, "isolate", 1)])
    assert_fits(shown.snapshot().html)
    assert_fits(shown.widget.children[0].value)


@pytest.mark.parametrize("segments", [1, 3, 50])
def test_a_log_fits(tmp_path: Path, segments: int) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    for number in range(segments):
        base = 10**12 + 100 * number
        write_segment(folder, base, [batch(base, [(base + i, b"k" * 60, b"v" * 100) for i in range(30)])])
    files = LogFolder(tmp_path, "t", 0).read()
    offsets = LogOffsets(0, 10**12, 10**12, ends=dict.fromkeys(range(3), 10**12), compacted=True)
    view = LogView("t", 0, 1, "up", 1, (0, 1, 2), (0, 1), offsets, files)
    assert_fits(log_picture(view).html)
    assert_fits(overview_html(view, THEMED) + segments_html(view, None, THEMED))


@pytest.mark.parametrize("columns", [1, 2, 3, 9])
def test_a_topology_fits_or_scrolls(columns: int) -> None:
    class Described:
        def describe(self) -> str:
            nodes = "".join(f"    Source: source-{n} (topics: [{LONG}-{n}])\n      --> none\n" for n in range(columns))
            return f"Topologies:\n   Sub-topology: 0\n{nodes}"

    html = TopologyMap(Described()).html
    assert_fits(html)
    assert ("tabindex" in html) == (columns > 3)


@pytest.mark.parametrize("palette", [LIGHT, THEMED])
def test_the_dashboard_fits(palette: Palette) -> None:
    drivers = tuple((f"{LONG} {number}", 10**6, 10**7) for number in range(6))
    places = (Place(41.8, -87.6, "Overspeed"),)
    rates = tuple(Rate(float(n), 10.0**7, 10.0**7) for n in range(50))
    reading = Reading(True, 10**9, 10**8, drivers, places, rates, (129.4, 129.4), 10**8, 10**8)
    for drawn in (reading, Reading()):
        assert_fits(flow(draw_dashboard(drawn, palette), "dashboard", palette))


@pytest.mark.parametrize("palette", [LIGHT, THEMED])
def test_a_drawing_is_described_once_and_a_wide_one_can_have_the_focus(palette: Palette) -> None:
    narrow, wide = (Drawing(rect(0, 0, width, 10, fill="#123456"), 10, width) for width in (100.0, 900.0))
    html = flow([narrow, wide], "two <bars>", palette)
    assert html.count("two &lt;bars&gt;") == 1
    assert html.count('tabindex="0" role="group" aria-label="scrolls sideways"') == 1
    assert [root.get("width") for root in svg_roots(html)] == ["120", "920"]
    assert ("<img" in html) == (palette is LIGHT), "an image passes JupyterLab's sanitizer"


def test_panes_of_terminals_wrap_before_they_are_too_narrow_to_read() -> None:
    panes = [Pane(LONG, [LONG * 5], "running")] * 4
    columns = re.search(r"grid-template-columns:([^;]+);", panes_html(panes, 4))
    assert columns and columns[1] == "repeat(auto-fill, minmax(max(240px, (100% - 24px) / 4), 1fr))"


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks" / "pictures").glob("*.svg")), ids=lambda path: path.name)
def test_a_drawing_in_the_text_fits(path: Path) -> None:
    root = ET.parse(path).getroot()
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}", "not scaled"
    assert float(root.get("width")) <= COLUMN
    sizes = [float(size) for size in re.findall(r"font-size: *([\d.]+)px", path.read_text())]
    assert sizes and min(sizes) >= LEAST
