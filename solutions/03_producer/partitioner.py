# Written in the lab 03_partitioner.
"""Keep important stocks apart, on the last partition of a topic."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Producer, murmur2

from kafkacourse.stocks.topics import partition_count

__all__ = ["ImportantStocks"]


class ImportantStocks:
    """Choose a record's partition by its key: important stocks go to the last partition, all others to the rest.

    The Python client doesn't accept a partitioner of your own. Call this one and pass the partition to ``produce``:
    ``producer.produce(topic, key=name, value=value, partition=important.partition(name))``.

    Parameters
    ----------
    producer
        Asked once for the number of partitions. *All* of them count, with a leader or without. If only available
        partitions counted, "the last one" would change whenever a broker dies.
    topic
        The topic.
    important
        Names of the important stocks: ``("IBM", "UBER")``, or ``"IBM,UBER"`` as in a configuration file.

    Raises
    ------
    ValueError
        If the configuration makes no sense: no important stock, a stock without a name, the same stock twice, or a
        topic with fewer than two partitions (the important stocks need one, and so do the others).
    kafkacourse.stocks.ClusterUnreachable, kafkacourse.stocks.UnknownTopic
        If the client can't find out the number of partitions.
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
        """Return the partition of a stock.

        Parameters
        ----------
        name
            The stock's name.

        Returns
        -------
        int
            The same partition for the same name, in every process.
        """
        return self._last if name in self._important else murmur2(name.encode(), self._last)
