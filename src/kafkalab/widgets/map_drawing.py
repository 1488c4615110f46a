"""Draw the still picture of a cluster: a view in, SVG out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from kafkalab.cluster.view import BrokerView, ClusterView, GroupView, MemberView, PartitionView
from kafkalab.widgets.events import Event
from kafkalab.widgets.palette import CROWN, LAG, LEADER, LIGHT, OUT_OF_ISR, STATE_COLOURS, THEMED
from kafkalab.widgets.picture import COLUMN, GAP, Picture, flow, phrases
from kafkalab.widgets.svg import Drawing, fit, line, path, rect, text, text_width

__all__ = ["broker_rows", "map_picture", "status", "summary"]

_HALF = (COLUMN - GAP) / 2
_GROUP = 416  # two of these fit into a column of 840
_INNER = 8
_SQUARE, _WIDE_SQUARE = 18, 26  # the latter for numbers of three digits and more
_SPACE = 3
_PITCH = _SQUARE + _SPACE
_HEAD = 52
_STILL_EVENTS = 10


def map_picture(
    view: ClusterView, *, topics: Sequence[str] | None = None, groups: bool = True, events: Sequence[Event] = ()
) -> Picture:
    """Return a still picture of a cluster.

    Parameters
    ----------
    view
        What to draw.
    topics
        Topics to show; all if None.
    groups
        Whether to show consumer groups.
    events
        Events for the end of the picture. It shows the last ten, without errors.
    """
    words = summary(view, topics)
    rows = [flow(_draw_row(view, ids, topics), words if i == 0 else "", cards=False) for i, ids in enumerate(broker_rows(view))]
    cards = _draw_groups(view) if groups else []
    pieces = [
        phrases([(said, THEMED.text if good else STATE_COLOURS["dead"]) for said, good in status(view, topics)]),
        *rows,
        _legend_html(),
        flow(cards, "", cards=False) if cards else "",
        _events_html(events),
    ]
    return Picture(f"<div>{''.join(pieces)}</div>", words)


def broker_rows(view: ClusterView) -> list[tuple[int, ...]]:
    """Return the ids of the nodes that stand together: brokers, then dedicated controllers."""
    serving = sorted(id_ for id_, broker in view.brokers.items() if broker.address)
    others = sorted(view.brokers.keys() - set(serving))
    return [tuple(ids) for ids in (serving, others) if ids]


def _shown(view: ClusterView, topics: Sequence[str] | None) -> dict[str, tuple[PartitionView, ...]]:
    return {name: view.topics[name] for name in (sorted(view.topics) if topics is None else topics) if name in view.topics}


def summary(view: ClusterView, topics: Sequence[str] | None = None) -> str:
    """Describe a cluster in words."""
    brokers = ", ".join(
        f"{id_} {broker.state}{' (active controller)' if broker.controller else ''}"
        for id_, broker in sorted(view.brokers.items())
    )
    lines = [f"Brokers: {brokers}"]
    for name, partitions in _shown(view, topics).items():
        led: dict[int | None, list[int]] = {}
        for p in partitions:
            led.setdefault(p.leader, []).append(p.partition)
        shares = "; ".join(
            f"{'no leader' if leader is None else f'led by {leader}'}: {', '.join(map(str, numbers))}"
            for leader, numbers in sorted(led.items(), key=lambda item: (item[0] is None, item[0] or 0))
        )
        lines.append(f"{name}: {shares}; {sum(len(p.isr) < len(p.replicas) for p in partitions)} with an incomplete ISR")
    lines += [
        f"group {id_}: {len(group.members)} members, lag {sum(group.lag.values())}"
        for id_, group in sorted(view.groups.items())
    ]
    return "\n".join(lines)


def status(view: ClusterView, topics: Sequence[str] | None) -> list[tuple[str, bool]]:
    """Return phrases on the cluster's state. Each says whether all is well."""
    up = sum(broker.state == "up" for broker in view.brokers.values())
    partitions = [p for shown in _shown(view, topics).values() for p in shown]
    leaderless = sum(p.leader is None for p in partitions)
    incomplete = sum(len(p.isr) < len(p.replicas) for p in partitions)
    controller = "no active controller" if view.controller is None else f"active controller {view.controller}"
    parts = [(f"{up} of {len(view.brokers)} nodes up", up == len(view.brokers)), (controller, view.controller is not None)]
    if leaderless:
        parts.append((f"{leaderless} of {len(partitions)} partitions leaderless", False))
    if incomplete:
        parts.append((f"{incomplete} of {len(partitions)} partitions with an incomplete ISR", False))
    elif partitions:
        parts.append((f"all {len(partitions)} partitions in sync" if len(partitions) > 1 else "the partition in sync", True))
    return parts


