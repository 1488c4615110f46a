"""Chapter 10: streams and tables, and applications that keep answers up to date."""

NOTEBOOKS = ("dangerous_driving", "duality", "windows", "topology", "standby", "exactly_once", "sql", "sql_windows")
"""Modules of this package, in the order in which the chapter names their notebooks."""
