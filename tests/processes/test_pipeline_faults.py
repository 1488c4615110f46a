"""Parts of the truck pipeline are killed at work, and the tables equal the trucks' ledger."""

from __future__ import annotations

import pytest

from kafkalab import Cluster, wait_until
from kafkalab.errors import NotEnoughResources
from kafkalab.resources import require_memory
from pipeline_driver import MOMENTS
from pipeline_faults import FAULTS, RATE, REPORTS, Outcome, Restart, opened, page, strike, table
from support import PATIENCE, empty
from truck_pipeline import Trucks

pytestmark = pytest.mark.cluster

MORE_MEMORY = 3 << 30  # beside the brokers


@pytest.fixture
def emptied(cluster: Cluster) -> Cluster:
    """The cluster, without the topics of the test before."""
    empty(cluster)
    return cluster


def test_all_on_the_way_to_the_tables_is_killed(emptied: Cluster) -> None:
    """One after the other, so that for some time nothing works; trucks report all the time."""
    with opened(emptied, Trucks(interval=1000 // RATE).reports(800), connect_workers=1, spark_workers=0) as site:
        trucks = site.drive(800)
        restarts: list[Restart] = []
        for name in ("PostgreSQL", "Connect worker", "registry", "MQTT broker"):
            sent = trucks.acknowledged
            wait_until(lambda: trucks.acknowledged > sent + RATE / 2, PATIENCE, f"reports before a kill of the {name}")
            restarts.append(FAULTS[name].kill(site))
        for restart in restarts:
            restart()
        site.settle(trucks.wait())


def test_a_driver_is_killed_around_the_commit_of_the_tables(emptied: Cluster) -> None:
    """Trucks report to Kafka themselves."""
    with opened(emptied, Trucks(interval=1000 // RATE).reports(REPORTS), connect_workers=0, spark_workers=0) as site:
        for number, moment in enumerate(MOMENTS, 1):
            trucks = site.drive()
            FAULTS[f"Spark driver, {moment}"].kill(site)
            trucks.stop()
            assert site.settle(trucks).startswith(f"{site.acknowledged} sent = ")
            assert site.starts == number


@pytest.mark.at_length
@pytest.mark.timeout(7200)
def test_each_part_is_killed_at_work(emptied: Cluster) -> None:
    """Spark runs on two workers; an executor, a worker and the driver are killed, too."""
    try:
        require_memory(MORE_MEMORY, "the pipeline with a Spark cluster")
    except NotEnoughResources as error:
        pytest.skip(str(error))
    with opened(emptied, Trucks(interval=1000 // RATE).reports(REPORTS)) as site:
        for fault in FAULTS.values():
            strike(site, fault)


def test_the_table_tells_what_differs() -> None:
    found = {"broker": [Outcome(2.0, 8.0, 9.0, 0, 3, still=4.5), Outcome(2.0, 8.0, 9.0, 0, 3, still=6.0)], "registry": []}
    rows = table(found, {"broker": ["5 events are missing"], "registry": []}).splitlines()
    assert rows[2:] == ["| broker | 3 | 5.2 (4.5 – 6.0) | NO, in 1 |", "| registry | 0 | – | yes |"]


def test_the_page_tells_medians_and_who_had_to_help() -> None:
    outcomes = {
        "MQTT broker": [Outcome(2.0, 8.0, 9.0, 0, 3), Outcome(2.0, 9.0, 11.0, 0, 5), Outcome(4.0, 12.0, 12.5, 0, 4)],
        "Spark driver": [Outcome(2.0, 40.0, 30.0, starts, 0) for starts in (1, 1, 2)],
    }
    rows = [line for line in page(outcomes).splitlines() if line.startswith(("| MQTT", "| Spark"))]
    assert rows[0].endswith("| – | 4.0 × (3.0 – 4.5) | 11.0 s (9.0 – 12.5) | 4 (3 – 5) |")
    assert rows[1].endswith("| the driver, by the supervisor | 3 of 3 | 20 × | 30 s | 0 |")
