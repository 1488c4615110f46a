"""Start Spark's Python workers, with the folder of the session's process last on the import path.

By itself Python would look there first: a learner's ``queue.py`` would take the place of Python's own, and no query with a
Python function would run. ``PYTHONSAFEPATH`` prevents that, but then functions couldn't import the learner's modules at all.
"""

import os
import sys

from pyspark.daemon import manager

if __name__ == "__main__":
    sys.path.append(os.getcwd())
    manager()
