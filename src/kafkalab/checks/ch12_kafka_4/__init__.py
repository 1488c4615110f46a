"""Chapter 12: what's new in Kafka 4, live: groups, controllers, upgrades and the features they enable."""

NOTEBOOKS = ("share_groups", "rebalance", "dynamic_quorum", "rolling_upgrade", "elr", "tiered_storage")
"""Modules of this package, in the order in which the chapter names their notebooks."""
