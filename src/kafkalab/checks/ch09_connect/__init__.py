"""Chapter 09: Connect, with its workers, connectors, offsets, dead letters and changes of a table."""

NOTEBOOKS = ("file_smt", "dead_letters", "cdc")
"""Modules of this package, in the order in which the chapter names their notebooks."""
