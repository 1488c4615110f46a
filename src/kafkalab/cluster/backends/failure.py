"""What a node that ended by itself said about it."""

from __future__ import annotations

import re

from kafkalab.cluster.spec import Node
from kafkalab.errors import BrokerFailed

__all__ = ["broker_failed", "log_tail", "node_name", "reason_in"]

_LINES_SHOWN = 15
_EXCEPTION = re.compile(
    r'^(?:Caused by: |Exception in thread "[^"]*" )?[\w.$]*?(\w+(?:Exception|Error): .+?)(?=\s+at [\w.$]+\(|$)', re.MULTILINE
)
# What a JVM says that cannot start at all: it knows no such option, or cannot have so much memory.
_REFUSAL = re.compile(r"^(?:Error: )?((?:Unrecognized|Invalid|Could not|Too small|Conflicting|Improperly) .+)$", re.MULTILINE)
_ERROR_LINE = re.compile(r"^.*?(?:ERROR|FATAL) (.+)$", re.MULTILINE)


def node_name(node: Node) -> str:
    """A node's name in a sentence."""
    return f"broker {node.id}" if node.broker else f"controller {node.id}"


def broker_failed(node: Node, log: str) -> BrokerFailed:
    """The error for a node that ended by itself, with Kafka's own reason and the log's last lines."""
    return BrokerFailed(f"{node_name(node)} ended by itself: {reason_in(log)}\nIts last lines:\n{log_tail(log)}")


def reason_in(log: str) -> str:
    """The first exception that a log tells of, else what the JVM refused, else the log's first error."""
    reasons: list[str] = _EXCEPTION.findall(log) or _REFUSAL.findall(log) or _ERROR_LINE.findall(log) or ["it gave no reason"]
    return reasons[0].strip()


def log_tail(log: str) -> str:
    """A log's last lines, as many as an error message shows."""
    return "\n".join(log.splitlines()[-_LINES_SHOWN:])
