"""What a learner's cluster must show, lab by lab, with a helpful sentence if it doesn't."""

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import (
    Lab,
    Notebook,
    Report,
    Requirement,
    check,
    evaluate,
    find_lab,
    find_notebook,
    hint,
    labs,
    notebooks,
    stems,
)

__all__ = [
    "CheckContext",
    "Lab",
    "Notebook",
    "Report",
    "Requirement",
    "Unmet",
    "check",
    "evaluate",
    "find_lab",
    "find_notebook",
    "hint",
    "labs",
    "notebooks",
    "stems",
]
