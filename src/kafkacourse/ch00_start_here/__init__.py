"""Chapter 00: a node started by hand, and the first record."""
