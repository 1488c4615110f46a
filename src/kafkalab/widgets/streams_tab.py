"""What the panel says about applications of Kafka Streams."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Protocol

from kafkalab.streams.description import parse
from kafkalab.streams.view import StreamsView, ThreadView
from kafkalab.widgets.tab_drawing import heading, muted, state, table, trouble

__all__ = ["streams_page"]


class App(Protocol):
    """The part of an application that its page uses."""

    def view(self) -> StreamsView: ...


def streams_page(app: App) -> str:
    """Return an instance's state, its threads with their tasks, and its stores."""
    view = app.view()
    word, _, reason = view.state.partition(": ")
    head = heading(view.name, state(word), muted("" if view.application == view.name else f"application {view.application}"))
    tasks = [row for thread in view.threads for row in _tasks(thread, view.name)]
    rows = table(("thread", "state", "task", "partitions"), tasks) if tasks else ""
    return head + (trouble(reason) if reason else "") + rows + _stores(view)


def _tasks(thread: ThreadView, app: str) -> Iterator[tuple[str, str, str, str]]:
    first = (escape(thread.name.removeprefix(f"{app}-")), state(thread.state))
    tasks = [(task, partitions, "") for task, partitions in thread.active.items()]
    tasks += [(task, partitions, " standby") for task, partitions in thread.standby.items()]
    for task, partitions, kind in tasks or [("", (), "")]:
        yield (*first, f"{escape(task)}{muted(kind)}", "<br>".join(map(escape, partitions)) or muted("none"))
        first = ("", "")


def _stores(view: StreamsView) -> str:
    stores = sorted({store for part in parse(view.description) for node in part.nodes for store in node.stores})
    rows = [(escape(store), f"{view.restored.get(store, 0):,}") for store in stores]
    return table(("store", "records restored"), rows) if rows else ""
