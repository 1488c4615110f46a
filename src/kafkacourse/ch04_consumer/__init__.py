"""Chapter 04: groups and batches, delivery semantics, positions, threads, priorities."""
