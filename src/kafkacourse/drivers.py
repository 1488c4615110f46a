"""What checks ask of a table of drivers, and of topics that hold its rows."""

from __future__ import annotations

import re

import psycopg
from psycopg import sql

from kafkalab.checks.connectors import SENT
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import filled
from kafkalab.services import PostgreSQL

__all__ = ["answered", "drivers_in", "keyed_by_ids"]


def answered(ctx: CheckContext, question: bytes | sql.Composed, what: str) -> list[tuple[object, ...]]:
    """Return the rows that the lab's database answers with. Raise `Unmet` if it doesn't run, or if `what` can't be read."""
    server = ctx.answer("database", PostgreSQL, "the PostgreSQL server of this lab", may_be_empty=True)
    if not server.running:
        raise Unmet("PostgreSQL doesn't run. Start it with start(), and look again.")
    try:
        with psycopg.connect(server.url) as connection:
            return connection.execute(question).fetchall()
    except psycopg.Error as error:
        reason = str(error).partition("\n")[0]
        raise Unmet(f"{what} can't be read: {reason}") from None


def drivers_in(ctx: CheckContext, table: str) -> dict[int, tuple[object, ...]]:
    """Name and availability of each driver in a table that must be there, by id."""
    question = sql.SQL("SELECT id, name, available FROM {}").format(sql.Identifier(table))
    rows = answered(ctx, question, f"The table {table}")
    return {int(str(row[0])): row[1:] for row in rows}


def keyed_by_ids(ctx: CheckContext, topic: str) -> None:
    """Records whose keys must be a driver's id, and nothing else."""
    for record in filled(ctx, topic, SENT):
        if not re.fullmatch(r"\d+", key_of(record)):
            raise Unmet(
                f"A record of {topic} has the key {key_of(record)}. It should be the id alone: which transform takes a "
                "field out of a key?"
            )
