"""Chapter 01: a single broker, partitions and order, the only broker killed, a topic's files."""
