"""Chapter 08: clusters that are mirrored into each other."""

NOTEBOOKS = ("three_clusters", "policies", "recovery")
"""Modules of this package, in the order in which the chapter names their notebooks."""
