"""Chapter 09: Connect, with its workers, connectors, offsets, dead letters, changes of a table and messages from MQTT."""

NOTEBOOKS = ("file_smt", "dead_letters", "cdc", "mqtt")
"""Modules of this package, in the order in which the chapter names their notebooks."""
