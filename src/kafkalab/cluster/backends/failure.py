"""Say why a process ended by itself: its exit status, and the reason in its log."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from kafkalab.cluster.spec import Node
from kafkalab.environment import JAVA_OPTIONS
from kafkalab.errors import BrokerFailed
from kafkalab.exits import CRASHES, exit_status, signal_of
from kafkalab.limits import hint_at_kill

__all__ = ["broker_failed", "ended", "log_tail", "reason_in"]

_LINES_SHOWN = 15
_NO_REASON = "it gave no reason"

# A line that begins a log event, with its level if it has one. All other lines belong to the event before.
_EVENT = re.compile(r"^(?:\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[main\] ).*?\b(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_EXCEPTION = re.compile(
    r'^(?P<cause>Caused by: )?(?:Exception in thread "[^"]*" )?[\w.$]*?(?P<said>\w+(?:Exception|Error)(?:: .+?)?)'
    r"(?=\s+at [\w.$/]+\(|\s*$)"
)
# From here on a program ends in order. Whatever fails then is no reason for its end.
_ENDS = re.compile(r"shutting down|SHUTTING_DOWN", re.IGNORECASE)
# Messages of a JVM that can't start, or can't go on: it doesn't know an option, can't get that much memory, or crashed.
_REFUSAL = re.compile(
    r"^(?:Error: |# *|\S+: )?("
    r"(?:Unrecognized|Invalid|Could not|Too small|Conflicting|Improperly|Error opening|Failed to mark|There is insufficient) .+"
    r"|Terminating due to .+|SIG[A-Z]+ \(0x.+|error while loading shared libraries: .+)$",
    re.MULTILINE,
)
_NO_VM = re.compile(r"^Error occurred during initialization of VM\n(.+)$", re.MULTILINE)
_ERROR_LINE = re.compile(r"^.*?(?:ERROR|FATAL|SEVERE|PANIC):? +(.+)$", re.MULTILINE)


class _Trace(NamedTuple):
    """An exception in a log, with the last of its causes."""

    severe: bool
    said: str
    cause: str

    def __str__(self) -> str:
        return self.said if self.cause in self.said else f"{self.said}; caused by {self.cause}"


def broker_failed(node: Node, logs: Mapping[str, str], status: int | None) -> BrokerFailed:
    """Return the error for a node that ended by itself, with Kafka's own reason and the log's last lines.

    The logs and the exit status are as for `ended`.
    """
    return BrokerFailed(f"{ended(node.name, status, logs)}\nIts last lines:\n{log_tail(''.join(logs.values()))}")


def ended(who: str, status: int | None, logs: Mapping[str, str]) -> str:
    """Return a sentence about a process that nobody here ended: by which signal, or for which reason.

    Parameters
    ----------
    who
        The process, for use in a sentence.
    status
        Its exit status as `subprocess.Popen.returncode` has it, or a container's; None if it isn't known.
    logs
        What it logged since its start, by the name of the file.
    """
    if status is None and not _stated(logs) and not any(map(_ENDS.search, logs.values())):
        return f"{who} ended without a word: {hint_at_kill()}"
    why = reason_in(logs)
    if sign := signal_of(status):
        crash = sign.name in CRASHES and why != _NO_REASON  # which a JVM describes in its log
        return f"{who} was {exit_status(status)}" + (f"; {why}" if crash else "")
    if why == _NO_REASON and status is not None:
        why = f"{why} ({exit_status(status)})"
    if any("Picked up _JAVA_OPTIONS" in log for log in logs.values()):
        why = f"{why}; {JAVA_OPTIONS} is {os.environ.get(JAVA_OPTIONS)}"
    return f"{who} ended by itself: {why}"


def reason_in(logs: Mapping[str, str]) -> str:
    """Return why a program ended, by its logs: the last exception and its last cause, or what the JVM rejected, or an error.

    Errors count more than warnings. What came after the program had begun to shut down counts only if nothing failed before.

    The name of the log's file ends the reason.
    """
    others = [f"{trace} ({name})" for name, log in logs.items() for trace in _traces(log)]
    return _stated(logs) or (others[-1] if others else _NO_REASON)


def _stated(logs: Mapping[str, str]) -> str:
    """Return the last thing that a program logged as an error, or that the JVM rejected; empty if there is none."""
    until_the_end = {name: _ENDS.split(log, maxsplit=1)[0] for name, log in logs.items()}
    for part in (until_the_end, logs):
        for find in (_severe, _rejected, _error_line):
            reasons = [f"{reason} ({name})" for name, log in part.items() if (reason := find(log))]
            if reasons:
                return reasons[-1]
    return ""


def _severe(log: str) -> str:
    """Return the last exception that no event of a lower level than ERROR mentions."""
    return str(next((trace for trace in reversed(_traces(log)) if trace.severe), ""))


def _rejected(log: str) -> str:
    """Return the first thing that the JVM complained about: what follows is that it therefore couldn't start."""
    refusals: list[str] = _REFUSAL.findall(log) or _NO_VM.findall(log)
    return refusals[0].strip() if refusals else ""


def _error_line(log: str) -> str:
    errors: list[str] = _ERROR_LINE.findall(log)
    return errors[-1].strip() if errors else ""


def _traces(log: str) -> list[_Trace]:
    traces: list[_Trace] = []
    level = ""
    for line in log.splitlines():
        if event := _EVENT.match(line):
            level = event["level"]
        elif exception := _EXCEPTION.match(line):
            said = exception["said"].strip()
            if exception["cause"] and traces:
                traces[-1] = traces[-1]._replace(cause=said)
            else:
                traces.append(_Trace(level not in ("TRACE", "DEBUG", "INFO", "WARN"), said, said))
    return traces


def log_tail(log: str) -> str:
    """Return a log's last lines, as many as an error message shows."""
    return "\n".join(log.splitlines()[-_LINES_SHOWN:])
