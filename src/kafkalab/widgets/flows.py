"""Which way records move through the live map, and how fast.

Python says only that. The course's JupyterLab extension ``kafkalab-motion`` draws the dots: between places of the map that
have names, in an element of its own. The browser moves them while the rows below are drawn anew.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kafkalab.widgets.palette import STATE_COLOURS, THEMED
from kafkalab.widgets.rates import Place, Rates

__all__ = ["FLOW_STYLE", "Flow", "flows", "flows_html", "leader_spot", "producers_spot", "reader_spot"]

_FASTEST = 4  # the highest speed


@dataclass(frozen=True)
class Flow:
    """Records that move from one place of the map to another. `speed` is from 1 to 4, by powers of ten of the rate."""

    start: str
    end: str
    speed: int


def producers_spot(topic: str) -> str:
    """Return the attribute of the place that a topic's records come from."""
    return _spot(_producers(topic))


def leader_spot(place: Place) -> str:
    """Return the attribute of the replica that leads a partition."""
    return _spot(_leader(place))


def reader_spot(group: str, place: Place) -> str:
    """Return the attribute of a partition at the member that reads it."""
    return _spot(_reader(group, place))


def flows(rates: Rates) -> list[Flow]:
    """Return what moves, in order."""
    ways = {(_producers(place[0]), _leader(place)): rate for place, rate in rates.written.items()}
    ways |= {(_leader(place), _reader(group, place)): rate for (group, place), rate in rates.read.items()}
    return [Flow(start, end, _speed(rate)) for (start, end), rate in sorted(ways.items())]


def flows_html(moving: Sequence[Flow]) -> str:
    """Return what the extension reads. Screen readers don't: they get the rates in words."""
    told = json.dumps([[flow.start, flow.end, flow.speed] for flow in moving])
    return f'<div class="kafkalab-flows" aria-hidden="true" data-flows="{escape(told)}"></div>'


def _speed(rate: float) -> int:
    return min(_FASTEST, max(1, 1 + math.floor(math.log10(max(1.0, rate)))))


def _spot(name: str) -> str:
    return f'data-spot="{escape(name)}"'


# Neither a topic nor a partition's number holds a space.
def _producers(topic: str) -> str:
    return topic


def _leader(place: Place) -> str:
    return f"{place[0]} {place[1]}"


def _reader(group: str, place: Place) -> str:
    return f"{place[0]} {place[1]} {group}"


def _dot(colour: str) -> str:
    return f"color-mix(in srgb, {colour} 80%, {THEMED.text})"


# The extension hears of a new element by the animation that begins with it. Who wants less motion gets marks that rest.
FLOW_STYLE = f"""<style>
@keyframes kafkalab-flows {{ from {{ visibility: hidden; }} }}
.kafkalab-map {{ position: relative; }}
.kafkalab-map .topic .written {{ margin-left: auto; }}
.kafkalab-map .group .numbers:has(.read) {{ flex-shrink: 99; min-width: min-content; height: 1.4em; overflow: hidden;
  white-space: normal; }}
.kafkalab-map .group .numbers > span {{ display: inline-block; white-space: nowrap; }}
.kafkalab-map .chips .written {{ margin-right: 6px; }}
.kafkalab-motion-choice, .kafkalab-motion-choice .widget-label-basic {{ height: 22px; line-height: 22px; font-size: 12px; }}
.kafkalab-flows {{ position: absolute; width: 0; height: 0; animation: kafkalab-flows 1ms; }}
.kafkalab-dots {{ position: absolute; top: 0; left: 0; z-index: 0; pointer-events: none; }}
.kafkalab-dots > span {{ position: absolute; left: -2.5px; top: -2.5px; width: 5px; height: 5px; border-radius: 50%;
  background: {_dot(STATE_COLOURS["starting"])}; }}
.kafkalab-dots > .read {{ background: {_dot(STATE_COLOURS["up"])}; }}
@media (prefers-reduced-motion: reduce) {{
  .kafkalab-dots {{ display: none; }}
  .kafkalab-map i.moves::before {{ content: ""; position: absolute; top: -3px; left: calc(50% - 2.5px); width: 5px; height: 5px;
    border-radius: 50%; background: {_dot(STATE_COLOURS["starting"])}; }}
  .kafkalab-map .member i.moves::before {{ background: {_dot(STATE_COLOURS["up"])}; }}
}}
</style>"""
