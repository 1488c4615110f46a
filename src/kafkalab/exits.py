"""Exit statuses in words."""

from __future__ import annotations

import signal

from kafkalab.limits import hint_at_kill

__all__ = ["CRASHES", "exit_status", "signal_of"]

CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")


def exit_status(status: int | None) -> str:
    """Return an exit status in words: ``exit code 1``, or ``ended by SIGTERM (15): somebody told it to end``."""
    sign = signal_of(status)
    if sign is None:
        return "exit status unknown" if status is None else f"exit code {status}"
    return f"ended by {sign.name} ({sign.value}): {_hint(sign)}"


def _hint(sign: signal.Signals) -> str:
    if sign == signal.SIGKILL:
        return hint_at_kill()
    return "it crashed" if sign.name in CRASHES else "somebody told it to end"


def signal_of(status: int | None) -> signal.Signals | None:
    """Return the signal that ended a process. JVMs, shells and containers report it as 128 plus the signal's number."""
    number = 0 if status is None else -status if status < 0 else status - 128
    try:
        return signal.Signals(number)
    except ValueError:
        return None
