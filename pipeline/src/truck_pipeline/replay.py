"""Send dead letters back to the topic that they came from, once what was wrong is repaired."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from truck_pipeline.begin import begin
from truck_pipeline.brokers import require_topic
from truck_pipeline.checkpoint import Checkpoint, stream_id
from truck_pipeline.letters import PREFIX, REPLAYS
from truck_pipeline.settings import Settings
from truck_pipeline.transform import REASONS

__all__ = ["replay"]

_VERSION = 1  # of the streams' state


def replay(spark: SparkSession, settings: Settings, reasons: Iterable[str], limit: int = 3) -> int:
    """Send dead letters of some reasons back to the topic of positions, with key, value and headers as they were.

    The header ``dead.replays`` counts how often a record was sent back. A call takes the letters that came since the last call
    for the same reason, and ends. So what it sends back, and what becomes a dead letter again, waits for the next call. A call
    after a crash may send some letters again; their events count once all the same.

    Letters that were cut, or sent back `limit` times, stay where they are. So do those that Kafka's retention has removed.

    Parameters
    ----------
    spark
        A session with Spark's Kafka connector.
    settings
        Topics, servers and checkpoint. The checkpoint may be the pipeline's: each reason has a folder of its own in it.
    reasons
        Words from `transform.REASONS`, such as ``schema``.
    limit
        How often a record is sent back at most.

    Returns
    -------
    int
        How many letters were sent back.

    Raises
    ------
    ValueError
        When there is no such reason.
    ConnectionError
        When Kafka doesn't answer.
    LookupError
        When one of the two topics doesn't exist.
    CheckpointRefused
        When the streams can't go on from the checkpoint.
    StreamingQueryException
        When anything else fails. The next call goes on from there.
    """
    wanted = sorted(set(reasons))
    if unknown := set(wanted) - REASONS.keys():
        raise ValueError(f"no letter has the reason {', '.join(sorted(unknown))}: there are {', '.join(REASONS)}")
    topic = require_topic(settings.kafka_client(), settings.dead_letters, settings.positions)
    facts = {"version": str(_VERSION), "topic": settings.dead_letters}
    checkpoint = Checkpoint(spark, settings.checkpoint, "replay", facts, [_stream(reason) for reason in REASONS])
    if not checkpoint.require(topic.id):
        checkpoint.note(topic.id, {})
    sent = sum(_send_back(spark, settings, reason, limit, checkpoint.of(_stream(reason))) for reason in wanted)
    begun = [stream for stream in map(_stream, REASONS) if checkpoint.began(stream)]
    checkpoint.note(topic.id, {stream: stream_id(spark, checkpoint.of(stream)) for stream in begun})
    return sent


def _stream(reason: str) -> str:
    return f"replay-{reason}"


def _send_back(spark: SparkSession, settings: Settings, reason: str, limit: int, folder: str) -> int:
    # Letters that the topic no longer has can't come back, so their loss must not stop those that can.
    options = {**settings.source(settings.dead_letters), "includeHeaders": True, "failOnDataLoss": False}
    letters = spark.readStream.format("kafka").options(**options).load()
    writer = _records(letters, reason, limit).writeStream.format("kafka").options(**settings.sink(settings.positions))
    query = begin(writer.option("checkpointLocation", folder).trigger(availableNow=True))
    query.awaitTermination()
    return sum(max(0, progress["sink"]["numOutputRows"]) for progress in query.recentProgress)  # -1 if there was no batch


def _records(letters: DataFrame, reason: str, limit: int) -> DataFrame:
    """Return the records for letters of a reason."""
    replays = f.coalesce(_header(REPLAYS).try_cast("int"), f.lit(0))
    fit = (_header(f"{PREFIX}reason") == reason) & _header(f"{PREFIX}cut").isNull() & (replays < limit)
    count = f.struct(f.lit(REPLAYS).alias("key"), (replays + 1).cast("string").cast("binary").alias("value"))
    own = f.filter("headers", lambda header: ~header["key"].startswith(PREFIX))
    return letters.where(fit).select("key", "value", f.concat(own, f.array(count)).alias("headers"))


def _header(name: str) -> Column:
    """Return a letter's last header of a name, as a text."""
    found = f.filter("headers", lambda header: header["key"] == name)
    return f.try_element_at(found, f.lit(-1))["value"].cast("string")
