"""Chapter 09: Connect, with its workers, connectors, offsets and dead letters."""

NOTEBOOKS = ("file_smt", "dead_letters")
"""Modules of this package, in the order in which the chapter names their notebooks."""
