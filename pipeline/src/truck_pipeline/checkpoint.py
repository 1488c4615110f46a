"""The checkpoint: a folder with a Spark checkpoint for each stream, and notes about the topic and the streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession

from truck_pipeline.checkpoint_storage import files

__all__ = ["Checkpoint", "CheckpointRefused", "stream_id"]

_SPARKS = {"metadata", "offsets", "commits", "sources", "state"}  # what a single query's checkpoint holds


class CheckpointRefused(Exception):
    """Raised if going on from this checkpoint would lose records or mix them up. Nothing has been changed."""


class Checkpoint:
    """Checks a checkpoint before streams go on from it.

    Parameters
    ----------
    spark
        The session that reads and writes the folder.
    folder
        The checkpoint, on any storage that Spark can write to.
    owner
        Name of the application. Its notes are named after it.
    facts
        Values that must not have changed if the streams are to go on, by their names in messages.
    streams
        The names of the streams. Each has a folder of that name.
    """

    def __init__(self, spark: SparkSession, folder: str, owner: str, facts: Mapping[str, str], streams: Sequence[str]) -> None:
        self.folder = folder
        self._name, self._facts, self._streams = f"{owner}.json", dict(facts), streams
        self._files = files(spark, folder)
        self._note: object = None  # the latest one that this object read or wrote

    def of(self, stream: str) -> str:
        """Return the folder of a stream."""
        return f"{self.folder}/{stream}"

    def began(self, stream: str) -> bool:
        """Return whether a stream has begun."""
        return stream in self._files.names()

    def require(self, topic: str) -> bool:
        """Check that streams can go on from this checkpoint, or begin.

        Parameters
        ----------
        topic
            The id of the topic that is read.

        Returns
        -------
        bool
            Whether streams go on from it. False if it's empty.

        Raises
        ------
        CheckpointRefused
            When it belongs to another query, was written for another topic, or is damaged.
        """
        try:
            return self._check(topic)
        except (OSError, ValueError, KeyError) as error:
            raise self.damaged(str(error)) from error

    def note(self, topic: str, ids: Mapping[str, str]) -> None:
        """Note the topic's id, and the ids that Spark gave to the streams."""
        note = {"facts": self._facts, "topic": topic, "ids": dict(ids)}
        if note != self._note:
            self._files.add(self._name, json.dumps(note))
            self._note = note

    def damaged(self, reason: str) -> CheckpointRefused:
        """Return the error for a checkpoint that can't be read."""
        return self._refusal(f"is damaged ({reason})", f"put back a copy of it, or {_ANEW}")

    def _refusal(self, problem: str, advice: str) -> CheckpointRefused:
        return CheckpointRefused(f"the checkpoint in {self.folder} {problem}. Nothing was changed; {advice}")

    def _check(self, topic: str) -> bool:
        names = set(self._files.names())
        if self._name not in names:
            if others := names & {*_SPARKS, *self._streams}:
                raise self._refusal(f"belongs to another query: it holds {', '.join(sorted(others))}", _ANOTHER)
            return False
        notes = [json.loads(text) for text in self._files.added(self._name)]
        note = self._note = max(notes, key=lambda note: len(note["ids"]))  # the latest: ids are only added
        for fact, value in self._facts.items():
            if (earlier := note["facts"].get(fact)) != value:
                why = _WHY.get(fact, "")
                raise self._refusal(f"belongs to another query: its {fact} is {earlier}, not {value}{why}", _ANOTHER)
        if note["topic"] != topic:
            raise self._refusal(_RECREATED, _ANEW)
        ids = note["ids"]
        for stream in self._streams:
            if stream in ids or stream in names:
                self._check_stream(stream, ids)
        return bool(ids or names.intersection(self._streams))

    def _check_stream(self, stream: str, ids: Mapping[str, str]) -> None:
        """Check a stream's files. Spark writes a batch's offsets first and its commit last, so one batch may lack it."""
        stream_id = _id(self._files.read(f"{stream}/metadata"))
        if stream_id != ids.get(stream, stream_id):
            raise self._refusal(f"belongs to another query: {stream} isn't the one that was there", _ANOTHER)
        # The stream may still run, on a Spark Connect server where a killed process left it.
        begun, done, now = (self._batches(stream, log) for log in ("offsets", "commits", "offsets"))
        if (begun and max(begun) > 0 and max(begun) - 1 not in done) or (done and max(done) not in now):
            raise ValueError(f"{stream} has no commits that fit its offsets")
        for log, numbers in (("offsets", begun), ("commits", done)):
            if numbers:
                _, *lines = self._files.read(f"{stream}/{log}/{max(numbers)}").splitlines()
                for line in lines or ["nothing"]:
                    json.loads(line)

    def _batches(self, stream: str, log: str) -> set[int]:
        return {int(name) for name in self._files.names(f"{stream}/{log}") if name.isdigit()}


def stream_id(spark: SparkSession, folder: str) -> str:
    """Return the id that Spark gave to the stream whose checkpoint is in a folder."""
    return _id(files(spark, folder).read("metadata"))


def _id(metadata: str) -> str:
    return str(json.loads(metadata)["id"])


# What would go wrong, by the fact that has changed.
_WHY = {
    "version": ", and this version keeps other state",
    "window": ", and counts of windows of two lengths would be mixed",
    "patience": ", and the ids that it remembers would be forgotten at other times than were promised",
    "state store": ", and neither store reads the other's files",
    "number of shuffle partitions": ", and its state is split into so many parts",
}

_RECREATED = "belongs to a topic that was deleted. Another one has its name now, and the same offsets mean other records there"
_ANOTHER = "give this one an empty folder"
_ANEW = "give it an empty folder and another schema for its tables, and the answers are worked out anew from what the topic has"
