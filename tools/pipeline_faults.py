"""Kill each part of the truck pipeline at work, compare the tables with the trucks' ledger, and write docs/pipeline-faults.md.

Trucks report by MQTT (QoS 1). Connect brings that to Kafka, and captures the office's table of drivers. Spark, on a cluster of
two workers, brings it to PostgreSQL and Kafka.
``python tools/pipeline_faults.py`` does all of that in three rounds, or as many as ``KAFKALAB_ROUNDS`` says, and takes 3.5 GB of
memory. Names of faults after it choose some; the page then has those alone.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.protocol import Py4JError

from kafkalab import Cluster, ConnectCluster, MqttBroker, PostgreSQL, SchemaRegistry, SparkCluster, spark_session, wait_until
from kafkalab.checks import CheckContext
from kafkalab.cluster.offsets import end_offsets
from kafkalab.spark import kafka_options, kill_spark
from truck_pipeline import (
    DRIVERS,
    Event,
    MqttTruckSender,
    Pipeline,
    Report,
    Settings,
    Trucks,
    answers,
    connect_drivers,
    connect_trucks,
)

PAGE = Path(__file__).parent.parent / "docs" / "pipeline-faults.md"

ROUNDS = int(os.environ.get("KAFKALAB_ROUNDS", "3"))
RATE = 100  # reports a second
REPORTS = 200_000  # more than one round needs
USUAL = 6.0  # seconds in which the usual age of the tables is seen, and in which they must be as young again
DOWN = 5.0  # seconds until somebody starts again what the others wait for


@dataclass
class Site:
    """Everything between the trucks and the tables, and somebody who starts the stream when it has ended.

    Attributes
    ----------
    starts
        How often that was done.
    """

    cluster: Cluster
    registry: SchemaRegistry
    database: PostgreSQL
    mqtt: MqttBroker
    connect: ConnectCluster
    spark_cluster: SparkCluster | None
    settings: Settings
    reports: list[Report]
    starts: int = -1  # the first one doesn't count
    _ledger: list[Event] = field(default_factory=list)
    _acknowledged: int = 0
    _malformed: int = 0
    _counted: int = 0

    def __post_init__(self) -> None:
        self._start()

    def supervise(self) -> None:
        """Start the stream again if it has ended, as Kubernetes or systemd would. If that fails, the next call tries again."""
        if self._running.is_alive():
            return
        with suppress(Py4JError, OSError):
            self.pipeline.stop()
        with suppress(psycopg.OperationalError, OSError):
            self._start()

    def _start(self) -> None:
        spark = spark_session(self.cluster, master=self.spark_cluster)
        self.pipeline = Pipeline(spark, self.settings).start()
        self.starts += 1
        self._running = threading.Thread(target=wait_for_end, args=(self.pipeline,), name="stream", daemon=True)
        self._running.start()

    def drive(self, reports: int = REPORTS) -> MqttTruckSender:
        """Let the trucks send what comes next."""
        some = self.reports[self._acknowledged :][:reports]
        return MqttTruckSender(self.mqtt.host, self.mqtt.port, self.settings, some, RATE).start()

    def counted(self) -> int:
        """How many events are in the table of counts, or were when it could be asked."""
        with suppress(psycopg.Error):
            [(events,)] = self.pipeline.tables.ask("SELECT sum(events) FROM {schema}.driving")
            self._counted = int(events or 0)
        return self._counted

    def settle(self, trucks: MqttTruckSender) -> None:
        """Take the trucks' ledger, wait until the tables equal it, and make sure that they stay so and the topics fit.

        Raises
        ------
        WaitTimeout, AssertionError
            When something is lost, or there twice.
        """
        self._ledger += trucks.ledger
        self._acknowledged += trucks.acknowledged
        self._malformed += trucks.malformed
        wanted = answers(self._ledger)

        def equal() -> bool:
            self.supervise()
            with suppress(psycopg.Error):
                return self.pipeline.tables.answers() == wanted
            return False

        def difference() -> str:
            found = self.pipeline.tables.answers()
            return f"{found.lacks(wanted)} events are missing, and {wanted.lacks(found)} are too many"

        wait_until(equal, 300, "the tables to equal the ledger", last_seen=difference, interval=0.3)
        wait_until(
            lambda: self.dead_letters() >= self._malformed, 60, "dead letters", last_seen=self.dead_letters, interval=0.3
        )
        self.pipeline.catch_up()
        assert self.pipeline.tables.answers() == wanted, difference()
        found = {message.key().decode() for message in self.records(self.settings.dangerous)}
        assert found == wanted.dangerous.keys(), found ^ wanted.dangerous.keys()
        self._change_a_driver()

    def _change_a_driver(self) -> None:
        """Change a row of the office's table, and wait until the topic has it: its connector has survived the fault."""
        with psycopg.connect(self.database.url) as office:
            [(id_, available)] = office.execute(
                "UPDATE driver SET available = NOT available WHERE id = 10 RETURNING id, available"
            )

        def captured() -> bool:
            *_, last = (json.loads(m.value()) for m in self.records(self.settings.drivers) if m.key() == str(id_).encode())
            return last["available"] == available

        wait_until(captured, 120, "the change of a driver to be captured", last_seen=self.connect.states, interval=0.3)

    def dead_letters(self) -> int:
        """How many malformed records have a dead letter, which tells where the record is."""
        letters = self.records(self.settings.dead_letters)
        return len({tuple(value for name, value in letter.headers() if name != "problem") for letter in letters})

    def records(self, topic: str) -> list:
        """All records of a topic."""
        return CheckContext(self.cluster).records(topic)

    @property
    def repeats(self) -> int:
        """Records in the topic beyond those that the trucks sent: what Connect and MQTT had to deliver again."""
        return sum(end_offsets(self.cluster, self.settings.positions).values()) - self._acknowledged


