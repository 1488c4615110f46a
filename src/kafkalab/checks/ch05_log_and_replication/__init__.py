"""Chapter 05: segments, retention, compaction, the high watermark, transactions, quotas and unclean elections."""

<<<<<<< HEAD
NOTEBOOKS = ("compaction", "retention", "high_watermark")
=======
NOTEBOOKS = ("compaction", "transactions", "idempotence", "quotas", "unclean")
>>>>>>> ch05b
"""Modules of this package, in the order in which the chapter names their notebooks."""
