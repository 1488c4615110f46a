"""Plan for 10 million events a second: from what ``make bench`` measured on one machine, and from a simulation of lag.

``python tools/ten_million.py`` prints the tables of ``docs/ten-million.md``; with ``--write`` it writes them into the page.
The measured figures come from ``python tools/bench.py --save docs/ten-million.json pipeline``.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import random
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from truck_pipeline import Settings

DOCS = Path(__file__).parent.parent / "docs"
PAGE, FIGURES = DOCS / "ten-million.md", DOCS / "ten-million.json"

TARGETS = (100_000, 1_000_000, 10_000_000)  # events a second


@dataclass(frozen=True)
class Assumed:
    """What nobody measured here. Change it, and all tables change.

    Attributes
    ----------
    busy
        The share of a processor's time that may be planned for. The rest is for catching up.
    executor_cores, broker_cores
        Processors of an executor and of a broker.
    executor_memory
        Bytes of an executor's memory that state may take.
    network
        Bytes a second that a broker may send, and as many that it may receive.
    patience
        Seconds of patience with late events: the pipeline's default. Ids are remembered for twice that.
    retention
        Seconds for which the topics keep events and alarms, and PostgreSQL its rows.
    most
        Events that a micro-batch takes at most: the pipeline's setting of that name.
    core_hour, gigabyte_month
        Prices in dollars, of a processor with its memory, and of disk.
    """

    busy: float = 0.6
    executor_cores: int = 4
    broker_cores: int = 8
    executor_memory: float = 16e9
    network: float = 0.6e9
    patience: float = 300
    retention: float = 86_400
    most: float = 200e6
    core_hour: float = 0.05
    gigabyte_month: float = 0.1


# Where each figure is: the row of the bench, the figure's name, and what makes SI units of its unit.
WHERE = {
    "spark": ("pipeline-rate", "processor time per event: Spark", 1e-6),
    "brokers": ("pipeline-rate", "processor time per event: brokers", 1e-6),
    "database": ("pipeline-rate", "processor time per event: PostgreSQL", 1e-6),
    "python": ("pipeline-rate", "processor time per event: Python", 1e-6),
    "decoding": ("pipeline-rate", "stream that decodes and drops repeats, and writes nothing", 1),
    "size": ("pipeline-rate", "an event in the topic, each replica", 1),
    "alarms": ("pipeline-rate", "alarms in their topic, per event, each replica", 1),
    "rows": ("pipeline-rate", "rows in PostgreSQL with their indexes, per event", 1),
    "state_row": ("pipeline-state", "memory of a row of state", 1),
    "batch": ("pipeline-latency", "a micro-batch, at 1,000 events/s", 1),
}


@dataclass(frozen=True)
class Measured:
    """What the plan takes from the bench.

    Attributes
    ----------
    spark, brokers, database, python
        Seconds of processor time per event. Brokers: all replicas and all readers together.
    decoding
        Events a second that two processors read, decode and deduplicate.
    size, alarms
        Bytes per event in the topic of events and in that of alarms, in each replica.
    rows
        Bytes per event in PostgreSQL.
    state_row
        Bytes of memory for an id that the stream remembers.
    batch
        Seconds that a micro-batch with little to do takes.
    """

    spark: float
    brokers: float
    database: float
    python: float
    decoding: float
    size: float
    alarms: float
    rows: float
    state_row: float
    batch: float

    @classmethod
    def of(cls, figures: Sequence[dict[str, Any]]) -> Measured:
        """The medians of the bench's figures."""
        values = {figure["what"]: statistics.median(figure["values"]) for figure in figures}
        return cls(**{name: values[what] * unit for name, (_, what, unit) in WHERE.items()})

    @property
    def uneven(self) -> float:
        """The share of Spark's time per event that depends on how evenly the topic's partitions are filled, at most.

        Tasks read and decode by partitions of the topic. Then a shuffle by the events' ids makes the load even. The bench
        measures both parts with the dropping of repeats, which comes after the shuffle. So the true share is lower.
        """
        return min(1, _SLOTS / self.decoding / self.spark)


