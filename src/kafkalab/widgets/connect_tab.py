"""What the panel says about Kafka Connect."""

from __future__ import annotations

from kafkalab.services.connect_view import ConnectorView, ConnectView, PartView
from kafkalab.widgets.status import Described
from kafkalab.widgets.tab_drawing import heading, muted, state, table, trouble

__all__ = ["connect_page"]


def connect_page(connect: Described[ConnectView]) -> str:
    """Return the workers, and the connectors with their tasks and why one failed."""
    view = connect.describe()
    workers = [f"worker {worker.number} {state('running' if worker.alive else 'not running')}" for worker in view.workers]
    head = heading("Connect cluster", *workers)
    if view.connectors is None:
        return head + trouble("No worker answers.")
    return head + ("".join(map(_connector, view.connectors)) or muted("There is no connector."))


def _connector(connector: ConnectorView) -> str:
    lag = (
        "" if connector.lag is None else f'<span class="{"behind" if connector.lag else "muted"}">lag {connector.lag:,}</span>'
    )
    head = heading(connector.name, muted(connector.kind), state(connector.itself.state), lag)
    tasks = [(str(number), state(task.state), _place(task)) for number, task in sorted(connector.tasks.items())]
    below = table(("task", "state", "on"), tasks) if tasks else muted("It has no tasks.")
    return head + below + "".join(map(trouble, dict.fromkeys(connector.errors)))


def _place(task: PartView) -> str:
    return "" if task.worker is None else f"worker {task.worker}"
