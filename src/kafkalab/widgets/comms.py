"""Buttons that act while a cell runs."""

from __future__ import annotations

import sys

__all__ = ["act_while_cells_run"]


def act_while_cells_run() -> None:
    """Let the widgets made from now on handle clicks while a cell runs. Does nothing outside a Jupyter kernel.

    JupyterLab sends a click to a subshell, so that it needn't wait for the running cell. ipykernel from 7.4 on passes it
    to the shell that last sent something on the widget's comm instead. If a cell made or changed the widget, that's the
    main shell, and the click would wait until the cell ends.
    """
    if "ipykernel.ipkernel" not in sys.modules:
        return
    import comm
    from ipykernel.comm.comm import BaseComm

    class Comm(BaseComm):
        # Without a value, a message stays in the subshell that it was sent to. Replies to a request with an id still go
        # to the shell that sent the request.
        _reply_subshell_id = property(fset=lambda self, subshell_id: None)

    comm.create_comm = Comm
