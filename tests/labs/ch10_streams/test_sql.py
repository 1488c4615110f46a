"""Rows in SQL and of a topology: each wrong answer gets its sentence, and right ones pass, whoever wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

import pytest

from kafkacourse.ch10_streams.sql import (
    DANGEROUS_IN_SQL,
    DANGEROUS_IN_STREAMS,
    DRIVERS,
    NAMED_IN_SQL,
    NAMED_IN_STREAMS,
    SOURCE,
    TABLE,
    Name,
    latest_name,
    name_then,
    row_of,
)
from kafkacourse.datasets import TruckEvent, truck_events
from kafkalab import Cluster
from support import Verdict, create, put

pytestmark = pytest.mark.cluster

LAB = "10_sql"
DANGEROUS = [event for event in truck_events() if event.event != "Normal"]


def write(cluster: Cluster, topic: str, rows: Iterable[dict[str, object]]) -> None:
    put(cluster, topic, [(str(row["driverId"]), json.dumps(row), 0) for row in rows])


def plain(events: Iterable[TruckEvent]) -> list[dict[str, object]]:
    return [dict(row_of(event)) for event in events]


def named(name: Callable[[TruckEvent], Name], events: Iterable[TruckEvent] = DANGEROUS) -> list[dict[str, object]]:
    return [{**row_of(event), "first_name": first, "last_name": last} for event in events for first, last in (name(event),)]


def without_nulls(rows: Iterable[dict[str, object]]) -> list[dict[str, object]]:
    """As Spark writes them."""
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


@pytest.fixture
def sent(clean: Cluster) -> Cluster:
    """Trucks and drivers have sent everything, and nobody asked anything."""
    for topic in (SOURCE, TABLE, DANGEROUS_IN_SQL, DANGEROUS_IN_STREAMS, NAMED_IN_SQL, NAMED_IN_STREAMS):
        create(clean, topic, 1, 1)
    put(clean, SOURCE, [(str(event.driver), event.csv(), 0) for event in truck_events()])
    put(clean, TABLE, [(str(driver.id), driver.last_name, 0) for driver in DRIVERS])
    return clean


@pytest.fixture
def asked(sent: Cluster) -> Cluster:
    """The dangerous events were found, by both."""
    for topic in (DANGEROUS_IN_SQL, DANGEROUS_IN_STREAMS):
        write(sent, topic, plain(DANGEROUS))
    return sent


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean)
    assert "There is no topic 'truck_position' yet" in said and "0 of 5" in said
    create(clean, SOURCE, 1, 1)
    verdict.says("truck_position was given 0 records, not 120", LAB, clean)


def test_rows_that_are_no_dangerous_events(sent: Cluster, verdict: Verdict) -> None:
    verdict.says("The topic dangerous_in_sql is empty", LAB, sent)
    put(sent, DANGEROUS_IN_SQL, [("11", DANGEROUS[0].csv(), 0)])
    verdict.says("dangerous_in_sql holds '1506975", LAB, sent)
    write(sent, DANGEROUS_IN_STREAMS, plain(truck_events()))
    verdict.says("dangerous_in_streams has an event that is Normal, of driver 28", LAB, sent)


def test_rows_with_a_field_of_another_type_or_another_key(sent: Cluster, verdict: Verdict) -> None:
    write(sent, DANGEROUS_IN_SQL, [{**row, "routeId": str(row["routeId"])} for row in plain(DANGEROUS)])
    verdict.says("dangerous_in_sql has a row with `routeId` '", LAB, sent)
    put(sent, DANGEROUS_IN_STREAMS, [(None, json.dumps(row), 0) for row in plain(DANGEROUS)])
    verdict.says("has the key '(no key)' in dangerous_in_streams", LAB, sent)


def test_a_kind_is_left_out_or_a_query_ran_twice(sent: Cluster, verdict: Verdict) -> None:
    write(sent, DANGEROUS_IN_SQL, plain(event for event in DANGEROUS if event.event == "Overspeed"))
    verdict.says("of 43 dangerous events, all of drivers 10, 11, 12, 21, 28. Does the condition keep every kind", LAB, sent)
    write(sent, DANGEROUS_IN_STREAMS, plain(2 * DANGEROUS))
    verdict.says("is in dangerous_in_streams 2 times. Was the query", LAB, sent)


def test_all_positions_are_joined_or_only_known_drivers(asked: Cluster, verdict: Verdict) -> None:
    write(asked, NAMED_IN_SQL, named(latest_name, (event for event in DANGEROUS if latest_name(event) != (None, None))))
    verdict.says("of 43 dangerous events, all of drivers 10, 28. What does your join do with an event whose", LAB, asked)
    write(asked, NAMED_IN_STREAMS, named(name_then, truck_events()))
    verdict.says("named_in_streams has an event that is Normal", LAB, asked)


def test_a_table_with_all_its_changes(asked: Cluster, verdict: Verdict) -> None:
    changed = [event for event in DANGEROUS if event.driver == 11]
    write(asked, NAMED_IN_SQL, named(latest_name) + named(lambda event: ("Jamie", "Engesser"), changed))
    verdict.says("is in named_in_sql 2 times. How many rows does the table have for that driver?", LAB, asked)


def test_names_of_another_time(asked: Cluster, verdict: Verdict) -> None:
    write(asked, NAMED_IN_SQL, named(name_then))
    verdict.says("has the name Jamie Engesser. Which record of driver is the last one", LAB, asked)
    write(asked, NAMED_IN_STREAMS, named(latest_name))
    verdict.says("has the name Micky Isaacson. Who had that number then?", LAB, asked)


def test_any_client_will_do_in_any_order_with_nulls_or_without(asked: Cluster, verdict: Verdict) -> None:
    write(asked, NAMED_IN_SQL, without_nulls(named(latest_name)))
    write(asked, NAMED_IN_STREAMS, reversed(named(name_then)))
    verdict.passes(LAB, asked)


def test_further_fields_do_no_harm(asked: Cluster, verdict: Verdict) -> None:
    write(asked, NAMED_IN_SQL, [{**row, "available": "Y"} for row in named(latest_name)])
    write(asked, NAMED_IN_STREAMS, [{**row, "id": row["driverId"]} for row in without_nulls(named(name_then))])
    verdict.passes(LAB, asked)
