"""Watch a cluster in the background, once for all widgets that show it."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from kafkalab.cluster.view import BrokerState, ClusterView, Fault, GroupView
from kafkalab.widgets.clock import Clock, repeat
from kafkalab.widgets.events import Event, events_between, fault_event, is_settled
from kafkalab.widgets.rates import AT_REST, RateMeter, Rates

__all__ = ["Observer", "Watchable", "Watcher", "with_states"]

# With the time for one look, this stays below half a second, in which the map must update.
_INTERVAL = 0.2
_GROUPS_INTERVAL = 0.5
# After this long without an answer, show the states of the processes without one. A request to a broker that was paused
# at that moment takes seconds.
_SILENCE = 0.3
_PROCESS_INTERVAL = 0.1
# After this long, say that no broker answers.
_LONG_SILENCE = 1.0
# An answer leaves a group out while its coordinator moves, though the group still exists. Coordinators move while a
# broker is down and for a while after a fault. At any other time a missing group was deleted.
_GROUP_MEMORY = 10.0


class WatchableNodes(Protocol):
    """The parts of a cluster's nodes that the widgets use."""

    @property
    def faults(self) -> list[Fault]: ...
    @property
    def backend(self) -> str: ...
    def states(self) -> Mapping[int, BrokerState]: ...
    def on_stop(self, callback: Callable[[], None]) -> None: ...


class Watchable(Protocol):
    """The parts of a cluster that the widgets use."""

    @property
    def nodes(self) -> WatchableNodes: ...
    def describe(self, groups: bool = True, internal: bool = False) -> ClusterView: ...
    def kill(self, broker: int) -> None: ...
    def pause(self, broker: int) -> None: ...
    def resume(self, broker: int) -> None: ...
    def restart(self, broker: int) -> None: ...


class Observer(Protocol):
    """Gets what the watcher sees. The calls come one after another."""

    def seen(self, view: ClusterView, events: Sequence[Event], fresh: bool) -> None:
        """Show a change. `fresh` is False while no broker answers: `view` is then the last known one."""

    def ended(self) -> None:
        """End: the cluster is stopping, and no more calls follow."""


