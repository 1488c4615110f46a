"""The topics of the live map, in HTML: a row with a cell per broker, or one chip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from kafkalab.cluster.view import ClusterView, PartitionView
from kafkalab.widgets.broker_header import GONE
from kafkalab.widgets.flows import leader_spot, producers_spot
from kafkalab.widgets.map_style import columns
from kafkalab.widgets.rates import AT_REST, Rates, rate_words

__all__ = ["LEGEND", "topic_chips", "topic_row"]

_ROLES = {"leader": "leads", "follower": "follows", "out": "out of the ISR", "down": "down"}
_WORDS = {"leader": "leader", "follower": "follower", "out": "out of the ISR", "down": "broker down"}

LEGEND = (
    '<div class="legend muted">'
    + "".join(f'<span><i class="{role}" aria-hidden="true">3</i> {words}</span>' for role, words in _WORDS.items())
    + '<span><i class="follower preferred" aria-hidden="true">3</i> preferred leader</span></div>'
)


def topic_row(view: ClusterView, topic: str, brokers: Sequence[int], rates: Rates = AT_REST) -> str:
    """Return a topic's row: its name, what producers write, and for each broker the replicas that it has."""
    partitions = view.topics[topic]
    cells = "".join(_cell(view, partitions, broker, rates) for broker in brokers)
    return (
        f'<div class="topic"><b title="{escape(topic)}">{escape(topic)}</b><span class="muted">{_shape(partitions)}</span>'
        f"{_amiss(partitions)}{_written(topic, rates, 'producers ')}</div>"
        f'<div class="columns" style="grid-template-columns:{columns(len(brokers))}">{cells}</div>'
    )


def topic_chips(view: ClusterView, topics: Iterable[str], rates: Rates = AT_REST) -> str:
    """Return topics of one partition as a chip each, which tells the leader and what producers write."""
    chips = "".join(_chip(topic, view.topics[topic][0], rates) for topic in topics)
    return f'<div class="chips">{chips}</div>' if chips else ""


def _shape(partitions: Sequence[PartitionView]) -> str:
    replicas = max((len(p.replicas) for p in partitions), default=0)
    return f'<span title="partitions × replicas">{len(partitions)} × {replicas}</span>'


def _written(topic: str, rates: Rates, who: str) -> str:
    rate = sum(written for (written_to, _), written in rates.written.items() if written_to == topic)
    if not rate:
        return ""
    title = "records that producers write, per second"
    return f'<span class="written muted" title="{title}" {producers_spot(topic)}>{who}{rate_words(rate)}</span>'


def _amiss(partitions: Sequence[PartitionView]) -> str:
    leaderless = [str(p.partition) for p in partitions if p.leader is None]
    incomplete = sum(len(p.isr) < len(p.replicas) for p in partitions)
    words = []
    if leaderless:
        numbers = ", ".join(f"p{number}" for number in leaderless) if len(leaderless) <= 6 else f"{len(leaderless)} partitions"
        words.append(f"no leader: {numbers}")
    if incomplete:
        words.append(f"{incomplete} of {len(partitions)} with an incomplete ISR")
    return f'<span class="bad">{"; ".join(words)}</span>' if words else ""


def _role(view: ClusterView, partition: PartitionView, broker: int) -> str:
    node = view.brokers.get(broker)
    if node is None or node.state in GONE:
        return "down"
    if partition.leader == broker:
        return "leader"
    return "follower" if broker in partition.isr else "out"


def _cell(view: ClusterView, partitions: Sequence[PartitionView], broker: int, rates: Rates) -> str:
    roles: dict[str, list[str]] = {role: [] for role in _ROLES}
    replicas = ""
    for p in partitions:
        if broker in p.replicas:
            role = _role(view, p, broker)
            roles[role].append(str(p.partition))
            preferred = " preferred" if p.replicas[0] == broker else ""
            leader = "none" if p.leader is None else p.leader
            title = f"partition {p.partition}: {_WORDS[role]}; leader {leader}, ISR {','.join(map(str, p.isr)) or 'empty'}"
            place = (p.topic, p.partition)
            spot = f" {leader_spot(place)}" if role == "leader" else ""
            moves = " moves" if role == "leader" and place in rates.written else ""
            replicas += f'<i class="{role}{preferred}{moves}" title="{title}"{spot}>{p.partition}</i>'
    words = "; ".join(f"{_ROLES[role]} {', '.join(numbers)}" for role, numbers in roles.items() if numbers)
    return f'<div class="replicas" role="img" aria-label="broker {broker}: {words or "no replica"}">{replicas}</div>'


def _chip(topic: str, partition: PartitionView, rates: Rates) -> str:
    missing = len(partition.isr) < len(partition.replicas)
    spot = leader_spot((topic, partition.partition))
    leader = "no leader" if partition.leader is None else f"<span {spot}>{partition.leader}</span>"
    isr = f", ISR {len(partition.isr)} of {len(partition.replicas)}" if missing else ""
    led_by = "none" if partition.leader is None else partition.leader
    title = f"one partition; leader {led_by}, ISR {','.join(map(str, partition.isr)) or 'empty'}"
    bad = ' class="bad"' if missing or partition.leader is None else ""
    written = _written(topic, rates, "")
    return f'<span{bad} title="{title}">{written}{escape(topic)} → {leader}{isr}</span>'
