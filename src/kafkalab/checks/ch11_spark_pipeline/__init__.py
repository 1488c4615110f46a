"""Chapter 11: a pipeline on Spark, from events to answers."""

NOTEBOOKS = (
    "once", "upsert", "second_version", "back_pressure", "data_loss", "spark_cluster", "schema_change", "lakehouse",
    "stock_prices",
)  # fmt: skip
"""Modules of this package, in the order in which the chapter names their notebooks."""

RUN_AGAIN = "Run the cells from section 1 on again: the first of them empties the topics."
"""What to do after an attempt that left records which nobody can take back."""
