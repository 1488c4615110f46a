"""Chapter 12: what's new in Kafka 4, live: share groups, rebalances, rolling upgrades and what they switch on."""

NOTEBOOKS = ("share_groups", "rebalance", "rolling_upgrade", "elr")
"""Modules of this package, in the order in which the chapter names their notebooks."""