def wait_for_end(pipeline: Pipeline) -> None:
    """Wait until its stream has ended, for whatever reason."""
    with suppress(Exception):
        pipeline.wait_for_end()


@contextmanager
def opened(cluster: Cluster, reports: list[Report], *, connect_workers: int = 2, spark_workers: int = 2) -> Iterator[Site]:
    """Everything beside a cluster that runs. Without workers of its own, Spark runs in one process."""
    with ExitStack() as stack:
        enter = stack.enter_context
        registry, database, mqtt = enter(SchemaRegistry(cluster)), enter(PostgreSQL(backend="local")), enter(MqttBroker())
        checkpoint = enter(tempfile.TemporaryDirectory())
        settings = Settings(kafka_options(cluster), registry.url, database.url, checkpoint)
        create_topics(cluster, settings)
        open_office(database)
        connect = ConnectCluster(cluster, connect_workers)
        connect.add_plugin("mqtt-source")
        connect.add_plugin("debezium-postgres")
        enter(connect)
        connect.wait_until_running(connect_drivers(connect.url, settings))
        connect.wait_until_running(connect_trucks(connect.url, mqtt.url, settings))
        connected = "connected to"
        wait_until(lambda: any(connected in worker.logs() for worker in connect.workers), 60, "the connector to reach MQTT")
        captured = partial(end_offsets, cluster, settings.drivers)
        wait_until(lambda: sum(captured().values()) >= len(DRIVERS), 60, "the drivers to be captured", last_seen=captured)
        first = MqttTruckSender(mqtt.host, mqtt.port, settings, reports[:1]).start().wait()  # so that there is a schema
        spark_cluster = enter(SparkCluster(spark_workers)) if spark_workers else None
        stack.callback(lambda: spark_session().stop())
        site = Site(cluster, registry, database, mqtt, connect, spark_cluster, settings, reports)
        site.settle(first)
        yield site
        site.pipeline.stop()


def open_office(database: PostgreSQL) -> None:
    """The office's table of drivers."""
    with psycopg.connect(database.url) as office:
        office.execute("CREATE TABLE driver (id INT PRIMARY KEY, first_name TEXT, last_name TEXT, available BOOLEAN)")
        office.cursor().executemany("INSERT INTO driver VALUES (%s, %s, %s, %s)", DRIVERS)


def create_topics(cluster: Cluster, settings: Settings) -> None:
    """The four topics, each record on two brokers before it's acknowledged."""
    partitions = {settings.positions: 8, settings.drivers: 1, settings.dangerous: 4, settings.dead_letters: 1}
    config = {"min.insync.replicas": "2"}
    topics = [NewTopic(topic, number, 3, config=config) for topic, number in partitions.items()]
    admin = AdminClient(cluster.client_config())
    for created in admin.create_topics(topics).values():
        created.result()
    cluster.wait_for(lambda view: view.led(list(partitions)), "the topics")


# -- the faults: each kills, and returns what starts the part again ------------------------------------------------

Restart = Callable[[], object]


def kill_broker(site: Site) -> Restart:
    """One that leads partitions, and isn't the active controller."""
    victim = (site.cluster.describe(groups=False).controller + 1) % 3
    site.cluster.kill(victim)
    return partial(site.cluster.restart, victim)


def kill_controller(site: Site) -> Restart:
    """The active one, which is a broker, too."""
    victim = site.cluster.describe(groups=False).controller
    site.cluster.kill(victim)
    return partial(site.cluster.restart, victim)


def kill_connect_worker(site: Site) -> Restart:
    """The one on which the task runs that brings reports."""
    [connector] = [connector for connector in site.connect.describe().connectors if connector.name == "trucks"]
    worker = site.connect.workers[connector.tasks[0].worker]
    worker.kill()
    return worker.start


