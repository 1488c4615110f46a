"""What checks ask of a table of drivers, and of topics that hold its rows."""

from __future__ import annotations

import re

import psycopg
from psycopg import sql

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.records import key_of
from kafkalab.checks.topics import filled
from kafkalab.services import PostgreSQL

__all__ = ["drivers_in", "keyed_by_ids"]


def drivers_in(ctx: CheckContext, table: str) -> dict[int, tuple[object, ...]]:
    """Name and availability of each driver in a table that must be there, by id."""
    server = ctx.answer("database", PostgreSQL, "the PostgreSQL server of this lab", may_be_empty=True)
    if not server.running:
        raise Unmet("PostgreSQL doesn't run. Start it with start(), and look again.")
    question = sql.SQL("SELECT id, name, available FROM {}").format(sql.Identifier(table))
    try:
        with psycopg.connect(server.url) as connection:
            rows = connection.execute(question).fetchall()
    except psycopg.Error as error:
        raise Unmet(f"The table {table} can't be read: {error}") from None
    return {int(row[0]): tuple(row[1:]) for row in rows}


def keyed_by_ids(ctx: CheckContext, topic: str) -> None:
    """Records whose keys must be a driver's id, and nothing else."""
    for record in filled(ctx, topic):
        if not re.fullmatch(r"\d+", key_of(record)):
            raise Unmet(
                f"A record of {topic} has the key {key_of(record)}. It should be the id alone: which transform takes a "
                "field out of a key?"
            )
