"""Chapter 01: a single broker, partitions and order, the only broker killed, a topic's files."""

NOTEBOOKS = ("my_topic", "order", "one_broker", "log_files")
"""Modules of this package, in the order in which the chapter names their notebooks."""
