"""What the panel says about a schema registry."""

from __future__ import annotations

from html import escape
from typing import Protocol

from kafkalab.services.registry_view import RegistryView, SubjectView
from kafkalab.widgets.prose import counted
from kafkalab.widgets.tab_drawing import heading, muted, table

__all__ = ["registry_page"]


class Registry(Protocol):
    """The parts of a schema registry that its page uses."""

    @property
    def product(self) -> str: ...
    def describe(self) -> RegistryView: ...


def registry_page(registry: Registry) -> str:
    """Return the subjects with their versions and compatibility levels."""
    view = registry.describe()
    head = heading(registry.product, muted(counted(len(view.subjects), "subject")), muted(f"by default {view.compatibility}"))
    if not view.subjects:
        return head
    return head + table(
        ("subject", "versions", "compatibility"), [_row(subject, view.compatibility) for subject in view.subjects]
    )


def _row(subject: SubjectView, default: str) -> tuple[str, str, str]:
    level = f"<b>{escape(subject.compatibility)}</b>" if subject.compatibility else muted(default)
    return escape(subject.name), ", ".join(map(str, subject.versions)), level
