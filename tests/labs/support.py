"""What the tests of all labs use."""

from __future__ import annotations

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from kafkalab import Cluster, check
from kafkalab.lifeline import marked_processes

__all__ = ["Verdict", "empty"]


class Verdict:
    """Runs checks and looks at what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, lab: str, cluster: object, **answers: object) -> tuple[bool, str]:
        """Whether the check passed, and what it printed."""
        self._capsys.readouterr()
        passed = check(lab, cluster, **answers)  # type: ignore[arg-type] - a wrong one, too
        return passed, self._capsys.readouterr().out

    def passes(self, lab: str, cluster: Cluster, **answers: object) -> None:
        """The check passes."""
        passed, printed = self(lab, cluster, **answers)
        assert passed, printed

    def says(self, sentence: str, lab: str, cluster: Cluster, **answers: object) -> None:
        """The check does not pass, and says this."""
        passed, printed = self(lab, cluster, **answers)
        assert not passed
        assert sentence in printed, printed


def empty(cluster: Cluster) -> None:
    """Delete all topics and groups, for the next test. A test that failed may have left members: they are ended."""
    for process in marked_processes(cluster.run.id):
        try:
            if "kafkalab.workers" in " ".join(process.cmdline()):
                process.kill()
        except psutil.NoSuchProcess:
            pass
    view = cluster.wait_for(lambda v: all(not g.members for g in v.groups.values()) and v, "no members", groups=True)
    admin = AdminClient(cluster.client_config())
    if view.groups:
        for deleted in admin.delete_consumer_groups(list(view.groups)).values():
            deleted.result()
    if view.topics:
        for deleted in admin.delete_topics(list(view.topics)).values():
            deleted.result()
    cluster.wait_for(lambda v: not v.topics and not v.groups, "the topics and groups to be gone", groups=True)
