"""Chapter 06: a registry's REST calls, Avro, Protobuf, JSON Schema, and how schemas change."""
