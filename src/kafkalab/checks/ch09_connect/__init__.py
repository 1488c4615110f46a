"""Chapter 09: Connect: workers, connectors, offsets, dead letters, a table's changes and its copies, messages from MQTT."""

NOTEBOOKS = ("file_smt", "dead_letters", "cdc", "jdbc", "mqtt")
"""Modules of this package, in the order in which the chapter names their notebooks."""