def kill_mqtt(site: Site) -> Restart:
    """The only one."""
    site.mqtt.kill()
    return site.mqtt.start


def kill_registry(site: Site) -> Restart:
    """The only one."""
    site.registry.kill()
    return site.registry.restart


def kill_database(site: Site) -> Restart:
    """PostgreSQL with all its processes."""
    site.database.kill()
    return site.database.start


def kill_driver(site: Site) -> Restart:
    """Spark's JVM, with the stream. The supervisor sees to the rest."""
    kill_spark(spark_session())
    return lambda: None


def kill_executor(site: Site) -> Restart:
    """One of the two. Its worker starts another one."""
    site.spark_cluster.kill_executor(0)
    return lambda: None


def kill_spark_worker(site: Site) -> Restart:
    """One of the two with its executor, as if a machine had failed."""
    site.spark_cluster.kill_worker(0)
    return partial(site.spark_cluster.restart_worker, 0)


@dataclass(frozen=True)
class Fault:
    """A part to kill.

    Attributes
    ----------
    waited_for
        Whether the others wait for it, so that it's started again at once. Else the tables must catch up without it.
    by_itself
        What then comes back without anybody's help.
    restarted
        What is started again, and by whom. The stream is counted apart.
    """

    kill: Callable[[Site], Restart]
    waited_for: bool
    by_itself: str
    restarted: str


