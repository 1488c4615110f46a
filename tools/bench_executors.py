"""A row of ``make bench``: what a second executor brings, if executors are what the pipeline waits for."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench_figures import Measured, long_running_session, timed
from bench_pipeline import FLEET, opened
from kafkalab import SparkCluster
from kafkalab.cgroups import own_cgroups

EVENTS, ROUNDS, WARM_UPS = 200_000, 3, 4
SHARE = 0.25  # of a processor for each executor, so that brokers, PostgreSQL and the driver never wait for one
_PERIOD = 20_000  # microseconds
_LIMITS = {"cpu.max": "{quota} {period}", "cpu.cfs_quota_us": "{quota}"}  # version 2, version 1


def executors() -> Measured:
    """The same backlog on one and on two executors of a standalone cluster, by turns. Each has a share of a processor.

    On two processors, a second executor would otherwise only take from the first one, the brokers and the driver. It needs to
    be root, for control groups.
    """
    with opened() as site:
        settings = site.fill("for-executors", FLEET, EVENTS)
        for _ in range(ROUNDS):
            speeds = []
            for number in (1, 2):
                with SparkCluster(number) as workers:
                    spark = long_running_session(workers)
                    for _ in range(WARM_UPS):
                        site.run(spark, settings, EVENTS)
                    with _limited(list(_running())):
                        took = timed(site.run, spark, settings, EVENTS)
                    spark.stop()
                speeds.append(EVENTS / took)
            yield f"pipeline on 1 executor with {SHARE:.0%} of a processor", "events/s", speeds[0]
            yield f"pipeline on 2 executors with {SHARE:.0%} each, of the events/s on 1", "≥ 1.6 ×", speeds[1] / speeds[0]


def _running() -> Iterator[int]:
    """Find all executors."""
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("CoarseGrainedExecutorBackend" in argument for argument in process.cmdline()):
                yield process.pid


@contextmanager
def _limited(pids: list[int]) -> Iterator[None]:
    """Give each process a share of a processor within this context."""
    parent, limit = next(_folders())
    groups = [parent / f"kafkalab-{uuid.uuid4().hex[:8]}" for _ in pids]
    try:
        for group, pid in zip(groups, pids, strict=True):
            group.mkdir()
            if limit == "cpu.cfs_quota_us":
                (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
            (group / limit).write_text(_LIMITS[limit].format(quota=int(SHARE * _PERIOD), period=_PERIOD))
            (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for group, pid in zip(groups, pids, strict=True):
            with contextlib.suppress(OSError):  # the process has ended
                (parent / "cgroup.procs").write_text(str(pid))
            group.rmdir()


def _folders() -> Iterator[tuple[Path, str]]:
    for folder in own_cgroups("cpu", Path("/proc"), Path("/sys/fs/cgroup")):
        yield from ((folder, limit) for limit in _LIMITS if (folder / limit).exists())
