"""Names of drivers beside alarms, and in their JSON."""

from __future__ import annotations

import json

import pyarrow as pa

from truck_pipeline.names import Names

NAMES = Names(
    pa.table(
        {
            "id": pa.array([10, 11, 12], pa.int32()),
            "first_name": ["Ana", 'Jo "the" {x}', None],
            "last_name": ["Núñez", None, None],
            "text": ['{"first_name":"Ana","last_name":"Núñez"}', '{"first_name":"Jo \\"the\\" {x}"}', None],
        }
    )
)
DRIVERS = pa.chunked_array([pa.array([11, 28], pa.int32()), pa.array([10, 12, None], pa.int32())])


def test_known_drivers_have_names_in_the_order_of_the_tables_columns() -> None:
    named = NAMES.beside(pa.table({"truckId": [1, 2, 3, 4, 5], "driverId": DRIVERS, "sent": list("abcde")}))
    assert named.column_names == ["truckId", "driverId", "first_name", "last_name", "sent"]
    assert named["first_name"].to_pylist() == ['Jo "the" {x}', None, "Ana", None, None]
    assert named["last_name"].to_pylist() == [None, None, "Núñez", None, None]


def test_names_in_json_join_what_an_alarm_says_and_leave_it_alone_if_they_are_unknown() -> None:
    alarms = [{"correlationId": text, "driverId": 1} for text in ("a}", 'b"', "c", "ü", "e")]
    texts = pa.chunked_array([pa.array([json.dumps(alarm) for alarm in alarms])])
    read = [json.loads(text) for text in NAMES.in_json(DRIVERS, texts).to_pylist()]
    names = [{"first_name": 'Jo "the" {x}'}, {}, {"first_name": "Ana", "last_name": "Núñez"}, {}, {}]
    assert read == [{**alarm, **name} for alarm, name in zip(alarms, names, strict=True)]


def test_no_driver_is_known_yet() -> None:
    nobody = Names(NAMES.rows.slice(0, 0))
    texts = pa.chunked_array([pa.array(['{"a":1}'] * 5)])
    assert nobody.in_json(DRIVERS, texts).to_pylist() == texts.to_pylist()
    assert nobody.beside(pa.table({"driverId": DRIVERS}))["first_name"].to_pylist() == [None] * 5
