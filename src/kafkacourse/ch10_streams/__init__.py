"""Chapter 10: streams and tables, and applications that keep answers up to date."""
