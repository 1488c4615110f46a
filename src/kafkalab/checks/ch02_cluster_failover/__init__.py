"""Chapter 02: three brokers, groups, replication, failover, the quorum, racks and the value of an acknowledgement."""

NOTEBOOKS = ("failsafe", "atu", "customers", "storage", "rack_placement", "quorum", "min_insync", "isolated")
"""Modules of this package, in the order in which the chapter names their notebooks."""
