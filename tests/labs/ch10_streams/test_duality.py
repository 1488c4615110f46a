"""A stream and a table of six positions: each wrong answer gets its sentence, and right ones pass, however they were made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkacourse.datasets import first_positions
from kafkalab import Cluster, StreamsApp
from kafkalab.errors import StreamsFailed
from support import PATIENCE, Verdict, create, delete, put

pytestmark = pytest.mark.cluster

LAB = "10_duality"
STREAM, TABLE = "position_stream", "position_table"
ROWS = [(str(event.driver), event.csv(), 0) for event in first_positions()]
LATEST = {key: value for key, value, _ in ROWS}


DESCRIPTION = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [positions])
      --> KSTREAM-REDUCE-0000000002
    Processor: KSTREAM-REDUCE-0000000002 (stores: [rows])
      --> KTABLE-TOSTREAM-0000000003
      <-- KSTREAM-SOURCE-0000000000
    Processor: KTABLE-TOSTREAM-0000000003 (stores: [])
      --> KSTREAM-SINK-0000000004
      <-- KSTREAM-REDUCE-0000000002
    Sink: KSTREAM-SINK-0000000004 (topic: position_table)
      <-- KTABLE-TOSTREAM-0000000003
"""


@pytest.fixture
def topics(clean: Cluster) -> Cluster:
    create(clean, STREAM, 1, 1)
    create(clean, TABLE, 1, 1, cleanup_policy="compact")
    return clean


def test_nothing_was_done(clean: Cluster, verdict: Verdict) -> None:
    _, said = verdict(LAB, clean, latest=None)
    assert "There is no topic 'position_stream' yet" in said and "0 of 5" in said
    create(clean, TABLE, 1, 1)
    verdict.says("The cleanup.policy of position_table is delete", LAB, clean)


def test_the_stream_is_that_of_the_table(topics: Cluster, verdict: Verdict) -> None:
    for topic in (STREAM, TABLE):
        put(topics, topic, [ROWS[4], ROWS[5]])
    verdict.says("position_stream lacks 2 positions of driver 11", LAB, topics, latest=LATEST)


def test_the_table_keeps_the_first(topics: Cluster, verdict: Verdict) -> None:
    put(topics, STREAM, ROWS)
    put(topics, TABLE, [ROWS[2]])
    verdict.says("position_table has no record of driver 11", LAB, topics, latest=LATEST)
    put(topics, TABLE, [ROWS[0]])
    verdict.says("position_table ends with '1506975526000,31,11,", LAB, topics, latest=LATEST)


def test_other_keys_values_and_orders(topics: Cluster, verdict: Verdict) -> None:
    put(topics, TABLE, [("31", ROWS[5][1], 0)])
    verdict.says("position_table has a record with the key 31", LAB, topics)
    put(topics, STREAM, list(reversed(ROWS)))
    verdict.says("The positions of driver 11 aren't in the order", LAB, topics)
    put(topics, STREAM, ROWS)
    verdict.says("position_stream holds 6 records of driver 11, who sent 3", LAB, topics)
    put(topics, STREAM, [("11", "3", 0)])
    verdict.says("position_stream holds '3' for driver 11", LAB, topics)


def test_wrong_answers_about_the_table(topics: Cluster, verdict: Verdict) -> None:
    put(topics, STREAM, ROWS)
    put(topics, TABLE, ROWS)
    app = StreamsApp(topics, reduced)
    verdict.says("`app.describe()` has no sink for position_table", LAB, topics, latest=LATEST, app=app)
    app._description = DESCRIPTION
    verdict.passes(LAB, topics, latest=LATEST, app=app)
    verdict.says("Give check() your answer as app=", LAB, topics, latest=LATEST)
    verdict.says("Give check() your answer as latest=", LAB, topics, app=app)
    verdict.says("`latest` has no row for driver 21", LAB, topics, latest={"11": LATEST["11"]})
    verdict.says("does the store hold when it has all of them?", LAB, topics, latest={**LATEST, "11": ROWS[0][1]})
    verdict.says("`latest` also has a row for 12", LAB, topics, latest={**LATEST, "12": ROWS[0][1]})
    delete(topics, TABLE)
    verdict.says("There is no topic 'position_table' yet", LAB, topics, latest=LATEST)


def copied(builder: Any) -> None:
    """Right at first sight: the last record of each driver is the latest position. But no table changes."""
    from org.apache.kafka.streams.kstream import Materialized  # type: ignore[import-not-found]

    events = builder.stream("positions")
    events.to("position_stream")
    events.to("position_table")
    events.toTable(Materialized.as_("rows"))


def reduced(builder: Any) -> None:
    """Another way than the solution's: the table comes from a reduction, and tells of every change."""
    from org.apache.kafka.streams.kstream import Materialized

    events = builder.stream("positions")
    events.to("position_stream")
    events.groupByKey().reduce(lambda old, new: new, Materialized.as_("rows")).toStream().to("position_table")


@pytest.mark.parametrize("topology", [reduced, copied])
def test_a_table_is_told_from_a_copy_of_the_stream(topics: Cluster, verdict: Verdict, topology: Callable[[Any], None]) -> None:
    create(topics, "positions", 1, 1)
    put(topics, "positions", ROWS)
    with StreamsApp(topics, topology, statestore_cache_max_bytes=0) as app:
        rows = app.wait_until(
            lambda: (found := app.store("rows")) == LATEST and found, PATIENCE, "two rows", ignore=(StreamsFailed,)
        )
    if topology is reduced:
        verdict.passes(LAB, topics, latest=rows, app=app)
    else:
        verdict.says("On their way to position_table, records pass no state store", LAB, topics, latest=rows, app=app)
