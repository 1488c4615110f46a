"""What voters of a metadata quorum have told its active controller."""

from __future__ import annotations

from kafkalab.cluster import Cluster

__all__ = ["all_voters_heard"]


def all_voters_heard(cluster: Cluster, controller: int | None) -> bool:
    """Return whether every voter has told this active controller that it supports level 1 of ``kraft.version``.

    Voters report within a few seconds of an election. Until then the controller refuses to raise the level. No request
    asks for what it has heard, but its log says it (``UpdateVoterHandler``).
    """
    if controller is None:
        return False
    log = cluster.logs(controller).rpartition("Completed transition to Leader")[2]
    reports = [line for line in log.splitlines() if "Updated in-memory voters" in line]
    return bool(reports) and "max_version:0" not in reports[-1].rpartition(" to ")[2]
