"""Call a transactional producer until it's done."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaException

__all__ = ["until_done"]


def until_done(call: Callable[..., None], *arguments: object) -> None:
    """Call a method of a transactional producer, and call it again while its error is ``retriable()``.

    There's no pause in between, because each call waits by itself. It goes on as long as the brokers are away.

    Parameters
    ----------
    call
        ``send_offsets_to_transaction``, ``commit_transaction`` or ``abort_transaction`` of a producer.
    *arguments
        Its arguments.

    Raises
    ------
    KafkaException
        If the error isn't retriable. Ask it what to do: after ``txn_requires_abort()`` abort the transaction and start
        another one; after ``fatal()`` close the producer.
    """
    while True:
        try:
            return call(*arguments)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
