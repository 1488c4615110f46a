"""Chapter 11: a pipeline on Spark, and its dashboard."""
