"""``make faults``: kill each part of the truck pipeline at work, compare the tables with the trucks' ledger, and write a page.

Trucks report by MQTT (QoS 1). Connect brings that to Kafka, and captures the office's table of drivers. Spark, on a cluster of
two workers, brings it to PostgreSQL and Kafka.
``python tools/pipeline_faults.py`` does all of that in three rounds, or as many as ``KAFKALAB_ROUNDS`` says, and takes 3.5 GB of
memory. At the end it prints a table, and its status is 1 if anything differs from the ledger. Names of faults after it choose
some. With ``--direct``, trucks report to Kafka themselves, and nothing of MQTT and Connect runs. Only a run of all faults
writes the page, docs/pipeline-faults.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient, NewTopic

from kafkalab import Cluster, ConnectCluster, MqttBroker, PostgreSQL, SchemaRegistry, SparkCluster, wait_until
from kafkalab.checks import CheckContext
from kafkalab.cluster.offsets import end_offsets
from kafkalab.errors import WaitTimeout
from kafkalab.spark import kafka_options
from pipeline_driver import MOMENTS, kill_all, moment_file, start_driver
from truck_pipeline import (
    DRIVERS,
    Event,
    MqttTruckSender,
    Report,
    Settings,
    Trucks,
    TruckSender,
    answers,
    connect_drivers,
    connect_trucks,
    send_drivers,
)
from truck_pipeline.sender import Sender
from truck_pipeline.tables import Tables

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
    mqtt, connect
        None if trucks report to Kafka themselves.
    driver
        The process of the stream.
    starts
        How often it was started again.
    """

    cluster: Cluster
    registry: SchemaRegistry
    database: PostgreSQL
    mqtt: MqttBroker | None
    connect: ConnectCluster | None
    spark_cluster: SparkCluster | None
    settings: Settings
    reports: list[Report]
    starts: int = -1  # the first one doesn't count
    _ledger: list[Event] = field(default_factory=list)
    _acknowledged: int = 0
    _malformed: int = 0
    _counted: int = 0

    def __post_init__(self) -> None:
        self.tables = Tables(self.settings.database, self.settings.schema)
        self._start()

    def supervise(self) -> None:
        """Start the stream again if it has ended, as Kubernetes or systemd would."""
        if self.driver.poll() is not None:
            self._start()

    def _start(self) -> None:
        environment = dict(os.environ)
        if self.spark_cluster:
            login = {"spark.authenticate": True, "spark.authenticate.secret": self.spark_cluster.secret}
            more = json.dumps({**login, "spark.executor.memory": "512m"})
            environment |= {"KAFKALAB_SPARK_MASTER": self.spark_cluster.url, "KAFKALAB_SPARK_SETTINGS": more}
        with open(self.log, "ab") as log:
            self.driver = start_driver(self.settings, environment, log)
        self.starts += 1

    @property
    def log(self) -> Path:
        """The file with what the drivers say."""
        return Path(f"{self.settings.checkpoint}-log")

    def stop(self) -> None:
        """End the stream."""
        if self.driver.poll() is None:
            kill_all(self.driver.pid)
        self.driver.wait()

    def drive(self, reports: int = REPORTS) -> Sender:
        """Let the trucks send what comes next."""
        some = self.reports[self._acknowledged :][:reports]
        if self.mqtt is None:
            return TruckSender(self.cluster.client_config(), self.settings, some, RATE).start()
        return MqttTruckSender(self.mqtt.host, self.mqtt.port, self.settings, some, RATE).start()

    def counted(self) -> int:
        """How many events are in the table of counts, or were when it could be asked."""
        with suppress(psycopg.Error):
            [(events,)] = self.tables.ask("SELECT sum(events) FROM {schema}.driving")
            self._counted = int(events or 0)
        return self._counted

    def settle(self, trucks: Sender) -> str:
        """Take the trucks' ledger, wait until the tables equal it, and make sure that they stay so and the topics fit.

        Returns
        -------
        str
            The sum of all that the trucks have sent so far.

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
                return self.tables.answers() == wanted
            return False

        def difference() -> str:
            found = self.tables.answers()
            return f"{found.lacks(wanted)} events are missing, and {wanted.lacks(found)} are too many"

        wait_until(equal, 300, "the tables to equal the ledger", last_seen=difference, interval=0.3)
        wait_until(
            lambda: self.dead_letters() >= self._malformed, 60, "dead letters", last_seen=self.dead_letters, interval=0.3
        )
        wait_until(self._caught_up, 300, "the stream to read all of the topic", interval=0.3)
        assert self.tables.answers() == wanted, difference()
        found = {message.key().decode() for message in self.records(self.settings.dangerous)}
        assert found == wanted.dangerous.keys(), found ^ wanted.dangerous.keys()
        if self.connect:
            self._change_a_driver(self.connect)
        return self._sum()

    def _caught_up(self) -> bool:
        """Whether Spark has committed a batch up to the end of the topic."""
        self.supervise()
        stream = Path(self.settings.checkpoint, "stream")
        last = max((int(path.name) for path in (stream / "commits").glob("[0-9]*")), default=None)
        if last is None:
            return False
        read = json.loads((stream / "offsets" / str(last)).read_text().splitlines()[-1])[self.settings.positions]
        return sum(read.values()) == sum(end_offsets(self.cluster, self.settings.positions).values())

    def _sum(self) -> str:
        """Check that each acknowledged report is somewhere, to the event."""
        [(events, late)] = self.tables.ask("SELECT sum(events), sum(late) FROM {schema}.driving")
        once = len({event.correlation for event in self._ledger})  # a report may come again in another drive
        dead, twice = self.dead_letters(), self._acknowledged - self._malformed - once
        assert self._acknowledged == events + late + dead + twice, (self._acknowledged, events, late, dead, twice)
        return f"{self._acknowledged} sent = {events} in tables + {dead} dead letters + {late} late + {twice} sent twice"

    def _change_a_driver(self, connect: ConnectCluster) -> None:
        """Change a row of the office's table, and wait until the topic has it: its connector has survived the fault."""
        with psycopg.connect(self.database.url) as office:
            [(id_, available)] = office.execute(
                "UPDATE driver SET available = NOT available WHERE id = 10 RETURNING id, available"
            )

        def captured() -> bool:
            *_, last = (json.loads(m.value()) for m in self.records(self.settings.drivers) if m.key() == str(id_).encode())
            return last["available"] == available

        wait_until(captured, 120, "the change of a driver to be captured", last_seen=connect.states, interval=0.3)

    def dead_letters(self) -> int:
        """How many records have a dead letter, which tells where the record is. A repeated batch writes its letters again."""
        headers = [dict(letter.headers()) for letter in self.records(self.settings.dead_letters)]
        return len({(header["dead.partition"], header["dead.offset"]) for header in headers})

    def records(self, topic: str) -> list:
        """All records of a topic."""
        return CheckContext(self.cluster).records(topic)

    @property
    def acknowledged(self) -> int:
        """How many reports have been acknowledged, up to the last time that the tables equalled the ledger."""
        return self._acknowledged

    @property
    def repeats(self) -> int:
        """Records in the topic beyond those that the trucks sent: what Connect and MQTT had to deliver again."""
        return sum(end_offsets(self.cluster, self.settings.positions).values()) - self._acknowledged


