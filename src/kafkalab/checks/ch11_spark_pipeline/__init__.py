"""Chapter 11: a pipeline on Spark, from events to answers."""

NOTEBOOKS = (
    "once", "upsert", "second_version", "back_pressure", "data_loss", "spark_cluster", "schema_change", "lakehouse",
    "stock_prices",
)  # fmt: skip
"""Modules of this package, in the order in which the chapter names their notebooks."""
