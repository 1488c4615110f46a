"""Reasons in a Java stack trace."""

from __future__ import annotations

import re

__all__ = ["causes", "innermost_cause", "reason"]

_CAUSE = re.compile(r"^(?:Caused by: )?[\w.$]*?(\w+(?:Exception|Error)(?:: .+)?)$", re.MULTILINE)
_NO_REASON = "it gave no reason"

# What Connect wraps around every failure of a task.
_WRAPPERS = ("Exiting WorkerSinkTask due to unrecoverable exception", "Tolerance exceeded in error handler")


def causes(trace: str) -> list[str]:
    """Return the exceptions in a trace without their packages, the outermost first."""
    return _CAUSE.findall(trace)


def innermost_cause(trace: str) -> str:
    """Return the exception that everything began with."""
    exceptions = causes(trace)
    return exceptions[-1] if exceptions else trace.strip() or _NO_REASON


def reason(trace: str) -> str:
    """Return why a connector or a task failed: its exceptions, without those that Connect wraps around each."""
    exceptions = [cause for cause in causes(trace) if not any(wrapper in cause for wrapper in _WRAPPERS)]
    return "; caused by ".join(exceptions) or innermost_cause(trace)
