"""Chapter 05: segments, retention, compaction, the high watermark, transactions, quotas and unclean elections."""