_SLOTS = 2  # tasks at a time of the session that the bench measures with

REPLICAS = 3
REMEMBERED = 2  # times the patience: until the watermark has passed an id, and for the patience once more


@dataclass(frozen=True)
class Plan:
    """What a rate of events needs."""

    rate: float
    measured: Measured
    assumed: Assumed = Assumed()

    @property
    def partitions(self) -> int:
        """As many as Spark needs processors: by default a task reads a partition, on one processor, and all work at once."""
        return math.ceil(self.rate * self.measured.spark / self.assumed.busy)

    @property
    def state(self) -> float:
        """Bytes of ids that are remembered."""
        return self.rate * self.assumed.patience * self.measured.state_row * REMEMBERED

    @property
    def executors(self) -> int:
        """Enough for the work, and for the state if it were all in memory."""
        return max(self.executors_to_work, math.ceil(self.state / self.assumed.executor_memory))

    @property
    def executors_to_work(self) -> int:
        """Enough for the work alone."""
        return math.ceil(self.partitions / self.assumed.executor_cores)

    @property
    def incoming(self) -> float:
        """Bytes a second that all brokers receive: events from trucks, alarms from the stream, and copies from each other."""
        return self.rate * (self.measured.size + self.measured.alarms) * REPLICAS

    @property
    def outgoing(self) -> float:
        """Bytes a second that all brokers send: copies to all replicas but one, and once to the stream or to a reader."""
        return self.incoming

    @property
    def brokers(self) -> int:
        """Enough for the work and for the network, and never fewer than there are replicas."""
        work = self.rate * self.measured.brokers / self.assumed.busy / self.assumed.broker_cores
        return max(REPLICAS, math.ceil(work), math.ceil(max(self.incoming, self.outgoing) / self.assumed.network))

    @property
    def disk(self) -> float:
        """Bytes on all brokers."""
        return self.incoming * self.assumed.retention

    @property
    def database_disk(self) -> float:
        """Bytes of PostgreSQL's tables."""
        return self.rate * self.measured.rows * self.assumed.retention

    @property
    def database_cores(self) -> int:
        """Processors of PostgreSQL."""
        return math.ceil(self.rate * self.measured.database / self.assumed.busy)

    @property
    def driver_cores(self) -> float:
        """Processors for the Python process, which hands the answers to PostgreSQL: there is one, and it uses one."""
        return self.rate * self.measured.python

    @property
    def cost(self) -> float:
        """Dollars a month for processors and disk, with ids kept on disk instead of in memory."""
        cores = self.executors_to_work * self.assumed.executor_cores + self.brokers * self.assumed.broker_cores
        hours = (cores + self.database_cores) * 730
        return (
            hours * self.assumed.core_hour + (self.disk + self.database_disk + self.state) / 1e9 * self.assumed.gigabyte_month
        )


# -- simulation -------------------------------------------------------------------------------------------------------------


@functools.cache
def skew(keys: int, partitions: int, seed: int = 11) -> float:
    """How many times a fair share the fullest partition holds, when equally busy keys fall into partitions by their hashes."""
    found = Counter(random.Random(seed).choices(range(partitions), k=keys))
    return max(found.values()) * partitions / keys


@dataclass(frozen=True)
class Burst:
    """Events come at a rate, and for some seconds at several times the rate."""

    rate: float
    times: float = 10
    start: float = 60
    seconds: float = 60

    @property
    def end(self) -> float:
        """When it's over."""
        return self.start + self.seconds

    def arrived(self, time: float) -> float:
        """How many events have come until then."""
        return self.rate * (time + (self.times - 1) * min(max(time - self.start, 0), self.seconds))


@dataclass(frozen=True)
class Outcome:
    """What a burst leads to: the largest lag in events, and the seconds after the burst until the lag is as small as before.

    Attributes
    ----------
    latency
        Seconds from an event to its row before the burst, at most: the batch that runs, and its own.
    caught_up
        Infinite where the lag only grows.
    """

    latency: float
    lag: float
    caught_up: float


