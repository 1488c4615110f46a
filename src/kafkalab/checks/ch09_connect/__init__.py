"""Chapter 09: Connect: workers, connectors, offsets, dead letters, a table's changes and copies, own transforms, MQTT."""

NOTEBOOKS = ("file_smt", "dead_letters", "cdc", "jdbc", "transform", "mqtt")
"""Modules of this package, in the order in which the chapter names their notebooks."""