def _draw_row(view: ClusterView, ids: Sequence[int], topics: Sequence[str] | None) -> list[Drawing]:
    """Draw each broker as a box with its replicas of every topic. A topic has the same place in all boxes."""
    width = COLUMN if len(ids) == 1 else _HALF
    serving = any(view.brokers[id_].address for id_ in ids)
    shown = _shown(view, topics) if serving else {}
    tops, y = {}, float(_HEAD)
    for name, partitions in shown.items():
        tops[name] = y
        in_line, _ = _grid(partitions, width)
        y += 16 + _PITCH * -(-len(partitions) // in_line) + 5
    height = y + 4
    boxes = []
    for id_ in ids:
        body = _broker_box(view.brokers[id_], width, height)
        for name, partitions in shown.items():
            body += _topic_in_broker(id_, name, partitions, tops[name], width)
        boxes.append(Drawing(body, height, width))
    return boxes


def _grid(partitions: Sequence[PartitionView], width: float) -> tuple[int, int]:
    """Return how many squares stand in a line, and the width of each."""
    side = _side(max((p.partition for p in partitions), default=0))
    return max(1, int((width - 2 * _INNER + _SPACE) // (side + _SPACE))), side


def _side(partition: int) -> int:
    """Return the width of a square that the partition's number fits into."""
    return _SQUARE if partition < 100 else _WIDE_SQUARE


def _broker_box(broker: BrokerView, width: float, height: float) -> str:
    colour = STATE_COLOURS[broker.state]
    gone = broker.state in ("dead", "stopped")
    kind = "broker" if broker.address else "controller"
    body = rect(0, 0, width, height, fill=LIGHT.background, radius=6)
    body += rect(1, 1, width - 2, height - 2, fill=LIGHT.panel, stroke=colour, stroke_width=2, radius=6)
    body += rect(1, 1, width - 2, 26, fill=colour, opacity=0.14 if gone else 0.22, radius=6)
    body += text(_INNER, 19, f"{kind} {broker.id}", fill=LIGHT.text, size=14, weight="700")
    word = 12 * 0.6 * len(broker.state) + 14
    body += rect(width - word - 6, 5, word, 18, fill=colour, radius=9)
    body += text(width - word / 2 - 6, 18, broker.state, fill="#ffffff", size=12, anchor="middle", weight="600")
    left = float(_INNER)
    if broker.controller:
        body += _crown(left, 32)
        words = "active controller"
        body += text(left + 19, 44, words, fill=LIGHT.text, size=12, weight="600")
        left += 19 + text_width(words, 12) + 10
    if broker.rack:
        body += text(left, 44, fit(f"rack {broker.rack}", width - left - 4, 12), fill=LIGHT.muted, size=12)
    return body


def _crown(x: float, y: float) -> str:
    return path(f"M{x:g} {y + 13:g} l-1 -10 l4 4 l4 -7 l4 7 l4 -4 l-1 10 z", fill=CROWN)


def _topic_in_broker(broker: int, name: str, partitions: Sequence[PartitionView], y: float, width: float) -> str:
    body = text(_INNER, y + 11, fit(name, width - 2 * _INNER - 58, 12), fill=LIGHT.muted)
    leads = sum(p.leader == broker for p in partitions)
    body += text(width - _INNER, y + 11, f"leads {leads}", fill=LIGHT.muted, anchor="end")
    in_line, side = _grid(partitions, width)
    for i, p in enumerate(partitions):
        # A partition has the same place in every broker for easy comparison. A broker without a replica has a gap
        # there.
        if broker in p.replicas:
            body += _square(p, broker, _INNER + i % in_line * (side + _SPACE), y + 16 + i // in_line * _PITCH, side)
    return body


def _square(p: PartitionView, broker: int, x: float, y: float, side: int = _SQUARE) -> str:
    role = "leader" if p.leader == broker else "follower" if broker in p.isr else "out of the ISR"
    title = f"{p.topic}, partition {p.partition}: {role} on {broker}; leader {'none' if p.leader is None else p.leader}"
    title = title if p.topic else ""  # the legend has no partitions to name
    if p.leader == broker:
        body = rect(x, y, side, _SQUARE, fill=LEADER, radius=3, title=title)
        colour = "#ffffff"
    elif broker in p.isr:
        body = rect(x, y, side, _SQUARE, fill=LEADER, opacity=0.26, radius=3, title=title)
        colour = LIGHT.text
    else:
        body = rect(
            x + 1,
            y + 1,
            side - 2,
            _SQUARE - 2,
            fill=OUT_OF_ISR,
            opacity=0.08,
            stroke=OUT_OF_ISR,
            stroke_width=1.5,
            radius=3,
            title=title,
        )
        # Draw the hatching line by line: a pattern needs an id, and ids of several pictures on a page collide.
        for step in (6, 12):
            body += line(x + 1, y + step, x + step, y + 1, stroke=OUT_OF_ISR, opacity=0.6)
            right, bottom = x + side - 1, y + _SQUARE - 1
            body += line(right - step, bottom, right, bottom - step, stroke=OUT_OF_ISR, opacity=0.6)
        colour = LIGHT.text
    if p.replicas[:1] == (broker,):
        corner = f"M{x + side:g} {y + _SQUARE - 6:g} v6 h-6 z"
        body += path(corner, fill=CROWN)
    return body + text(x + side / 2, y + 13, str(p.partition), fill=colour, size=12, anchor="middle", weight="600")


def _legend_html() -> str:
    """Return a square of each kind with its meaning."""
    cases: list[tuple[PartitionView, str]] = [
        (PartitionView("", 3, 0, 0, (1, 0), (0, 1)), "leader"),
        (PartitionView("", 3, 1, 0, (1, 0), (0, 1)), "follower in the ISR"),
        (PartitionView("", 3, 1, 0, (1, 0), (1,)), "replica out of the ISR"),
        (PartitionView("", 3, 1, 0, (0, 1), (0, 1)), "corner: preferred leader"),
    ]
    entries = ""
    for partition, words in cases:
        background = rect(0, 0, _SQUARE, _SQUARE, fill=LIGHT.background, radius=3)  # also on a dark page
        square = Drawing(background + _square(partition, 0, 0, 0), _SQUARE, _SQUARE)
        entries += f'<span style="display:flex;gap:6px;align-items:center">{flow([square], "", cards=False)}{words}</span>'
    style = f"display:flex;flex-wrap:wrap;gap:0 16px;font:12px/20px system-ui,sans-serif;color:{THEMED.muted}"
    return f'<div style="{style}">{entries}</div>'


def _draw_groups(view: ClusterView) -> list[Drawing]:
    """Draw consumer groups as cards."""
    groups = [view.groups[id_] for id_ in sorted(view.groups)]
    width = COLUMN if len(groups) == 1 else _GROUP
    cards = [_group_card(group, width) for group in groups]
    return [Drawing(_group_frame(width, card.height) + card.body, card.height, width) for card in cards]


def _group_frame(width: float, height: float) -> str:
    return rect(0.5, 0.5, width - 1, height - 1, fill=LIGHT.panel, stroke=LIGHT.border, radius=6)


def _group_card(group: GroupView, width: float) -> Drawing:
    lag = sum(group.lag.values())
    state = fit(group.state.lower().replace("_", " "), width * 0.25, 12)
    room = width - 90 - text_width(state, 12) - 2 * _INNER
    body = text(_INNER, 19, fit(f"group {group.id}", room, 13), fill=LIGHT.text, size=13, weight="700")
    body += text(width - 90, 19, state, fill=LIGHT.muted, size=12, anchor="end")
    body += text(width - _INNER, 19, f"lag {lag}", fill=LAG if lag else LIGHT.muted, size=12, anchor="end", weight="600")
    topics = {topic for member in group.members for topic, _ in member.partitions} | {topic for topic, _ in group.lag}
    y = 28.0
    for member in sorted(group.members, key=lambda m: (m.client_id, m.id)):
        row = _member_row(member, group, width, len(topics) > 1)
        body += f'<g transform="translate(0 {y:g})">{row.body}</g>'
        y += row.height
    if not group.members:
        body += text(_INNER, y + 13, "no members", fill=LIGHT.muted)
        y += 20
    elif len(topics) == 1:
        body += text(_INNER, y + 11, fit(f"of topic {next(iter(topics))}", width - 2 * _INNER, 12), fill=LIGHT.muted)
        y += 15
    return Drawing(body, y + 5)


def _member_row(member: MemberView, group: GroupView, width: float, name_topics: bool) -> Drawing:
    lag = sum(group.lag.get(owned, 0) for owned in member.partitions)
    left, right = 130.0, width - 70
    body = text(_INNER, 14, fit(member.client_id, left - _INNER - 6, 12), fill=LIGHT.text)
    if not member.partitions:
        return Drawing(body + text(left, 14, "idle: owns nothing", fill=LIGHT.muted), 22)
    x, y = left, 0.0
    for topic, partitions in _by_topic(member.partitions):
        if name_topics:
            words = fit(topic, min(150, right - left - _PITCH), 12)
            if x > left and x + text_width(words, 12) + _PITCH > right:
                x, y = left, y + _PITCH
            body += text(x, y + 13, words, fill=LIGHT.muted)
            x += text_width(words, 12) + 6
        for partition in partitions:
            side = _side(partition)
            if x + side > right:
                x, y = left, y + _PITCH
            behind = group.lag.get((topic, partition), 0)
            title = f"{topic}, partition {partition}: lag {behind}"
            body += rect(x, y, side, _SQUARE, fill=LAG if behind else STATE_COLOURS["up"], opacity=0.25, radius=3, title=title)
            body += text(x + side / 2, y + 13, str(partition), fill=LIGHT.text, anchor="middle")
            x += side + _SPACE
        x += 8
    body += text(width - _INNER, 14, f"lag {lag}", fill=LAG if lag else LIGHT.muted, anchor="end")
    return Drawing(body, y + _PITCH + 1)


def _by_topic(partitions: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    numbers_by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        numbers_by_topic.setdefault(topic, []).append(partition)
    return list(numbers_by_topic.items())


def _events_html(events: Sequence[Event]) -> str:
    # Errors may contain addresses and paths of this machine. A stored notebook must not hold them.
    lines = [event for event in events if event.kind != "error"][-_STILL_EVENTS:]
    if not lines:
        return ""
    body = "".join(
        f'<div style="color:{OUT_OF_ISR if event.kind == "fault" else THEMED.text}">{escape(event.text)}</div>'
        for event in lines
    )
    return f'<div style="font:12px/16px ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere">{body}</div>'
