"""What the panel says about consumer groups and share groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Protocol, TypeVar

from kafkalab.cluster.view import ClusterView, GroupView, ShareGroupView
from kafkalab.widgets.events import Event
from kafkalab.widgets.prose import counted
from kafkalab.widgets.tab_drawing import heading, muted, state, table
from kafkalab.widgets.tabs import Page, Tabs

__all__ = ["GroupsOf", "groups_page"]


T = TypeVar("T")


class Named(Protocol):
    """The part of a cluster that its groups' page uses."""

    name: str


class GroupsOf:
    """What a cluster's watcher knows about its groups. They have a place in the page while there are any.

    Parameters
    ----------
    cluster
        The cluster.
    tabs, page
        Where its groups are shown.
    """

    def __init__(self, cluster: Named, tabs: Tabs, page: Page) -> None:
        self.cluster = cluster
        self.groups: list[GroupView] = []
        self.share_groups: list[ShareGroupView] = []
        self._tabs = tabs
        self._page = page

    @property
    def is_alone(self) -> bool:
        """Whether the page shows no other cluster's groups."""
        return len(self._page.things) == 1

    def seen(self, view: ClusterView, events: Sequence[Event], fresh: bool) -> None:
        """Take in a change. Part of the protocol with the watcher."""
        self._take(_in_order(view.groups), _in_order(view.share_groups))

    def ended(self) -> None:
        """Leave the page. Part of the protocol with the watcher."""
        self._take([], [])

    @property
    def _has_any(self) -> bool:
        return bool(self.groups or self.share_groups)

    def _take(self, groups: list[GroupView], share_groups: list[ShareGroupView]) -> None:
        had_any = self._has_any
        self.groups, self.share_groups = groups, share_groups
        if self._has_any and not had_any:
            self._tabs.add(self._page, self)
        elif had_any and not self._has_any:
            self._tabs.remove(self._page, self)


def _in_order(groups: Mapping[str, T]) -> list[T]:
    return [groups[id_] for id_ in sorted(groups)]


def groups_page(of: GroupsOf) -> str:
    """Return the groups of a cluster, with the lag of each partition. Share groups come last."""
    place = "" if of.is_alone else muted(f"in {of.cluster.name}")
    return "".join([*(_group(group, place) for group in of.groups), *(_share_group(group, place) for group in of.share_groups)])


def _group(group: GroupView, place: str) -> str:
    how = ", ".join(filter(None, (f"{group.protocol} protocol", group.assignor)))
    members, lag = counted(len(group.members), "member"), _lag(sum(group.lag.values()), "lag ")
    head = heading(group.id, place, state(group.state), members, lag, muted(how))
    owners = {owned: member.client_id for member in group.members for owned in member.partitions}
    rows = [
        (escape(topic), str(partition), _lag_of(group, topic, partition), _owner(owners.get((topic, partition))))
        for topic, partition in sorted(owners.keys() | group.lag.keys())
    ]
    idle = sorted(member.client_id for member in group.members if not member.partitions)
    without = f"Without partitions: {', '.join(idle)}" if idle else ""
    return head + (table(("topic", "partition", "lag", "member"), rows) if rows else "") + muted(without)


def _share_group(group: ShareGroupView, place: str) -> str:
    members, lag = counted(len(group.members), "member"), _lag(sum(group.lag.values()), "lag ")
    head = heading(group.id, place, state(group.state), members, lag, muted("share group"))
    places = sorted({owned for member in group.members for owned in member.partitions} | group.lag.keys())
    rows = []
    for topic, partition in places:
        readers = sorted(member.client_id for member in group.members if (topic, partition) in member.partitions)
        rows.append((escape(topic), str(partition), _lag_of(group, topic, partition), _owner(", ".join(readers) or None)))
    return head + (table(("topic", "partition", "lag", "members"), rows) if rows else "")


def _owner(member: str | None) -> str:
    return muted("nobody") if member is None else escape(member)


def _lag_of(group: GroupView | ShareGroupView, topic: str, partition: int) -> str:
    lag = group.lag.get((topic, partition))
    return muted("unknown") if lag is None else _lag(lag)


def _lag(lag: int, name: str = "") -> str:
    return f'<span class="{"behind" if lag else "muted"}">{name}{lag:,}</span>'
