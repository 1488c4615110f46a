"""A cluster that is started before anyone asks for it, so that the first ``Cluster().start()`` is there at once.

``python -m kafkalab.cluster.standby`` (started by ``kafkalab lab``) starts one of the default spec, writes down its
state, and waits. Whoever starts a cluster of that spec first takes it over by one atomic rename of its claim. If nobody
does, it is given back: when the process ends, when its standard input closes, or after a quarter of an hour.
"""

from __future__ import annotations

import os
import selectors
import sys

from kafkalab.cluster.backends.base import Backend
from kafkalab.cluster.backends.local import LocalBackend
from kafkalab.cluster.observer import Observer
from kafkalab.cluster.spec import ClusterSpec
from kafkalab.lifeline import Run, reap
from kafkalab.paths import runs_dir

__all__ = ["main", "take"]

_KIND = "standby"
_START_SECONDS = 90.0
_KEEP_SECONDS = 15 * 60


def take(spec: ClusterSpec, backend_name: str) -> Backend | None:
    """Take over a standby cluster of this very spec, if there is one; it then belongs to this process."""
    if backend_name != LocalBackend.name or spec != ClusterSpec():
        return None
    for offer in runs_dir().glob(f"{_KIND}-*/offered-by-*"):
        run = Run(offer.parent.name)
        if run.take_over(int(offer.name.removeprefix("offered-by-"))):
            offer.unlink(missing_ok=True)
            backend = LocalBackend(spec, run)
            backend.read_state()
            return backend
    return None


def main() -> None:
    """Offer one cluster of the default spec until it is taken or no longer wanted."""
    run = Run.create(_KIND)
    backend = LocalBackend(ClusterSpec(), run)
    try:
        backend.launch()
        observer = Observer(backend)
        observer.wait_until_ready(_START_SECONDS)
        observer.close()
        backend.write_state()
        (run.directory / f"offered-by-{os.getpid()}").touch()
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin, selectors.EVENT_READ)
            selector.select(_KEEP_SECONDS)
    finally:
        # Taken or not is decided by the same rename that a taker does: only what is still ours is ended.
        if run.is_mine():
            reap(run)


if __name__ == "__main__":
    main()
