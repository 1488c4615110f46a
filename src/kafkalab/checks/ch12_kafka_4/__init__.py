"""Chapter 12: what's new in Kafka 4, live: share groups, rolling upgrades and what they switch on."""

NOTEBOOKS = ("share_groups", "rolling_upgrade", "elr", "tiered_storage")
"""Modules of this package, in the order in which the chapter names their notebooks."""
