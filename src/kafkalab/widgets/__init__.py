"""What a learner sees and presses in a notebook: cluster map, timeline, terminals, quiz, progress."""

from kafkalab.widgets.cluster_map import ClusterMap
from kafkalab.widgets.progress_table import Progress
from kafkalab.widgets.quiz import Quiz
from kafkalab.widgets.terminals import Terminals
from kafkalab.widgets.timeline import Timeline

__all__ = ["ClusterMap", "Progress", "Quiz", "Terminals", "Timeline"]
