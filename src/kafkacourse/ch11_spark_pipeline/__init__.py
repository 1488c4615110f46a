"""Chapter 11: a pipeline on Spark, from events to answers."""

RUN_AGAIN = "Run the cells from section 1 on again: the first of them empties the topics."
"""What to do after an attempt that left records which nobody can take back."""