def simulate(
    burst: Burst,
    cores: float,
    per_event: float,
    overhead: float,
    unfair: float = 1,
    trigger: float = 1,
    most: float = math.inf,
) -> Outcome:
    """Run micro-batches one after the other, before, in and after a burst. Each takes what waits, up to a limit.

    Parameters
    ----------
    burst
        What comes.
    cores
        Processors that work at a time.
    per_event
        Seconds of processor time per event.
    overhead
        Seconds that a batch takes on top of that.
    unfair
        How many times as long the work takes as with equally full partitions: see `slower`.
    trigger
        Seconds between the starts of batches that take less.
    most
        Events that a batch takes at most.
    """
    work = per_event * unfair / cores  # seconds per event
    if burst.rate * work >= 1 or most / max(trigger, overhead + most * work) <= burst.rate:
        return Outcome(math.inf, math.inf, math.inf)
    steady = max(trigger, overhead / (1 - burst.rate * work))
    time, taken, lag = 0.0, 0.0, 0.0
    while True:
        waiting = burst.arrived(time) - taken
        lag = max(lag, waiting)
        if time > burst.end and waiting <= 1.1 * burst.rate * steady:
            return Outcome(2 * steady, lag, time - burst.end)
        takes = min(waiting, most)
        taken += takes
        time += max(trigger, overhead + takes * work)


