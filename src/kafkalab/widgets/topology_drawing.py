"""A topology of Kafka Streams as SVG: sub-topologies with their nodes, and the topics and stores that these use."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kafkalab.streams.description import Node, SubTopology
from kafkalab.widgets.palette import LAG, LEADER, LIGHT, THEMED
from kafkalab.widgets.picture import flow, phrases
from kafkalab.widgets.svg import Drawing, fit, line, path, rect, text

__all__ = ["topology_html", "topology_text"]

_SIZE = 12
_BOX, _WIDE, _NARROW = 22, 214, 152  # the height of a box, and its width
_GAP, _RISE = 14, 24  # between columns, and between rows
_EDGE, _HEAD = 12, 26  # within the frame of a sub-topology: around it, and for its title


def topology_html(subs: Sequence[SubTopology]) -> str:
    """Return a frame for each, side by side as far as they fit. A wide one scrolls by itself."""
    legend = phrases([("topic", LEADER), ("source, processor or sink", THEMED.text), ("state store", LAG)])
    return f"<div>{legend}{flow(map(_frame, subs), topology_text(subs), cards=False)}</div>"


def topology_text(subs: Sequence[SubTopology]) -> str:
    """The same in words."""
    return "\n".join(line for sub in subs for line in (_title(sub), *(f"  {_in_words(node)}" for node in sub.nodes)))


def _in_words(node: Node) -> str:
    used = ", ".join((*(f"topic {topic}" for topic in node.topics), *(f"store {_short(store)}" for store in node.stores)))
    followers = ", ".join(map(_short, node.followers))
    return f"{_short(node.name)}{f' ({used})' if used else ''}{f' → {followers}' if followers else ''}"


def _title(sub: SubTopology) -> str:
    return f"sub-topology {sub.number}{', global' if sub.is_global else ''}"


def _short(name: str) -> str:
    """A name without the zeros of the number that Kafka Streams gave it."""
    return re.sub(r"\d{10}", lambda match: str(int(match[0])), name)


def _placed(nodes: Sequence[Node]) -> dict[str, tuple[int, int]]:
    """Row and column of each node: below all that pass records to it, and in the column of one of them if that's free."""
    before: dict[str, list[str]] = {node.name: [] for node in nodes}
    for node in nodes:
        for follower in node.followers:
            before[follower].append(node.name)
    rows: dict[str, int] = {}

    def row(name: str) -> int:
        if name not in rows:
            rows[name] = max((row(other) + 1 for other in before[name]), default=0)
        return rows[name]

    places: dict[str, tuple[int, int]] = {}
    for name in sorted(before, key=row):
        column = min((places[other][1] for other in before[name]), default=0)
        while (row(name), column) in places.values():
            column += 1
        places[name] = row(name), column
    return places


def _frame(sub: SubTopology) -> Drawing:
    """A sub-topology in its frame."""
    places = _placed(sub.nodes)
    columns = 1 + max(column for _, column in places.values())
    width = _WIDE if columns <= 2 else _NARROW
    heights: dict[int, float] = {}
    for node in sub.nodes:
        row = places[node.name][0]
        heights[row] = max(heights.get(row, 0), _height(node))
    tops = {row: _HEAD + sum(heights[above] + _RISE for above in range(row)) for row in heights}
    corners = {name: (_EDGE + column * (width + _GAP), tops[row]) for name, (row, column) in places.items()}
    arrows = [
        _arrow(corners[node.name], _height(node), corners[follower], width) for node in sub.nodes for follower in node.followers
    ]
    boxes = [_node(node, *corners[node.name], width) for node in sub.nodes]
    size = 2 * _EDGE + columns * (width + _GAP) - _GAP, max(tops[row] + heights[row] for row in tops) + _EDGE
    frame = rect(0, 0, *size, fill=LIGHT.panel, stroke=LIGHT.border, radius=6)
    title = text(_EDGE, 17, fit(_title(sub), size[0] - _EDGE, _SIZE), fill=LIGHT.muted, size=_SIZE)
    return Drawing(frame + title + "".join(arrows) + "".join(boxes), size[1], size[0])


def _height(node: Node) -> float:
    return _BOX * (1 + len(node.topics) + len(node.stores))


def _node(node: Node, x: float, y: float, width: float) -> str:
    """A node's box, with those of its topics and stores: what a source reads is above it, all other ones are below."""
    own = (node.name, LIGHT.text, LIGHT.border)
    topics, stores = (
        [(name, colour, colour) for name in names] for names, colour in ((node.topics, LEADER), (node.stores, LAG))
    )
    boxes = [*topics, own] if node.kind == "Source" else [own, *topics, *stores]
    drawn = []
    for number, (name, colour, border) in enumerate(boxes):
        top = y + number * _BOX
        drawn.append(rect(x, top, width, _BOX, fill=LIGHT.background, stroke=border, radius=3, title=name))
        drawn.append(
            text(x + width / 2, top + 15, fit(_short(name), width - 8, _SIZE), fill=colour, size=_SIZE, anchor="middle")
        )
    return "".join(drawn)


def _arrow(start: tuple[float, float], height: float, end: tuple[float, float], width: float) -> str:
    """From the lower edge of a node's boxes to the upper edge of another's."""
    x, y = end[0] + width / 2, end[1]
    shaft = line(start[0] + width / 2, start[1] + height, x, y - 5, stroke=LIGHT.muted, width=1.4)
    return shaft + path(f"M{x - 4:g} {y - 7:g}H{x + 4:g}L{x:g} {y - 1:g}Z", fill=LIGHT.muted)
