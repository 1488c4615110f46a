"""Find the reason in the log of a node that ended by itself."""

from __future__ import annotations

import re

from kafkalab.cluster.spec import Node
from kafkalab.errors import BrokerFailed

__all__ = ["broker_failed", "log_tail", "node_name", "reason_in"]

_LINES_SHOWN = 15
_EXCEPTION = re.compile(
    r'^(?:Caused by: |Exception in thread "[^"]*" )?[\w.$]*?(\w+(?:Exception|Error): .+?)(?=\s+at [\w.$]+\(|$)', re.MULTILINE
)
# Messages of a JVM that can't start at all: it doesn't know an option, or can't get that much memory.
_REFUSAL = re.compile(r"^(?:Error: )?((?:Unrecognized|Invalid|Could not|Too small|Conflicting|Improperly) .+)$", re.MULTILINE)
_ERROR_LINE = re.compile(r"^.*?(?:ERROR|FATAL) (.+)$", re.MULTILINE)


def node_name(node: Node) -> str:
    """Return a node's name for use in a sentence."""
    return f"broker {node.id}" if node.broker else f"controller {node.id}"


def broker_failed(node: Node, log: str) -> BrokerFailed:
    """Return the error for a node that ended by itself, with Kafka's own reason and the log's last lines."""
    return BrokerFailed(f"{node_name(node)} ended by itself: {reason_in(log)}\nIts last lines:\n{log_tail(log)}")


def reason_in(log: str) -> str:
    """Return the first exception in a log, else what the JVM rejected, else the first error in the log."""
    reasons: list[str] = _EXCEPTION.findall(log) or _REFUSAL.findall(log) or _ERROR_LINE.findall(log) or ["it gave no reason"]
    return reasons[0].strip()


def log_tail(log: str) -> str:
    """Return a log's last lines, as many as an error message shows."""
    return "\n".join(log.splitlines()[-_LINES_SHOWN:])
