"""A look at one partition's log: its files, and the offsets that brokers report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from kafkalab.checks.context import CheckContext
from kafkalab.cluster.log_reader import LogView
from kafkalab.errors import WaitTimeout
from kafkalab.waiting import wait_until

__all__ = ["view_of"]

_TIMEOUT = 10.0


def view_of(
    ctx: CheckContext,
    topic: str,
    is_complete: Callable[[LogView], bool] = lambda view: True,
    *,
    partition: int = 0,
    broker: int | None = None,
) -> LogView:
    """Return a partition's log on a broker, by default on its leader.

    A busy broker may not tell an offset in time. So this looks again, for 10 s at most, until `is_complete` says that the
    view has what the check needs. Then it returns the view as it is.
    """
    with contextlib.closing(ctx.cluster.disk.log_reader(topic, partition, broker)) as reader:
        view: LogView = reader.read()

        def complete() -> bool:
            nonlocal view
            view = view if is_complete(view) else reader.read()
            return is_complete(view)

        with contextlib.suppress(WaitTimeout):
            wait_until(complete, _TIMEOUT, f"the offsets of {topic}", last_seen=lambda: view.offsets)
        return view
