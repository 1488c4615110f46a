"""Chapter 08: clusters that mirror each other."""

NOTEBOOKS = ("three_clusters", "policies", "recovery")
"""Modules of this package, in the order in which the chapter names their notebooks."""
