# Written in the lab 03_partitioner.
"""Important stocks alone on the last partition of a topic."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Producer, murmur2

from stocks.topics import partition_count

__all__ = ["ImportantStocks"]


class ImportantStocks:
    """Chooses a record's partition by its key: important stocks go to the last one, all others to the rest.

    The Python client takes no partitioner of one's own. Call this for the partition, and give it to ``produce``:
    ``producer.produce(topic, key=name, value=value, partition=important.partition(name))``.

    Parameters
    ----------
    producer
        Asked once how many partitions there are. *All* of them count, with a leader or without: were only those counted that
        are available, "the last one" would be another one whenever a broker dies.
    topic
        The topic.
    important
        Names of the important stocks: ``("IBM", "UBER")``, or as in a configuration file, ``"IBM,UBER"``.

    Raises
    ------
    ValueError
        For a configuration that cannot be meant: no important stock, a stock without a name, the same one twice, or a topic
        with fewer than two partitions (one for the important ones, and one at any rate for the rest).
    stocks.ClusterUnreachable, stocks.UnknownTopic
        When the number of partitions cannot be told.
    """

    def __init__(self, producer: Producer, topic: str, important: str | Iterable[str]) -> None:
        names = [name.strip() for name in (important.split(",") if isinstance(important, str) else important)]
        if not names:
            raise ValueError("no important stock is named")
        if not all(names):
            raise ValueError(f"an important stock without a name: {important!r}")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"named twice: {', '.join(twice)}")
        partitions = partition_count(producer, topic)
        if partitions < 2:
            raise ValueError(f"{topic} has {partitions} partition: there is none for the other stocks")
        self._important = frozenset(names)
        self._last = partitions - 1

    def partition(self, name: str) -> int:
        """The partition of a stock.

        Parameters
        ----------
        name
            The stock's name.

        Returns
        -------
        int
            Always the same for the same name, in every process.
        """
        return self._last if name in self._important else murmur2(name.encode(), self._last)
