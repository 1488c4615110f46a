"""Start a cluster ahead of time, so that the first ``Cluster().start()`` returns at once.

``python -m kafkalab.cluster.standby`` (``kafkalab lab`` runs it) starts a cluster of the default spec, saves its state,
and waits. The first process that starts a cluster of that spec takes it over by an atomic rename of its claim. If no
process does, the cluster ends with this process, when its standard input closes, or after a quarter of an hour.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
from collections.abc import Iterator
from pathlib import Path

from kafkalab.cluster.backends.access import Access
from kafkalab.cluster.backends.local import LocalBackend
from kafkalab.cluster.observer import Observer
from kafkalab.cluster.spec import ClusterSpec
from kafkalab.errors import WaitTimeout
from kafkalab.lifeline import Run, abandoned_runs, reap
from kafkalab.paths import runs_dir
from kafkalab.resources import available_memory
from kafkalab.waiting import wait_until

__all__ = ["main", "take"]

_KIND = "standby"
_STARTING = "starting"
_START_SECONDS = 90.0
_KEEP_SECONDS = 15 * 60
_PLENTY = 2_000_000_000  # bytes: enough for a standby cluster beside the one that starts


def take(spec: ClusterSpec, backend_name: str) -> Access | None:
    """Take over a standby cluster of exactly this spec, if there is one. It then belongs to this process.

    A cluster of another spec starts on its own. If memory is scarce, the standby clusters end first.
    """
    if backend_name != LocalBackend.name:
        return None
    if spec != ClusterSpec():
        if available_memory() < _PLENTY:
            for run in _taken():
                reap(run)
        return None
    for run in _taken():
        backend = LocalBackend(spec, run)
        backend.read_state()
        return backend
    return None


def _taken() -> Iterator[Run]:
    """Take over one standby cluster after the other. Each belongs to this process then.

    Wait for one that is starting. A second cluster beside it would take longer, and twice the memory.
    """
    with contextlib.suppress(WaitTimeout):
        wait_until(lambda: not _starting(), _START_SECONDS, "the standby cluster to start")
    for offer in _notes("offered-by-*"):
        run = Run(offer.parent.name)
        if run.take_over(int(offer.name.removeprefix("offered-by-"))):
            offer.unlink(missing_ok=True)
            yield run


def _starting() -> set[str]:
    """Return the runs of standby clusters that start now. What a crash left behind doesn't."""
    return {note.parent.name for note in _notes(_STARTING)} - {run.id for run in abandoned_runs()}


def _notes(name: str) -> Iterator[Path]:
    for folder in runs_dir().glob(f"{_KIND}-*"):
        with contextlib.suppress(FileNotFoundError):  # a cluster that was taken before, and is being removed
            yield from list(folder.glob(name))


def main() -> None:
    """Offer one cluster of the default spec until a process takes it, or it's no longer wanted."""
    run = Run.create(_KIND)
    backend = LocalBackend(ClusterSpec(), run)
    starting = run.directory / _STARTING
    starting.touch()
    try:
        backend.launch()
        observer = Observer(backend)
        observer.wait_until_ready(_START_SECONDS)
        observer.close()
        backend.write_state()
        starting.rename(run.directory / f"offered-by-{os.getpid()}")
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin, selectors.EVENT_READ)
            selector.select(_KEEP_SECONDS)
    finally:
        # The same rename that a taker uses decides whether the cluster was taken. End it only if it's still ours.
        if run.is_mine():
            reap(run)


if __name__ == "__main__":
    main()