@contextmanager
def opened(cluster: Cluster, reports: list[Report], *, connect_workers: int = 2, spark_workers: int = 2) -> Iterator[Site]:
    """Everything beside a cluster that runs.

    Without workers for Connect, trucks report to Kafka themselves. Without workers of its own, Spark runs in one process.
    """
    with ExitStack() as stack:
        enter = stack.enter_context
        registry, database = enter(SchemaRegistry(cluster)), enter(PostgreSQL(backend="local"))
        settings = Settings(kafka_options(cluster), registry.url, database.url, f"{enter(tempfile.TemporaryDirectory())}/point")
        create_topics(cluster, settings)
        if connect_workers:
            mqtt, connect = _connected(stack, cluster, database, settings, connect_workers)
        else:
            mqtt = connect = None
            send_drivers(cluster.client_config(), settings.drivers)
        spark_cluster = enter(SparkCluster(spark_workers)) if spark_workers else None
        site = Site(cluster, registry, database, mqtt, connect, spark_cluster, settings, reports)
        stack.callback(site.stop)
        site.settle(site.drive(1).wait())  # so that there is a schema
        yield site


def _connected(
    stack: ExitStack, cluster: Cluster, database: PostgreSQL, settings: Settings, workers: int
) -> tuple[MqttBroker, ConnectCluster]:
    """What brings reports and drivers to Kafka."""
    mqtt = stack.enter_context(MqttBroker())
    open_office(database)
    connect = ConnectCluster(cluster, workers)
    for plugin in ("mqtt-source", "debezium-postgres"):
        connect.add_plugin(plugin)
    stack.enter_context(connect)
    connect.wait_until_running(connect_drivers(connect.url, settings))
    connect.wait_until_running(connect_trucks(connect.url, mqtt.url, settings))
    wait_until(lambda: any("connected to" in worker.logs() for worker in connect.workers), 60, "the connector to reach MQTT")
    captured = partial(end_offsets, cluster, settings.drivers)
    wait_until(lambda: sum(captured().values()) >= len(DRIVERS), 60, "the drivers to be captured", last_seen=captured)
    return mqtt, connect


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
    """One that leads partitions of the topic of positions, and isn't the active controller."""
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
    assert site.connect
    [connector] = [connector for connector in site.connect.describe().connectors if connector.name == "trucks"]
    worker = site.connect.workers[connector.tasks[0].worker]
    worker.kill()
    return worker.start