class Watcher:
    """Look at a cluster repeatedly and report each change to observers, until the cluster stops.

    Parameters
    ----------
    cluster
        The cluster.
    clock
        The clock for pauses between looks and for the time without an answer.
    """

    _of: ClassVar[dict[int, Watcher]] = {}
    _of_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, cluster: Watchable, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._view: ClusterView | None = None
        self._fresh = True
        self._answered_at = self._clock.now()
        self._asked = itertools.count(1)
        self._answered = 0  # number of the newest question with an answer
        self._groups: dict[str, tuple[float, GroupView]] = {}
        self._settled: dict[str, GroupView] = {}
        self._meter = RateMeter()
        self._rates = self._reported_rates = AT_REST
        self._reported_faults = frozenset(cluster.nodes.faults)
        self._observers: list[Observer] = []
        self._watches_groups = False
        self._ended = threading.Event()
        self._lock = threading.RLock()

    @classmethod
    def of(cls, cluster: Watchable, clock: Clock | None = None) -> Watcher:
        """Return the existing watcher of a running cluster, or a new one."""
        with cls._of_lock:
            watcher = cls._of.get(id(cluster))
            if watcher is None:
                watcher = cls._of[id(cluster)] = cls(cluster, clock or Clock())
                cluster.nodes.on_stop(watcher.end)
                watcher._repeat(watcher.look, _INTERVAL)
                watcher._repeat(watcher._look_at_processes, _PROCESS_INTERVAL)
            return watcher

    def observe(self, observer: Observer, *, groups: bool) -> None:
        """Report the current state to `observer` at once, and each change from now on."""
        with self._lock:
            self._observers.append(observer)
            if groups and not self._watches_groups:
                self._watches_groups = True
                # Separate, because the answer about a group waits for its coordinator, which may be the broker that was
                # just killed. Partitions must not wait for it.
                self._repeat(self._look_at_groups, _GROUPS_INTERVAL)
            if self._view is not None:
                observer.seen(self._view, (), self._fresh)
            if self._ended.is_set():
                observer.ended()

    @property
    def rates(self) -> Rates:
        """How fast records are written and read. None are known unless an observer wants groups."""
        return self._rates

    def look(self, *, groups: bool = False) -> None:
        """Look once, now. An answer to an older question than the last one answered is dropped."""
        question = next(self._asked)
        try:
            view = self._cluster.describe(groups=groups)
        except Exception:  # whatever a failing cluster raises, the next look may see it again
            return
        at = time.time()
        with self._lock:
            if question < self._answered:
                return
            self._answered = question
            self._answered_at = self._clock.now()
            if groups:
                self._remember(view)
            self._take(view, at, fresh=True)

    def end(self) -> None:
        """Stop watching and notify the observers. Safe to call again."""
        with self._lock:
            if self._ended.is_set():
                return
            self._ended.set()
            with Watcher._of_lock:
                Watcher._of.pop(id(self._cluster), None)
            for observer in self._observers:
                observer.ended()

    def _repeat(self, look: Callable[[], None], interval: float) -> None:
        repeat(look, interval, self._ended, "kafkalab-watcher", self._clock)

    def _look_at_groups(self) -> None:
        try:
            view = self._cluster.describe(groups=True)
        except Exception:  # as in look
            return
        with self._lock:
            self._remember(view)

    def _look_at_processes(self) -> None:
        # While no broker answers (the only one was killed, for example), still show the states of the processes.
        if self._view is None or self._silent_for() < _SILENCE:
            return
        try:
            states = self._cluster.nodes.states()
        except Exception:  # as in look
            return
        at = time.time()
        with self._lock:
            if self._silent_for() >= _SILENCE:
                self._take(with_states(self._view, states), at, fresh=self._silent_for() < _LONG_SILENCE)

    def _silent_for(self) -> float:
        return self._clock.now() - self._answered_at

    def _remember(self, view: ClusterView) -> None:
        now = self._clock.now()
        self._rates = self._meter.note(view, now)
        known = {id_: (at, group) for id_, (at, group) in self._groups.items() if now - at < _GROUP_MEMORY}
        if not self._coordinators_may_move(view):
            known = {}
        self._groups = known | {id_: (now, group) for id_, group in view.groups.items()}

    def _coordinators_may_move(self, view: ClusterView) -> bool:
        return (
            any(broker.state != "up" for broker in view.brokers.values())
            or self._silent_for() >= _SILENCE
            or any(time.time() - fault.at < _GROUP_MEMORY for fault in self._cluster.nodes.faults)
        )

    def _take(self, view: ClusterView, at: float, *, fresh: bool) -> None:
        if self._ended.is_set():
            return
        before, after = self._view, replace(view, groups={id_: group for id_, (_, group) in self._groups.items()})
        faults = tuple(self._cluster.nodes.faults)
        events = [fault_event(fault) for fault in faults if fault not in self._reported_faults]
        self._reported_faults = frozenset(faults)  # not their number, because a failed verb removes its fault again
        if before is not None:
            # Compare groups with their last settled state, not with the middle of a rebalance.
            events += events_between(replace(before, groups=self._settled), after, at, faults)
            self._settled |= {id_: group for id_, group in after.groups.items() if is_settled(group)}
        if (after, fresh, self._rates) == (before, self._fresh, self._reported_rates) and not events:
            return
        self._view, self._fresh, self._reported_rates = after, fresh, self._rates
        for observer in self._observers:
            observer.seen(after, events, fresh)


def with_states(view: ClusterView, states: Mapping[int, BrokerState]) -> ClusterView:
    """Return the last known view with the current states of the nodes' processes."""
    brokers = {}
    for id_, broker in view.brokers.items():
        state = states.get(id_, broker.state)
        if state == "up" and broker.state in ("starting", "dead", "stopped"):
            state = "starting"  # a running process isn't necessarily registered and unfenced yet
        brokers[id_] = replace(broker, state=state, controller=broker.controller and state == "up")
    controller = view.controller if any(broker.controller for broker in brokers.values()) else None
    return replace(view, brokers=brokers, controller=controller)
