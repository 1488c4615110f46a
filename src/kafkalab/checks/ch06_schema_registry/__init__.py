"""Chapter 06: a registry's REST calls, Avro, Protobuf, JSON Schema, and how schemas change."""

NOTEBOOKS = ("rest", "avro", "protobuf", "json")
"""Modules of this package, in the order in which the chapter names their notebooks."""
