"""Spark beside the course's clusters: one function that gives a session with the Kafka source ready."""

from __future__ import annotations

from kafkalab.spark.session import kafka_options, kill_spark, spark_session
from kafkalab.spark.standalone import SparkCluster
from kafkalab.spark.streaming import show_progress

__all__ = ["SparkCluster", "kafka_options", "kill_spark", "show_progress", "spark_session"]
