"""What a learner's cluster must show, lab by lab, with a helpful sentence when it does not."""

from kafkalab.checks.lab import Lab, Requirement, Unmet, check, find_lab, hint, labs
from kafkalab.checks.sight import Sight

__all__ = ["Lab", "Requirement", "Sight", "Unmet", "check", "find_lab", "hint", "labs"]
