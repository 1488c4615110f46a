"""Questions about the topic `reports`, where a lab's own workers note what they did."""

from __future__ import annotations

import json
from typing import Any

from kafkalab.checks.context import CheckContext, text_of
from kafkalab.checks.topics import existing

__all__ = ["reports_of"]


def reports_of(ctx: CheckContext, group: str) -> list[dict[str, Any]]:
    """Return the reports of a group's workers, in order. Leave out other records."""
    existing(ctx, "reports")
    found = []
    for value in map(text_of, ctx.records("reports")):
        try:
            facts = json.loads(value)
        except ValueError:
            continue
        if isinstance(facts, dict) and facts.get("group") == group:
            found.append(facts)
    return found
