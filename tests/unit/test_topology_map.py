"""What is read out of a topology's description, and the picture of it."""

from __future__ import annotations

from kafkalab import TopologyMap
from kafkalab.streams.description import Node, parse
from picture_support import SVG, svg_roots, texts

DESCRIPTION = """\
Topologies:
   Sub-topology: 0 for global store (will not generate tasks)
    Source: KSTREAM-SOURCE-0000000001 (topics: [driver])
      --> KTABLE-SOURCE-0000000002
    Processor: KTABLE-SOURCE-0000000002 (stores: [driver-STATE-STORE-0000000000])
      --> none
      <-- KSTREAM-SOURCE-0000000001
  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000003 (topics: [alarm, warning])
      --> KSTREAM-MERGE-0000000005, KSTREAM-SINK-0000000006
    Source: KSTREAM-SOURCE-0000000004 (topics: tr.*)
      --> KSTREAM-MERGE-0000000005
    Processor: KSTREAM-MERGE-0000000005 (stores: [this, that])
      --> KSTREAM-SINK-0000000007
      <-- KSTREAM-SOURCE-0000000003, KSTREAM-SOURCE-0000000004
    Sink: KSTREAM-SINK-0000000006 (topic: <all>)
      <-- KSTREAM-SOURCE-0000000003
    Sink: KSTREAM-SINK-0000000007 (extractor class: <function <lambda> at 0x7fb534ef7b00>)
      <-- KSTREAM-MERGE-0000000005

"""


class Described:
    """A topology that says this of itself."""

    def __init__(self, description: str) -> None:
        self.description = description

    def describe(self) -> str:
        return self.description


def test_a_description_is_taken_apart() -> None:
    one, two = parse(DESCRIPTION)
    assert (one.number, one.is_global, two.number, two.is_global) == (0, True, 1, False)
    assert one.nodes == (
        Node("Source", "KSTREAM-SOURCE-0000000001", topics=("driver",), followers=("KTABLE-SOURCE-0000000002",)),
        Node("Processor", "KTABLE-SOURCE-0000000002", stores=("driver-STATE-STORE-0000000000",)),
    )
    nodes = {int(node.name[-2:]): node for node in two.nodes}
    assert nodes[3].topics == ("alarm", "warning") and nodes[4].topics == ("tr.*",)
    assert nodes[3].followers == ("KSTREAM-MERGE-0000000005", "KSTREAM-SINK-0000000006")
    assert nodes[5].stores == ("this", "that") and nodes[6].topics == ("<all>",) and nodes[7].topics == ()
    assert [node.kind for node in two.nodes] == ["Source", "Source", "Processor", "Sink", "Sink"]


def test_the_picture_shows_each_name_in_readable_text_and_the_words_say_the_same() -> None:
    picture = TopologyMap(Described(DESCRIPTION))
    drawn = texts(picture.html)
    names = ["driver", "KTABLE-SOURCE-2", "driver-STATE-STORE-0", "warning", "tr.*", "that", "<all>", "sub-topology 0, global"]
    assert set(names) <= set(drawn)
    for name in names:
        assert name in picture.summary
    assert "KSTREAM-SOURCE-3 (topic alarm, topic warning) → KSTREAM-MERGE-5, KSTREAM-SINK-6" in picture.summary


def test_no_box_covers_another_and_all_are_within_the_picture() -> None:
    wide = "".join(f"    Source: source-{n} (topics: [{'long' * 9}-{n}])\n      --> none\n" for n in range(9))
    (svg,) = svg_roots(TopologyMap(Described(f"Topologies:\n   Sub-topology: 0\n{wide}")).html)
    boxes = [{name: float(box.get(name)) for name in ("x", "y", "width", "height")} for box in svg.iter(f"{SVG}rect")]
    corners = sorted((box["y"], box["x"], box["x"] + box["width"]) for box in boxes if box["height"] == 22)
    assert len(corners) == 18 and max(right for _, _, right in corners) <= float(svg.get("width"))
    assert all(left[0] < right[0] or left[2] < right[1] for left, right in zip(corners, corners[1:], strict=False))
