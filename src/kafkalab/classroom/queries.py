"""The class's own events in Spark, for the last lesson: learners write the board's queries themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkalab.classroom.membership import membership
from kafkalab.classroom.spark_login import options_of
from kafkalab.classroom.topics import ANONYMOUS
from kafkalab.errors import KafkaLabError
from kafkalab.spark.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["class_events"]

_COLUMNS = (
    "seat int, kind string, subject string, at long, round int, option int, number double, met array<int>, unmet array<int>, "
    "waiting array<int>, attempt int, hints int"
)


def class_events() -> DataFrame:
    """Return all seats' events without their seats, as the instructor has copied them for the class.

    ``seat`` is a random number. ``at`` is in seconds since 1970, rounded to five minutes.

    Raises
    ------
    KafkaLabError
        If no class is joined here.

    Examples
    --------
    >>> class_events().where("kind = 'voted'").groupBy("subject", "round", "option").count()  # doctest: +SKIP
    """
    seat = membership()
    if seat is None:
        raise KafkaLabError("no class is joined on this machine: `kafkalab join` and the class's code take a seat")
    from pyspark.sql import functions as f

    records = (
        spark_session().read.format("kafka").options(**options_of(seat.client_config())).option("subscribe", ANONYMOUS).load()
    )
    return records.select(f.from_json(f.col("value").cast("string"), _COLUMNS).alias("event")).select("event.*")
