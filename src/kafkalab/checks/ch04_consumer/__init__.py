"""Chapter 04: groups and batches, delivery semantics, positions, threads, priorities."""

NOTEBOOKS = ("groups", "delivery", "positions", "threads", "priority")
"""Modules of this package, in the order in which the chapter names their notebooks."""
