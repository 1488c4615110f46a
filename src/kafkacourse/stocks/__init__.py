"""The stock-price application: the running example of the chapters on producers and consumers."""

from kafkacourse.stocks.prices import STOCKS, MalformedStockPrice, Stock, StockPrice, deserialize, serialize
from kafkacourse.stocks.sender import StockSender
from kafkacourse.stocks.topics import ClusterUnreachable, UnknownTopic, partition_count

__all__ = [
    "STOCKS",
    "ClusterUnreachable",
    "MalformedStockPrice",
    "Stock",
    "StockPrice",
    "StockSender",
    "UnknownTopic",
    "deserialize",
    "partition_count",
    "serialize",
]
