"""The data sets are what the course says, and the same everywhere."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections import Counter

import pytest

from kafkacourse.datasets import (
    CUSTOMERS,
    Customer,
    customers,
    customers_partition,
    event_row,
    first_positions,
    truck_events,
)

# As made by the first version: a change of the generator would change every stored output that rests on it.
SHA256 = "22929a69b8fa8c06a187487242481bc3224b493c58bd451535068f7ee18a75ba"


def test_customers_number_as_in_class() -> None:
    everyone = customers()
    assert len(everyone) == CUSTOMERS == 12_434
    assert len({customer.customer_id for customer in everyone}) == CUSTOMERS
    assert everyone[0] == Customer("C00001", "Fatou Rossi", "Paris", "FR", "private", "2023-05-23")


def test_customers_are_the_same_in_every_process() -> None:
    code = "from kafkacourse.datasets import customers; print(*(','.join(c) for c in customers()), sep='\\n')"
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"}
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)
        assert hashlib.sha256(done.stdout).hexdigest() == SHA256


def test_a_list_of_ones_own() -> None:
    customers().clear()
    assert len(customers()) == CUSTOMERS


def test_partition_rule_gives_the_figures_of_the_class() -> None:
    assert Counter(customers_partition(index) for index in range(CUSTOMERS)) == {0: 4428, 1: 4004, 2: 4002}


@pytest.mark.parametrize("index", [-1, CUSTOMERS])
def test_partition_of_nobody(index: int) -> None:
    with pytest.raises(IndexError, match="customers 0 to 12433"):
        customers_partition(index)


def test_trucks_report_what_chapter_10_tells_of() -> None:
    events = truck_events()
    assert Counter(event.event == "Normal" for event in events) == {True: 77, False: 43}
    assert events[0].csv() == "1506975526000,18,28,1198242881,Normal,39.34,-93.21,18-28-1198242881"
    assert len({event.csv() for event in events}) == len(events) == 120


def test_an_event_is_a_row_with_names_and_types_as_in_sql() -> None:
    assert event_row(truck_events()[0].csv()) == {
        "ts": "1506975526000", "truckId": "18", "driverId": 28, "routeId": 1198242881, "eventType": "Normal",
        "latitude": 39.34, "longitude": -93.21, "correlationId": "18-28-1198242881",
    }  # fmt: skip


def test_first_positions_make_a_stream_of_six_rows_and_a_table_of_two() -> None:
    positions = first_positions()
    latest = {event.driver: (event.latitude, event.longitude) for event in positions}
    assert len(positions) == 6 and latest == {11: (38.65, -90.2), 21: (41.71, -91.32)}
    assert [event.timestamp // 1000 % 86400 for event in positions] == [73126, 73135, 73139, 73141, 73142, 73163]
