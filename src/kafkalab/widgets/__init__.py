"""What a learner sees and clicks: cluster map, log microscope, diagrams over time, terminals, predictions, quizzes."""

from __future__ import annotations

from kafkalab.lazy import on_first_use
from kafkalab.widgets.comms import act_while_cells_run
from kafkalab.widgets.time_spent import count_time
from kafkalab.widgets.tool_tables import show_tables

_EXPORTS = {
    "ClusterMap": "kafkalab.widgets.cluster_map",
    "ConnectStatus": "kafkalab.widgets.connect_status",
    "LabCard": "kafkalab.widgets.lab_card",
    "LogMicroscope": "kafkalab.widgets.log_microscope",
    "Predict": "kafkalab.widgets.predict",
    "Progress": "kafkalab.widgets.progress_table",
    "Quiz": "kafkalab.widgets.quiz",
    "SpaceTime": "kafkalab.widgets.space_time",
    "SparkMap": "kafkalab.widgets.spark_map",
    "Terminals": "kafkalab.widgets.terminals",
    "Timeline": "kafkalab.widgets.timeline",
    "TopologyMap": "kafkalab.widgets.topology_map",
}

__all__ = sorted(_EXPORTS)
__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)

act_while_cells_run()
count_time()
show_tables()
