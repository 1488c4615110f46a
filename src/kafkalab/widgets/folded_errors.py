"""Show the course's own errors in a cell as one sentence, with the traceback folded below."""

from __future__ import annotations

import re
from html import escape
from types import TracebackType

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from kafkalab.errors import KafkaLabError

__all__ = ["fold_errors"]

_COLOUR_CODES = re.compile(r"\x1b\[[0-9;]*m")
_RED, _PLAIN = "\x1b[31m", "\x1b[0m"


def fold_errors(shell: InteractiveShell) -> None:
    """Show the course's errors in this notebook as one sentence from now on. Other errors look as usual.

    The course's errors are every `KafkaLabError`, and every `ValueError` or `TypeError` that a kafkalab module raised
    itself because of a wrong argument.
    """
    shell.set_custom_exc((KafkaLabError, ValueError, TypeError), _show)


def _is_ours(error: BaseException, traceback: TracebackType | None) -> bool:
    if isinstance(error, KafkaLabError):
        return True
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    module = "" if traceback is None else str(traceback.tb_frame.f_globals.get("__name__", ""))
    return module.split(".")[0] == "kafkalab"


def _show(
    shell: InteractiveShell,
    kind: type[BaseException],
    error: BaseException,
    traceback: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    lines = shell.InteractiveTB.structured_traceback(kind, error, traceback, tb_offset=tb_offset)
    if not _is_ours(error, traceback):
        shell._showtraceback(kind, error, lines)
        return
    sentence = next(iter(str(error).splitlines()), "")
    shell._showtraceback(kind, error, [f"{_RED}{kind.__name__}{_PLAIN}: {sentence}"])  # tells JupyterLab that the cell failed
    whole = _COLOUR_CODES.sub("", "\n".join(lines))
    html = f"<details><summary>Where it happened</summary><pre>{escape(whole)}</pre></details>"
    display({"text/html": html, "text/plain": whole}, raw=True)
