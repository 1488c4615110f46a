"""Clusters: one interface, three back ends."""

from kafkalab.cluster.cluster import Cluster
from kafkalab.cluster.properties import LESSON_SETTINGS
from kafkalab.cluster.spec import ClusterSpec, Listener
from kafkalab.cluster.view import BrokerView, ClusterView, Fault, GroupView, MemberView, PartitionView

__all__ = [
    "LESSON_SETTINGS",
    "BrokerView",
    "Cluster",
    "ClusterSpec",
    "ClusterView",
    "Fault",
    "GroupView",
    "Listener",
    "MemberView",
    "PartitionView",
]