_LATER = "afterwards"
_SOON = f"{DOWN:.0f} s later"
FAULTS: Mapping[str, Fault] = {
    "broker": Fault(kill_broker, False, "Other replicas lead its partitions, and clients find them.", f"the broker, {_LATER}"),
    "controller": Fault(
        kill_controller, False, "The other controllers elect one. Leaders move as above.", f"the controller, {_LATER}"
    ),
    "Connect worker": Fault(kill_connect_worker, False, "The other worker takes over the connector.", f"the worker, {_LATER}"),
    "MQTT broker": Fault(kill_mqtt, True, "Trucks and connector connect again.", f"the MQTT broker, {_SOON}"),
    "registry": Fault(kill_registry, False, "Nobody notices: running programs have their schemas.", f"the registry, {_LATER}"),
    "PostgreSQL": Fault(kill_database, True, "The stream waits for it, and writes the batch again.", f"PostgreSQL, {_SOON}"),
    "Spark driver": Fault(kill_driver, True, "The stream goes on from its checkpoint.", "the driver, by the supervisor"),
    "Spark executor": Fault(
        kill_executor, False, "Its worker starts another one, and the driver hands out its tasks again.", "nothing"
    ),
    "Spark worker": Fault(
        kill_spark_worker, False, "The driver hands out its tasks again, to the other worker.", f"the worker, {_LATER}"
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What a fault did.

    Attributes
    ----------
    usual, oldest
        The age of the tables in seconds, at its highest: before the fault, and after it.
    caught_up
        Seconds from the kill until the tables were as young as before, and stayed so.
    starts
        How often the supervisor had to start the stream.
    repeats
        Records that came into the topic twice.
    """

    usual: float
    oldest: float
    caught_up: float
    starts: int
    repeats: int


class Ages:
    """How old the tables are: for how long trucks have had more to report than is in them.

    It counts from when a report was due. So reports that a truck can't get rid of make the tables old, too.
    """

    def __init__(self, site: Site) -> None:
        seen: set[str] = set()
        self._due: list[float] = []  # seconds until an event that wasn't reported before is due
        for number, report in enumerate(site.reports[site._acknowledged :]):
            if report.event and report.event.correlation not in seen:
                seen.add(report.event.correlation)
                self._due.append(number / RATE)
        self._site, self._before = site, site.counted()
        self.trucks = site.drive()
        self._began = time.monotonic()

    def now(self) -> float:
        """How old they are at this moment. The supervisor looks after the stream first."""
        self._site.supervise()
        return time.monotonic() - self._began - self._due[max(0, self._site.counted() - self._before)]

    def highest(self) -> float:
        """The highest age within some seconds, once the first reports are in the tables."""
        wait_until(lambda: self._site.counted() > self._before + USUAL * RATE, 120, "the tables to grow", interval=0.2)
        end, highest = time.monotonic() + USUAL, 0.0

        def over() -> bool:
            nonlocal highest
            highest = max(highest, self.now())
            return time.monotonic() >= end

        wait_until(over, 2 * USUAL + 60, "the usual age", interval=0.2)
        return highest


def strike(site: Site, fault: Fault) -> Outcome:
    """Kill the part while trucks report, wait until the tables have caught up, and compare them with the ledger.

    Raises
    ------
    WaitTimeout, AssertionError
        When they don't catch up, something is lost, or something is there twice.
    """
    starts, repeats = site.starts, site.repeats
    ages = Ages(site)
    usual = ages.highest()
    restart: Restart | None = fault.kill(site)
    killed = young_since = time.monotonic()
    oldest = 0.0

    def caught_up() -> bool:
        nonlocal restart, oldest, young_since
        if fault.waited_for and restart and time.monotonic() > killed + DOWN:
            restart()
            restart = None
        age = ages.now()
        oldest = max(oldest, age)
        if age > 1.5 * usual:
            young_since = math.inf
        else:
            young_since = min(young_since, time.monotonic())
        done = restart is None or not fault.waited_for
        return done and time.monotonic() > young_since + USUAL

    wait_until(
        caught_up, 900, "the tables to catch up", last_seen=lambda: f"{ages.now():.1f} s, usually {usual:.1f} s", interval=0.2
    )
    if restart is not None:
        restart()
    ages.trucks.stop()
    site.settle(ages.trucks)
    return Outcome(usual, oldest, young_since - killed, site.starts - starts, site.repeats - repeats)


def main(names: list[str]) -> None:
    """Run the faults, print each outcome, and write the page anew after each."""
    if unknown := set(names) - FAULTS.keys():
        sys.exit(f"there is no fault {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    reports = Trucks(interval=1000 // RATE).reports(REPORTS)  # their clocks go as fast as ours
    outcomes: dict[str, list[Outcome]] = {}
    for number in range(ROUNDS):
        with Cluster(3, backend="local") as cluster, opened(cluster, reports) as site:
            for name in names or FAULTS:
                outcomes.setdefault(name, []).append(strike(site, FAULTS[name]))
                print(f"round {number + 1}, {name}: equal to the ledger; {outcomes[name][-1]}", flush=True)
                PAGE.write_text(page(outcomes))


_PAGE = """\
# What each fault does to the truck pipeline

Trucks report by MQTT with QoS 1. Two Connect workers bring the reports to a Kafka cluster of three brokers, in Avro, and capture
each change of the table of drivers. Spark, on a cluster of two workers, brings them to PostgreSQL and to a topic. While {rate}
reports a second come, each part is killed with SIGKILL, one after the other.

**After each fault the tables equal what the trucks' ledger gives: nothing is lost, and nothing is counted twice.** The topic of
dangerous events has all of them and no other, and each malformed record has its dead letter. A driver's row that is changed
after the fault comes to the topic of drivers. If any of this isn't so, the command below fails.

| killed | comes back by itself | started again by hand | stream started again | oldest | caught up | repeats |
| --- | --- | --- | --- | --- | --- | --- |
{rows}

- *Comes back by itself.* If the part is started again only afterwards, the tables caught up without it.
- *Stream started again.* A supervisor does that when the stream has ended, as Kubernetes or systemd would. In how many of the
  rounds it had to.
- *Oldest.* How old the tables became, as a multiple of what is usual. The tables are as old as the first report that is due and
  not in them. Usual were {usual} s at most.
- *Caught up.* Seconds from the kill until the tables were no older than one and a half times the usual, and stayed so.
- *Repeats.* Records that came into the topic `truck_position` twice, because MQTT or Connect delivered them again. The stream
  drops them by their correlation ids.

Figures are {rounds}; {machine}. `python tools/pipeline_faults.py` measures
them and writes this page.
"""


def page(outcomes: Mapping[str, list[Outcome]]) -> str:
    """The page for these outcomes."""
    rows = []
    for name, found in outcomes.items():
        fault = FAULTS[name]
        started = sum(outcome.starts > 0 for outcome in found)
        figures = (
            f"{started} of {len(found)}" if started else "–",
            spread([outcome.oldest / outcome.usual for outcome in found], "×"),
            spread([outcome.caught_up for outcome in found], "s"),
            spread([outcome.repeats for outcome in found]),
        )
        rows.append(f"| {' | '.join((name, fault.by_itself, fault.restarted, *figures))} |")
    usual = [outcome.usual for found in outcomes.values() for outcome in found]
    number = len(next(iter(outcomes.values())))
    return _PAGE.format(
        rate=RATE,
        rows="\n".join(rows),
        usual=spread(usual),
        rounds=f"medians of {number} rounds, with the smallest and the largest" if number > 1 else "those of one round",
        machine=f"{os.cpu_count()} CPUs, load {os.getloadavg()[2]:.0f}",
    )


def spread(values: list[float], unit: str = "") -> str:
    """The median, and the ends where they differ."""
    digits = 0 if all(value == int(value) for value in values) else 1
    middle, *ends = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} {unit}".strip() + (f" ({' – '.join(ends)})" if ends[0] != ends[1] else "")


if __name__ == "__main__":
    main(sys.argv[1:])
