"""The daemon that starts Spark's Python workers, but with the learner's folder last on the path.

Spark starts it in the folder of the session's process, where Python would look first: a ``queue.py`` there would take the
place of Python's own, and no query with a Python function would run.
"""

import sys

if __name__ == "__main__":
    sys.path.append(sys.path.pop(0))  # before anything else is loaded

    from pyspark.daemon import manager

    manager()
