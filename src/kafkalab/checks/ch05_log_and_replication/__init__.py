"""Chapter 05: segments, retention, compaction, the high watermark, transactions, quotas and unclean elections."""

NOTEBOOKS = ("compaction", "retention", "high_watermark", "transactions", "idempotence", "quotas", "unclean")
"""Modules of this package, in the order in which the chapter names their notebooks."""
