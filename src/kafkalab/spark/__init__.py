"""Spark beside the course's clusters. `spark_session` gives you a session that can read and write Kafka."""

from __future__ import annotations

from kafkalab.lazy import on_first_use

_EXPORTS = {
    "SparkCluster": "kafkalab.spark.standalone",
    "begin_anew": "kafkalab.spark.attempts",
    "kafka_options": "kafkalab.spark.session",
    "kill_spark": "kafkalab.spark.session",
    "require_running": "kafkalab.spark.streaming",
    "show_progress": "kafkalab.spark.streaming",
    "spark_session": "kafkalab.spark.session",
}

__all__ = sorted(_EXPORTS)
__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)
