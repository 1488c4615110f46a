"""Let verbs act on nodes: check that a verb suits a node's state, and record the fault."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from kafkalab.cluster.backends.control import Control, require_breakable
from kafkalab.cluster.lifecycle import START_TIMEOUT, Lifecycle
from kafkalab.cluster.observer import Observer
from kafkalab.cluster.spec import FIRST_CONTROLLER_ID, Node
from kafkalab.cluster.view import BrokerState, Fault
from kafkalab.errors import BrokerNotRunning, WaitTimeout

__all__ = ["Faults"]


class Faults:
    """The faults of one cluster, whose `Lifecycle` keeps the list of them."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    @contextlib.contextmanager
    def on(self, broker: int, verb: str, states: tuple[BrokerState, ...]) -> Iterator[tuple[Control, Observer]]:
        """Yield what a verb works with.

        Raises
        ------
        ClusterNotRunning, FaultsUnsupported, UnknownBroker
        BrokerNotRunning
            If the node isn't in one of the states that the verb suits.
        """
        access, observer = self._lifecycle.running()
        control = require_breakable(access)
        control.require_node(broker)
        with self._lifecycle.unless_stopped(control, f"the {verb} of broker {broker} was under way"):
            state = control.state(broker)
            if state not in states:
                raise BrokerNotRunning(f"cannot {verb} broker {broker}: it is {state}")
            with self._recorded(verb, broker):
                yield control, observer

    def add(self, make: Callable[[int], Node], is_like: Callable[[Node], bool]) -> int:
        """Start one more node, with the next id after the nodes like it. When it returns, the node is a member."""
        access, observer = self._lifecycle.running()
        control = require_breakable(access)
        with self._lifecycle.unless_stopped(control, "a node was added"):
            with self._lifecycle.lock:  # else two threads could give two nodes the same id
                like = [i for i, node in control.nodes().items() if is_like(node)]
                added = max(like, default=FIRST_CONTROLLER_ID - 1) + 1  # there is always a broker
                with self._recorded("add", added):
                    control.add(make(added))
            observer.wait_until_back(added, START_TIMEOUT)
        return added

    @contextlib.contextmanager
    def _recorded(self, verb: str, broker: int) -> Iterator[None]:
        """Record a fault when it begins, because its effects show before the verb returns. Remove one that fails."""
        fault = Fault(time.time(), verb, broker)
        self._lifecycle.faults.append(fault)
        try:
            yield
        except WaitTimeout:  # the node got the signal, and may still follow it
            raise
        except Exception:
            with contextlib.suppress(ValueError):  # another thread restarted the cluster, which cleared the list
                self._lifecycle.faults.remove(fault)
            raise
