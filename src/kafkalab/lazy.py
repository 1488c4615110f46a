"""Load the names of a package on first use (PEP 562).

The processes that kafkalab starts import its packages, too, and must be quick. A cluster's relay needs nothing that
`kafkalab.cluster` exports, and loading all of it takes a third of a second.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from kafkalab.shadows import require_unshadowed

__all__ = ["on_first_use"]


def on_first_use(package: str, exports: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package. `exports` maps each name to the module that defines it."""

    def get(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        require_unshadowed()  # or what is imported now would import the learner's files by mistake
        return getattr(importlib.import_module(exports[name]), name)

    return get, lambda: sorted(exports)
