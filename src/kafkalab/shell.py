"""The IPython of the notebook that this process runs, if it runs one."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["notebook_shell"]


def notebook_shell() -> Any:
    """Return the notebook's IPython, or None elsewhere. Never imports IPython, which takes long."""
    if "IPython" not in sys.modules:
        return None
    return sys.modules["IPython"].get_ipython()
