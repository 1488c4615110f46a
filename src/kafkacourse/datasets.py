"""Data sets of the course, made by seeded generators: the same on every machine and with every Python version."""

from __future__ import annotations

import datetime
import functools
import random
from typing import NamedTuple, TypeVar

__all__ = [
    "CUSTOMERS",
    "Customer",
    "TruckEvent",
    "customers",
    "customers_partition",
    "event_row",
    "first_positions",
    "truck_events",
]

T = TypeVar("T")

CUSTOMERS = 12_434
"""The number of customers."""

_FIRST_NAMES = (
    "Ada", "Amir", "Bela", "Carla", "Chen", "Dana", "Elif", "Emil", "Fatou", "George", "Hana", "Igor", "Ines", "Jamie",
    "Kofi", "Lila", "Mateo", "Mina", "Nadia", "Olga", "Paul", "Priya", "Rosa", "Sven", "Tariq", "Uma", "Vera", "Yuki",
)  # fmt: skip
_LAST_NAMES = (
    "Abe", "Bauer", "Costa", "Diallo", "Evans", "Fischer", "Garcia", "Haddad", "Ivanova", "Jones", "Kaya", "Lindsey",
    "Mensah", "Novak", "Okafor", "Page", "Quinn", "Rossi", "Silva", "Tanaka", "Ueda", "Vogel", "Wang", "Young", "Zhou",
)  # fmt: skip
_CITIES = (
    ("Berlin", "DE"), ("Hamburg", "DE"), ("Munich", "DE"), ("Paris", "FR"), ("Lyon", "FR"), ("Madrid", "ES"),
    ("Lisbon", "PT"), ("Rome", "IT"), ("Milan", "IT"), ("London", "GB"), ("Galway", "IE"), ("Oslo", "NO"),
    ("Chicago", "US"), ("Saint Louis", "US"), ("New York", "US"), ("Toronto", "CA"), ("Tokyo", "JP"), ("Osaka", "JP"),
    ("Mumbai", "IN"), ("Lagos", "NG"), ("Accra", "GH"), ("Cairo", "EG"), ("Istanbul", "TR"), ("Sydney", "AU"),
)  # fmt: skip
# Most are private customers, few are public bodies.
_SEGMENTS = ("private",) * 6 + ("business",) * 3 + ("public",)
_FIRST_DAY = datetime.date(2010, 1, 1).toordinal()
_DAYS = datetime.date(2026, 1, 1).toordinal() - _FIRST_DAY

_IN_TURN = 12_006  # 3 × 4002
_EXTRA_FOR_FIRST = 426


class Customer(NamedTuple):
    """One line of ``customers.csv``.

    Attributes
    ----------
    customer_id
        ``C00001`` and up.
    name, city, country
        The city, and the country as its two-letter code.
    segment
        ``private``, ``business`` or ``public``.
    since
        Date of the first order, ``2010-01-01`` to ``2025-12-31``.
    """

    customer_id: str
    name: str
    city: str
    country: str
    segment: str
    since: str


@functools.cache
def _all_customers() -> tuple[Customer, ...]:
    # Of all generators, only `random.Random.random` is guaranteed to give the same numbers in every Python version.
    draw = random.Random(12434).random

    def one_of(options: tuple[T, ...]) -> T:
        return options[int(draw() * len(options))]

    def customer(number: int) -> Customer:
        name = f"{one_of(_FIRST_NAMES)} {one_of(_LAST_NAMES)}"
        city, country = one_of(_CITIES)
        segment = one_of(_SEGMENTS)
        since = datetime.date.fromordinal(_FIRST_DAY + int(draw() * _DAYS)).isoformat()
        return Customer(f"C{number:05d}", name, city, country, segment, since)

    return tuple(customer(number) for number in range(1, CUSTOMERS + 1))


def customers() -> list[Customer]:
    """Return all 12,434 customers, in order of their ids."""
    return list(_all_customers())


def customers_partition(index: int) -> int:
    """Return the partition (of three) for the customer at this index in `customers`.

    A producer's batching would decide which record goes where, so this fixed rule gives the course's figures: the first
    12,006 go to partitions 0, 1 and 2 in turn, the next 426 to partition 0, and the last 2 to partition 1. That makes
    4428, 4004 and 4002 records.
    """
    if not 0 <= index < CUSTOMERS:
        raise IndexError(f"there are customers 0 to {CUSTOMERS - 1}, not {index}")
    if index < _IN_TURN:
        return index % 3
    return 0 if index < _IN_TURN + _EXTRA_FOR_FIRST else 1


class TruckEvent(NamedTuple):
    """One report from a truck.

    Attributes
    ----------
    timestamp
        Milliseconds since 1970.
    truck, driver, route
        Ids of the truck, its driver and its route.
    event
        ``Normal``, ``Overspeed``, ``Lane Departure``, ``Unsafe tail distance`` or ``Unsafe following distance``.
    latitude, longitude
        Its position in the American Midwest.
    correlation
        The same for all events of one trip.
    """

    timestamp: int
    truck: int
    driver: int
    route: int
    event: str
    latitude: float
    longitude: float
    correlation: str

    def csv(self) -> str:
        """Return its fields in this order, separated by commas."""
        return ",".join(map(str, self))


def event_row(text: str) -> dict[str, str | int | float]:
    """Return the fields of an event, as `TruckEvent.csv` writes it, under the names that they have in SQL."""
    time, truck, driver, route, kind, latitude, longitude, correlation = text.split(",")
    return {
        "ts": time, "truckId": truck, "driverId": int(driver), "routeId": int(route), "eventType": kind,
        "latitude": float(latitude), "longitude": float(longitude), "correlationId": correlation,
    }  # fmt: skip


_EVENTS = ("Normal",) * 8 + ("Overspeed", "Lane Departure", "Unsafe tail distance", "Unsafe following distance")
_TRIPS = ((18, 28, 1198242881), (31, 11, 1390372503), (44, 12, 160405074), (57, 21, 1927624662), (62, 10, 803014426))
_EVENING = 1_506_975_526_000  # 2017-10-02 20:18:46 UTC


@functools.cache
def _all_truck_events() -> tuple[TruckEvent, ...]:
    draw = random.Random(18).random

    def event(number: int) -> TruckEvent:
        truck, driver, route = _TRIPS[int(draw() * len(_TRIPS))]
        kind = _EVENTS[int(draw() * len(_EVENTS))]
        latitude, longitude = (round(low + draw() * 4, 2) for low in (38, -94))
        return TruckEvent(
            _EVENING + 1000 * number, truck, driver, route, kind, latitude, longitude, f"{truck}-{driver}-{route}"
        )

    return tuple(event(number) for number in range(120))


def truck_events() -> list[TruckEvent]:
    """Return 120 events of five drivers, one per second: 77 are ``Normal``, and 43 are dangerous."""
    return list(_all_truck_events())


def first_positions() -> list[TruckEvent]:
    """Return six positions of drivers 11 and 21 in sending order: enough to tell a stream from a table."""
    rows = (
        (0, 11, 41.87, -87.67), (9, 11, 40.38, -89.17), (13, 21, 42.23, -91.78),
        (15, 21, 41.71, -91.32), (16, 11, 38.65, -90.2), (37, 21, 41.71, -91.32),
    )  # fmt: skip
    trips = {driver: (truck, route) for truck, driver, route in _TRIPS}
    return [
        TruckEvent(_EVENING + 1000 * seconds, truck, driver, route, "Normal", latitude, longitude, f"{truck}-{driver}-{route}")
        for seconds, driver, latitude, longitude in rows
        for truck, route in (trips[driver],)
    ]
