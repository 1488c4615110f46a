"""The machinery of labs and checks: requirements that are checked in the cluster, and hints that open one at a time.

A course has a package per chapter with a module per lab: ``ch02_cluster_failover/failsafe.py`` belongs to the notebook
``02_failsafe``. The module's name `lab` is its `Lab`, which makes the checks. A decorator on each probe registers its
requirement::

    lab = Lab("02_failsafe")

    check = lab.add_check("02_describe", "Who leads what", hints=("…", "…"))

    @check.requires("The table shows every partition's leader")
    def leaders_are_right(ctx: CheckContext) -> None:
        if …:
            raise Unmet("…")

The other modules of this package are probes, or parts of them, that several labs share.
"""

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab, checks, find_check, find_lab, labs
from kafkalab.checks.learner import check, hint
from kafkalab.checks.requirements import Check, Probe, Report, Requirement, evaluate

__all__ = [
    "Check",
    "CheckContext",
    "Lab",
    "Probe",
    "Report",
    "Requirement",
    "Unmet",
    "check",
    "checks",
    "evaluate",
    "find_check",
    "find_lab",
    "hint",
    "labs",
]