# -- tables -----------------------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, with numbers on the right."""
    lines = [head, ["---", *("---:" for _ in head[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def measured_table(figures: Sequence[dict[str, Any]]) -> str:
    """Each figure that the plan or the text takes from the bench, with its spread."""

    def number(value: float) -> str:
        return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value < 1 else f"{value:.1f}"

    rows = [
        (
            f["what"],
            f"{number(statistics.median(f['values']))} {f['unit']}",
            f"{number(min(f['values']))} – {number(max(f['values']))}",
        )
        for f in figures
    ]
    return table(("measured", "median", "spread"), rows)


def assumed_table(assumed: Assumed) -> str:
    """What is assumed."""
    told: dict[str, str] = {
        "busy": f"{assumed.busy:.0%} of a processor's time is planned for",
        "executor_cores": f"{assumed.executor_cores} processors in an executor",
        "broker_cores": f"{assumed.broker_cores} processors in a broker",
        "executor_memory": f"{assumed.executor_memory / 1e9:g} GB of an executor's memory for state",
        "network": f"{assumed.network / 1e9:g} GB/s in and as much out for a broker: half of 10 Gbit/s",
        "patience": f"{assumed.patience:g} s of patience with late events, and twice that for which ids are remembered",
        "retention": f"{assumed.retention / 3600:g} hours for which the topics and PostgreSQL keep what they get",
        "most": f"{assumed.most:,.0f} events in a micro-batch at most, {assumed.most / Settings.most:,.0f} times the default",
        "core_hour": f"${assumed.core_hour:.2f} for an hour of a processor with its memory",
        "gigabyte_month": f"${assumed.gigabyte_month:.2f} for a month of a gigabyte of disk",
    }
    return "\n".join(f"- {told[field.name]}" for field in fields(assumed))


_PLANNED: dict[str, Callable[[Plan], str]] = {
    "partitions, and tasks at a time": lambda plan: f"{plan.partitions:,}",
    "executors, for the work": lambda plan: f"{plan.executors_to_work:,}",
    "state in memory": lambda plan: f"{plan.state / 1e9:,.0f} GB",
    "executors, with the state in memory": lambda plan: f"{plan.executors:,}",
    "brokers": lambda plan: f"{plan.brokers:,}",
    "network into all brokers": lambda plan: f"{plan.incoming / 1e9:,.2f} GB/s",
    "network out of all brokers": lambda plan: f"{plan.outgoing / 1e9:,.2f} GB/s",
    "disk of all brokers": lambda plan: f"{plan.disk / 1e12:,.1f} TB",
    "disk of PostgreSQL": lambda plan: f"{plan.database_disk / 1e12:,.1f} TB",
    "processors for PostgreSQL": lambda plan: f"{plan.database_cores:,}",
    "processors for the driver's Python, which can use one": lambda plan: f"{plan.driver_cores:,.1f}",
    "dollars a month, with the state on disk": lambda plan: f"{plan.cost:,.0f}",
}


def plan_table(measured: Measured, assumed: Assumed) -> str:
    """What each target needs."""
    plans = [Plan(rate, measured, assumed) for rate in TARGETS]
    rows = [(what, *map(tell, plans)) for what, tell in _PLANNED.items()]
    return table(("events a second", *(f"{rate:,}" for rate in TARGETS)), rows)


def slower(unfair: float, measured: Measured) -> float:
    """How many times as long a batch takes, at most, if its fullest partition holds `unfair` times a fair share."""
    return 1 + measured.uneven * (unfair - 1)


def skew_table(measured: Measured, assumed: Assumed) -> str:
    """Trucks on as many partitions as 10 million events a second need."""
    partitions = Plan(TARGETS[-1], measured, assumed).partitions
    rows = [
        (f"{keys:,}", f"{keys / partitions:,.1f}", f"{unfair:.2f}", f"{1 / slower(unfair, measured):.0%}")
        for keys in (1_000, 10_000, 100_000, 1_000_000)
        for unfair in [skew(keys, partitions)]
    ]
    head = (
        f"trucks, on {partitions:,} partitions",
        "trucks in a partition",
        "the fullest, of the mean",
        "processors busy in a batch, at least",
    )
    return table(head, rows)


def lag_table(measured: Measured, assumed: Assumed) -> str:
    """A tenfold burst of a minute, with few and with many executors."""
    plan = Plan(TARGETS[-1], measured, assumed)
    need = plan.rate * measured.spark  # processors that are busy all the time
    unfair = slower(skew(1_000_000, plan.partitions), measured)
    rows = []
    for times in (1, 1.25, 1.5, 1 / assumed.busy, 2.5, 4):
        executors = math.ceil(need * times / assumed.executor_cores)
        cores = executors * assumed.executor_cores
        end = simulate(Burst(plan.rate), cores, measured.spark, measured.batch, unfair, most=assumed.most)
        told = [f"{end.latency:.1f} s", f"{end.lag / 1e9:.1f} billion", f"{end.caught_up / 60:.0f} min"]
        rows.append((f"{executors:,}", f"{times:.2f}", *(told if math.isfinite(end.lag) else ["grows", "grows", "never"])))
    head = ("executors", "of what the work needs", "event → row, at most", "largest lag in the burst", "caught up after")
    return table(head, rows)


def blocks(saved: dict[str, Any], assumed: Assumed) -> dict[str, str]:
    """All tables of the page, by their names."""
    figures = saved["figures"]
    measured = Measured.of(figures)
    return {
        "measured": f"Measured on {saved['machine']}.\n\n{measured_table(figures)}",
        "assumed": assumed_table(assumed),
        "plan": plan_table(measured, assumed),
        "skew": skew_table(measured, assumed),
        "lag": lag_table(measured, assumed),
    }


def written(page: str, tables: dict[str, str]) -> str:
    """The page with these tables in the places of its own."""

    def replaced(match: re.Match[str]) -> str:
        return f"{match[1]}\n\n{tables[match[2]]}\n\n{match[3]}"

    return re.sub(r"(<!-- begin (\w+) -->).*?(<!-- end -->)", replaced, page, flags=re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description="A plan for 10 million events a second.")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/ten-million.md")
    for field in fields(Assumed):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default, help="(assumed: %(default)s)"
        )
    given = vars(parser.parse_args(arguments))
    write = given.pop("write")
    if not FIGURES.exists():
        sys.exit("nothing is measured yet: run tools/bench.py --save docs/ten-million.json pipeline")
    tables = blocks(json.loads(FIGURES.read_text()), Assumed(**given))
    if write:
        PAGE.write_text(written(PAGE.read_text(), tables))
    else:
        print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
