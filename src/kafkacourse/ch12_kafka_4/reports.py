"""Questions about the topic `reports`, where a lab's own workers note what they did."""

from __future__ import annotations

from typing import Any

from kafkalab.checks.context import CheckContext
from kafkalab.checks.records import json_object
from kafkalab.checks.topics import existing

__all__ = ["reports_of"]


def reports_of(ctx: CheckContext, group: str) -> list[dict[str, Any]]:
    """Return the reports of a group's workers, in order. Leave out other records."""
    existing(ctx, "reports")
    reports = map(json_object, ctx.values("reports"))
    return [report for report in reports if report and report.get("group") == group]
