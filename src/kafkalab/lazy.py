"""Names of a package that are loaded on first use (PEP 562).

The processes that kafkalab starts import its packages too, and must be quick: the relay of a cluster needs none of what
`kafkalab.cluster` offers, and loading it all takes a third of a second.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["on_first_use"]


def on_first_use(package: str, exports: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a package.

    Parameters
    ----------
    package
        Its name.
    exports
        Name → module that defines it.
    """

    def get(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(exports[name]), name)

    return get, lambda: sorted(exports)
