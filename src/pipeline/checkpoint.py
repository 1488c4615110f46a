"""The checkpoint: a folder with one of Spark's checkpoints for each stream, and notes that say whose they are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

__all__ = ["Checkpoint", "CheckpointRefused"]

_SPARKS = {"metadata", "offsets", "commits", "sources", "state"}  # what a single query's checkpoint holds


class CheckpointRefused(Exception):
    """To go on from this checkpoint would lose records or mix them up. Nothing has been changed."""


class Checkpoint:
    """Looks at a checkpoint before streams go on from it.

    Parameters
    ----------
    spark
        The session whose files these are: the folder may be on any storage that Spark can write to.
    folder
        Where it is.
    owner
        Whose it is: the note is called so.
    facts
        What must be as it was for the streams to go on, in words.
    streams
        The names of the streams. Each has a folder of that name.
    """

    def __init__(self, spark: SparkSession, folder: str, owner: str, facts: Mapping[str, str], streams: Sequence[str]) -> None:
        self.folder = folder
        self._note, self._facts, self._streams = f"{owner}.json", dict(facts), streams
        self._files = _Files(spark, folder)

    def of(self, stream: str) -> str:
        """The folder of a stream."""
        return f"{self.folder}/{stream}"

    def began(self, stream: str) -> bool:
        """Whether a stream has begun."""
        return stream in self._files.names()

    def require(self, topic: str) -> bool:
        """Make sure that streams can go on from here, or begin.

        Parameters
        ----------
        topic
            The id of the topic that is read.

        Returns
        -------
        bool
            Whether there is something to go on from.

        Raises
        ------
        CheckpointRefused
            When it belongs to another query, was written for another topic, or is damaged.
        """
        try:
            return self._look(topic)
        except Py4JJavaError as error:
            raise self.damaged(error.java_exception.toString()) from None
        except (ValueError, KeyError) as error:
            raise self.damaged(str(error)) from error

    def note(self, topic: str, ids: Mapping[str, str]) -> None:
        """Note whose it is: the topic's id, and the ids that Spark gave the streams that were started."""
        self._files.write(self._note, json.dumps({"facts": self._facts, "topic": topic, "ids": dict(ids)}))

    def damaged(self, reason: str) -> CheckpointRefused:
        """The error for a checkpoint that can't be read."""
        return self._refusal(f"is damaged ({reason})", f"put back a copy of it, or {_ANEW}")

    def _refusal(self, problem: str, advice: str) -> CheckpointRefused:
        return CheckpointRefused(f"the checkpoint in {self.folder} {problem}. Nothing was changed; {advice}")

    def _look(self, topic: str) -> bool:
        found = set(self._files.names())
        if self._note not in found:
            if others := found & {*_SPARKS, *self._streams}:
                raise self._refusal(f"belongs to another query: it holds {', '.join(sorted(others))}", _ANOTHER)
            return False
        note = json.loads(self._files.read(self._note))
        for what, value in self._facts.items():
            if (was := note["facts"].get(what)) != value:
                raise self._refusal(f"belongs to another query: its {what} is {was}, not {value}", _ANOTHER)
        if note["topic"] != topic:
            raise self._refusal(_RECREATED, _ANEW)
        ids = note["ids"]
        for stream in self._streams:
            if stream in ids or stream in found:
                self._look_at(stream, ids)
        return bool(ids or found.intersection(self._streams))

    def _look_at(self, stream: str, ids: Mapping[str, str]) -> None:
        """Spark writes the offsets of a batch before it begins, and a commit when it is done: one batch may lack its commit."""
        held = json.loads(self._files.read(f"{stream}/metadata"))["id"]
        if held != ids.get(stream, held):
            raise self._refusal(f"belongs to another query: {stream} isn't the one that was there", _ANOTHER)
        begun, done = (self._batches(stream, log) for log in ("offsets", "commits"))
        if (begun and max(begun) > 0 and max(begun) - 1 not in done) or (done and max(done) not in begun):
            raise ValueError(f"{stream} has no commits that fit its offsets")
        for log, numbers in (("offsets", begun), ("commits", done)):
            if numbers:
                _, *lines = self._files.read(f"{stream}/{log}/{max(numbers)}").splitlines()
                for line in lines or ["nothing"]:
                    json.loads(line)

    def _batches(self, stream: str, log: str) -> set[int]:
        return {int(name) for name in self._files.names(f"{stream}/{log}") if name.isdigit()}


_RECREATED = "belongs to a topic that was deleted. Another one has its name now, and the same offsets mean other records there"
_ANOTHER = "give this one an empty folder"
_ANEW = "give it an empty folder and another schema for its tables, and the answers are worked out anew from what the topic has"


class _Files:
    """Files in a folder, by the client that Spark itself reads and writes a checkpoint with."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        context: Any = spark.sparkContext
        self._java, self._folder = context._jvm, folder
        managers = getattr(context._jvm.org.apache.spark.sql.execution.streaming, "CheckpointFileManager$")
        self._manager = getattr(managers, "MODULE$").create(self._path(""), context._jsc.hadoopConfiguration())

    def names(self, folder: str = "") -> list[str]:
        path = self._path(folder)
        return [found.getPath().getName() for found in self._manager.list(path)] if self._manager.exists(path) else []

    def read(self, name: str) -> str:
        stream = self._manager.open(self._path(name))
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Put a file in its place at once, as Spark does it: who is killed amid it leaves the file that was there."""
        self._manager.mkdirs(self._path(""))
        stream = self._manager.createAtomic(self._path(name), True)
        stream.write(text.encode())
        stream.close()

    def _path(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(f"{self._folder}/{name}" if name else self._folder)
