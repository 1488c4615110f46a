"""Chapter 09: Connect: workers, connectors, offsets, dead letters, a table's changes and copies, own transforms, MQTT."""
