"""Chapter 03: the producer of the stock-price application, and its guarantees."""

NOTEBOOKS = (
    "sync_async",
    "stock_senders",
    "partitioner",
    "durability",
    "ledger",
    "retries",
    "batching",
    "interceptors_metrics",
)
"""Modules of this package, in the order in which the chapter names their notebooks."""