def kill_mqtt(site: Site) -> Restart:
    """The only one."""
    assert site.mqtt
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
    """Python and its JVM, with the stream. The supervisor sees to the rest."""
    kill_all(site.driver.pid)
    site.driver.wait()
    return lambda: None


def kill_driver_at(moment: str, site: Site) -> Restart:
    """The same, at a moment of a batch."""
    file = moment_file(site.settings)
    file.write_text(moment)
    with suppress(subprocess.TimeoutExpired):
        site.driver.wait(120)
    file.unlink()
    assert site.driver.poll() == -signal.SIGKILL, f"no batch came to the moment {moment}"
    return lambda: None


def kill_executor(site: Site) -> Restart:
    """One of the two. Its worker starts another one."""
    assert site.spark_cluster
    site.spark_cluster.kill_executor(0)
    return lambda: None


def kill_spark_worker(site: Site) -> Restart:
    """One of the two with its executor, as if a machine had failed."""
    assert site.spark_cluster
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
    "registry": Fault(kill_registry, True, "A batch with an unknown schema's id waits for it.", f"the registry, {_SOON}"),
    "PostgreSQL": Fault(kill_database, True, "The stream waits for it, and writes the batch again.", f"PostgreSQL, {_SOON}"),
    "Spark driver": Fault(kill_driver, True, "The stream goes on from its checkpoint.", "the driver, by the supervisor"),
    **{
        f"Spark driver, {moment}": Fault(partial(kill_driver_at, moment), True, goes_on, "the driver, by the supervisor")
        for moment, goes_on in zip(
            MOMENTS,
            ("The stream processes the batch again.", "The stream processes it again, and it counts once."),
            strict=True,
        )
    },
    "Spark executor": Fault(
        kill_executor, False, "Its worker starts another one, and the driver hands out its tasks again.", "nothing"
    ),
    "Spark worker": Fault(
        kill_spark_worker, False, "The driver hands out its tasks again, to the other worker.", f"the worker, {_LATER}"
    ),
}


