"""Chapter 00: a node started by hand, and the first record."""

NOTEBOOKS = ("environment", "first_record")
"""Modules of this package, in the order in which the chapter names their notebooks."""
