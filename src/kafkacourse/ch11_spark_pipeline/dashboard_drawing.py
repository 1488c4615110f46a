"""Draw the dashboard: turn a reading into SVG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

from kafkacourse.ch11_spark_pipeline.midwest import BORDERS, CITIES, EAST, LAKE, NORTH, RIVERS, SOUTH, STATES, WEST, Line
from kafkacourse.ch11_spark_pipeline.reading import Place, Rate, Reading
from kafkalab.widgets.palette import LAG, LEADER, LIGHT, STATE_COLOURS, Palette
from kafkalab.widgets.svg import WIDTH, Drawing, fit, line, path, rect, stack, text
from truck_pipeline.trucks import ROUTES

__all__ = ["draw_dashboard", "in_words"]

_MAP = WIDTH
_SQUEEZE = math.cos(math.radians((SOUTH + NORTH) / 2))  # a degree of longitude is shorter than one of latitude
_SCALE = _MAP / ((EAST - WEST) * _SQUEEZE)
_MAP_HEIGHT = round((NORTH - SOUTH) * _SCALE)
_GAP = 14
_SIDE = 288  # pixels: beside the map in a column of 840
_TILES = 2  # in a row
_ROW = 34
_CURVE = 70
_SHOWN = 40  # micro-batches

_WATER = LEADER
_KINDS = {
    "Overspeed": STATE_COLOURS["dead"],
    "Lane Departure": LAG,
    "Unsafe tail distance": STATE_COLOURS["isolated"],
    "Unsafe following distance": STATE_COLOURS["up"],
}


def in_words(reading: Reading) -> str:
    """Describe a reading in one sentence."""
    running = "the stream runs" if reading.running else "no stream runs"
    worst = f"; most of them by {reading.worst[0][0]}" if reading.worst else ""
    return f"{reading.events} events in the tables, {reading.dangerous} of them dangerous{worst}; lag {reading.lag}; {running}"


def draw_dashboard(reading: Reading, palette: Palette = LIGHT) -> list[Drawing]:
    """Draw the figures with the drivers and the rates of micro-batches below, and the map."""
    side = stack(_figures(reading, palette), _drivers(reading, palette), _curve(reading.rates, palette), gap=_GAP)
    return [side, _map(reading.places, palette)]


def _figures(reading: Reading, palette: Palette) -> Drawing:
    latency = " · ".join(map(_seconds, reading.latency)) if reading.latency else "–"
    rate = f"{reading.rates[-1].taken:,.0f}" if reading.running and reading.rates else "–"
    tiles = (
        ("stream", "runs" if reading.running else "stopped"),
        ("events counted", f"{reading.events:,}"),
        ("events per second", rate),
        ("latency: p50 · p99", latency),
        ("rows of state", f"{reading.state:,}"),
        ("lag", f"{reading.lag:,}"),
    )
    width = (_SIDE - (_TILES - 1) * 8) / _TILES
    body = ""
    for number, (name, value) in enumerate(tiles):
        x, y = number % _TILES * (width + 8), number // _TILES * 60
        red = value == "stopped"
        body += rect(x, y, width, 52, fill=palette.panel, stroke=palette.border, radius=6)
        body += text(x + 10, y + 18, name, fill=palette.muted)
        body += text(x + 10, y + 41, value, fill=STATE_COLOURS["dead"] if red else palette.text, size=15, weight="600")
    return Drawing(body, 60 * len(tiles) / _TILES - 8, _SIDE)


def _seconds(seconds: float) -> str:
    """Format seconds so briefly that two of them fit into a tile."""
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"


def _map(places: Iterable[Place], palette: Palette) -> Drawing:
    land = rect(0, 0, _MAP, _MAP_HEIGHT, fill=palette.panel)
    lake = path(_trace(LAKE) + "Z", fill=_WATER, opacity=0.25)
    rivers = "".join(_polyline(river, _WATER, 1.6, 0.55) for river in RIVERS)
    borders = "".join(_polyline(border, palette.muted, 1, 0.6, "4 3") for border in BORDERS)
    routes = "".join(_polyline(((a[1], a[0]), (b[1], b[0])), palette.muted, 2, 0.35) for _, a, b in ROUTES.values())
    states = "".join(text(*_at(*place), name, fill=palette.muted, size=12, anchor="middle") for name, place in STATES.items())
    dots = "".join(_dot(place.longitude, place.latitude, 4, _KINDS[place.kind], place.kind) for place in places)
    cities = "".join(_city(name, *place, palette) for name, place in CITIES.items())
    inner = land + lake + rivers + borders + routes + states + dots + cities
    clipped = f'<svg x="0" y="0" width="{_MAP}" height="{_MAP_HEIGHT}">{inner}</svg>'
    frame = rect(0, 0, _MAP, _MAP_HEIGHT, fill="none", stroke=palette.border, radius=4)
    return Drawing(clipped + frame + _legend(palette), _MAP_HEIGHT + 38, _MAP)


def _legend(palette: Palette) -> str:
    body = ""
    for number, (kind, colour) in enumerate(_KINDS.items()):
        x, y = 2 + number % 2 * _MAP / 2, _MAP_HEIGHT + 16 + number // 2 * 18
        body += rect(x, y - 9, 9, 9, fill=colour, radius=4.5) + text(x + 15, y, kind, fill=palette.muted, size=12)
    return body


def _city(name: str, longitude: float, latitude: float, palette: Palette) -> str:
    x, y = _at(longitude, latitude)
    near_the_edge = x > _MAP - 90
    dot = _dot(longitude, latitude, 3.5, palette.text, name)
    anchor, shift = ("end", -7) if near_the_edge else (None, 7)
    return dot + text(x + shift, y + 14, name, fill=palette.text, weight="600", anchor=anchor, halo=palette.panel)


def _dot(longitude: float, latitude: float, radius: float, colour: str, title: str) -> str:
    x, y = _at(longitude, latitude)
    return rect(x - radius, y - radius, 2 * radius, 2 * radius, fill=colour, opacity=0.75, radius=radius, title=title)


def _polyline(points: Line, colour: str, width: float, opacity: float, dash: str | None = None) -> str:
    ends = [_at(*point) for point in points]
    return "".join(line(*a, *b, stroke=colour, width=width, opacity=opacity, dash=dash) for a, b in itertools.pairwise(ends))


def _trace(points: Line) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in (_at(*point) for point in points))


def _at(longitude: float, latitude: float) -> tuple[float, float]:
    return (longitude - WEST) * _SQUEEZE * _SCALE, (NORTH - latitude) * _SCALE


def _drivers(reading: Reading, palette: Palette) -> Drawing:
    body = text(0, 13, "Dangerous events, by driver", fill=palette.text, size=13, weight="600")
    most = max((dangerous for _, dangerous, _ in reading.worst), default=0) or 1
    for number, (name, dangerous, events) in enumerate(reading.worst):
        y = 24 + number * _ROW
        share = f"{dangerous:,} of {events:,}"
        body += text(0, y + 12, fit(name, _SIDE - 100, 12), fill=palette.text)
        body += text(_SIDE, y + 12, share, fill=palette.muted, anchor="end")
        body += rect(0, y + 17, _SIDE, 7, fill=palette.panel, radius=3)
        body += rect(0, y + 17, _SIDE * dangerous / most, 7, fill=STATE_COLOURS["dead"], radius=3)
    return Drawing(body, 24 + 6 * _ROW, _SIDE)


def _curve(rates: tuple[Rate, ...], palette: Palette) -> Drawing:
    """Draw the records per second that the stream took, and could have processed, by micro-batch."""
    shown = rates[-_SHOWN:]
    body = text(0, 13, "Records per second, by micro-batch", fill=palette.text, size=13, weight="600")
    body += text(0, 30, "taken", fill=_WATER) + text(48, 30, "could be processed", fill=LAG)
    top, bottom = 40, 40 + _CURVE
    body += rect(0, top, _SIDE, _CURVE, fill=palette.panel)
    highest = max((max(rate.taken, rate.processed) for rate in shown), default=0) or 1
    step = _SIDE / max(1, len(shown) - 1)
    for colour, values in ((LAG, [rate.processed for rate in shown]), (_WATER, [rate.taken for rate in shown])):
        ends = [(number * step, bottom - _CURVE * value / highest) for number, value in enumerate(values)]
        body += "".join(line(*a, *b, stroke=colour, width=1.8) for a, b in itertools.pairwise(ends))
    body += text(_SIDE, 30, f"{highest:,.0f}", fill=palette.muted, anchor="end")
    return Drawing(body, bottom, _SIDE)