BY_MQTT = {"Connect worker", "MQTT broker"}
"""Faults of what is only there when trucks don't report to Kafka themselves."""


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
    still
        Seconds from the kill until something new was in the tables.
    sum
        Where all the reports are that were sent so far.
    """

    usual: float
    oldest: float
    caught_up: float
    starts: int
    repeats: int
    still: float = 0
    sum: str = ""


class Ages:
    """How old the tables are: for how long trucks have had more to report than is in them.

    It counts from when a report was due. So reports that a truck can't get rid of make the tables old, too.
    """

    def __init__(self, site: Site) -> None:
        seen: set[str] = set()
        self._due: list[float] = []  # seconds until an event that wasn't reported before is due
        for number, report in enumerate(site.reports[site.acknowledged :]):
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
    oldest, still, counted = 0.0, math.inf, site.counted()

    def caught_up() -> bool:
        nonlocal restart, oldest, young_since, still
        if fault.waited_for and restart and time.monotonic() > killed + DOWN:
            restart()
            restart = None
        age = ages.now()
        oldest = max(oldest, age)
        if site.counted() > counted:
            still = min(still, time.monotonic() - killed)
        if age > 1.5 * usual:
            young_since = math.inf
        else:
            young_since = min(young_since, time.monotonic())
        done = still < math.inf and (restart is None or not fault.waited_for)
        return done and time.monotonic() > young_since + USUAL

    wait_until(
        caught_up, 900, "the tables to catch up", last_seen=lambda: f"{ages.now():.1f} s, usually {usual:.1f} s", interval=0.2
    )
    if restart is not None:
        restart()
    ages.trucks.stop()
    total = site.settle(ages.trucks)
    return Outcome(usual, oldest, young_since - killed, site.starts - starts, site.repeats - repeats, still, total)


def main() -> None:
    """Run the faults, print each outcome and a table of all. Write the page if all faults were run.

    Raises
    ------
    SystemExit
        With status 1, when anything differs from the ledger.
    """
    parser = argparse.ArgumentParser(description="Kill each part of the truck pipeline at work.")
    parser.add_argument("--direct", action="store_true", help="let trucks report to Kafka themselves")
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"some of: {', '.join(FAULTS)} (default: all)")
    options = parser.parse_args()
    there = [name for name in FAULTS if not options.direct or name not in BY_MQTT]
    if unknown := set(options.faults) - set(there):
        parser.error(f"there is no fault {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that everything it started ends, too
    reports = Trucks(interval=1000 // RATE).reports(REPORTS)  # their clocks go as fast as ours
    outcomes: dict[str, list[Outcome]] = {name: [] for name in options.faults or there}
    differences: dict[str, list[str]] = {name: [] for name in outcomes}
    for number in range(1, ROUNDS + 1):
        left = list(outcomes)
        while left:
            run_round(number, left, reports, outcomes, differences, connect_workers=0 if options.direct else 2)
    print(table(outcomes, differences))
    if any(differences.values()):
        sys.exit(1)
    if not options.direct and not options.faults:
        PAGE.write_text(page(outcomes))


def run_round(
    number: int,
    left: list[str],
    reports: list[Report],
    outcomes: Mapping[str, list[Outcome]],
    differences: Mapping[str, list[str]],
    connect_workers: int,
) -> None:
    """Run faults, and take each from the list. A difference from the ledger ends it: what follows needs a new site."""
    with Cluster(3, backend="local") as cluster, opened(cluster, reports, connect_workers=connect_workers) as site:
        while left:
            name = left.pop(0)
            try:
                outcomes[name].append(strike(site, FAULTS[name]))
            except (WaitTimeout, AssertionError) as difference:
                differences[name].append(str(difference))
                print(f"round {number}, {name}: DIFFERENT: {difference}", site.log.read_text()[-5000:], sep="\n", flush=True)
                return
            print(f"round {number}, {name}: equal to the ledger; {outcomes[name][-1]}", flush=True)


def table(outcomes: Mapping[str, list[Outcome]], differences: Mapping[str, list[str]]) -> str:
    """What was killed, in how many rounds, for how many seconds nothing came into the tables, and whether they're right."""
    lines = ["killed | rounds | seconds of interruption | equal to the ledger", "--- | ---: | ---: | ---"]
    for name, found in outcomes.items():
        seconds = spread([outcome.still for outcome in found]) if found else "–"
        rounds = len(found) + len(differences[name])
        lines.append(f"{name} | {rounds} | {seconds} | {f'NO, in {len(differences[name])}' if differences[name] else 'yes'}")
    return "\n".join(f"| {line} |" for line in lines)


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
    main()
