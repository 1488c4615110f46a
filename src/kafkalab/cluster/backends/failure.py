"""What a node that ended by itself said about it."""

from __future__ import annotations

import re

from kafkalab.cluster.spec import Node
from kafkalab.errors import BrokerFailed

__all__ = ["broker_failed", "node_name"]

_LINES_SHOWN = 15
_EXCEPTION = re.compile(
    r'^(?:Caused by: |Exception in thread "[^"]*" )?[\w.$]*?(\w+(?:Exception|Error): .+?)(?=\s+at [\w.$]+\(|$)', re.MULTILINE
)
_ERROR_LINE = re.compile(r"^.*?(?:ERROR|FATAL) (.+)$", re.MULTILINE)


def node_name(node: Node) -> str:
    """A node's name in a sentence."""
    return f"broker {node.id}" if node.broker else f"controller {node.id}"


def broker_failed(node: Node, log: str) -> BrokerFailed:
    """The error for a node that ended by itself, with Kafka's own reason and the log's last lines."""
    reasons = _EXCEPTION.findall(log) or _ERROR_LINE.findall(log) or ["it gave no reason"]
    tail = "\n".join(log.splitlines()[-_LINES_SHOWN:])
    return BrokerFailed(f"{node_name(node)} ended by itself: {reasons[0].strip()}\nIts last lines:\n{tail}")
