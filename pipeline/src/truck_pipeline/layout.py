"""The columns of the tables in PostgreSQL: create them, bring those of older versions up to date, and refuse all others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import psycopg
from psycopg import sql

__all__ = ["TablesDiffer", "lay_out"]

_TIME, _TEXT, _INT, _BIGINT, _FLOAT = "timestamp with time zone", "text", "integer", "bigint", "double precision"

# Each table's columns, in their order.
_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "driving": {"starts": _TIME, "driver": _INT, "events": _BIGINT, "dangerous": _BIGINT, "late": _BIGINT},
    "dangerous_driving": {
        **{"correlation": _TEXT, "happened": _TIME, "kind": _TEXT, "truck": _INT, "driver": _INT},
        **{"first_name": _TEXT, "last_name": _TEXT, "latitude": _FLOAT, "longitude": _FLOAT, "sent": _TIME, "stored": _TIME},
    },
    "batches": {
        **{"batch": _BIGINT, "events": _BIGINT, "dead": _BIGINT},
        **{"seen": _TIME, "half_sent": _TIME, "first_sent": _TIME, "stored": _TIME},
    },
}

_KEYS = {"driving": "starts, driver", "dangerous_driving": "correlation", "batches": "batch"}
_DEFAULTS = {"late": "NOT NULL DEFAULT 0", "stored": "DEFAULT clock_timestamp()"}


def _create(table: str) -> str:
    columns = [f"{name} {kind} {_DEFAULTS.get(name, '')}" for name, kind in _COLUMNS[table].items()]
    return f"CREATE TABLE IF NOT EXISTS {{schema}}.{table} ({', '.join(columns)}, PRIMARY KEY ({_KEYS[table]}))"


_CREATE = "; ".join(["CREATE SCHEMA IF NOT EXISTS {schema}", *map(_create, _COLUMNS)])

# What later versions changed. Each statement does nothing where it was done before.
_MIGRATE = """
ALTER TABLE {schema}.driving ADD COLUMN IF NOT EXISTS late BIGINT NOT NULL DEFAULT 0;
ALTER TABLE {schema}.driving DROP COLUMN IF EXISTS batch
"""

_INDEX = "CREATE INDEX IF NOT EXISTS dangerous_driving_stored ON {schema}.dangerous_driving (stored)"

_FIND = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


class TablesDiffer(Exception):
    """Raised if tables of these names have other columns than the pipeline's. Nothing has been changed."""


def lay_out(connection: psycopg.Connection, schema: str) -> None:
    """Create the tables that don't exist, and bring those of an older version up to date.

    Parameters
    ----------
    connection
        In a transaction, which must be rolled back at an error.
    schema
        The schema that holds the tables.

    Raises
    ------
    TablesDiffer
        When a table has other columns.
    """
    name = sql.Identifier(schema)
    for statements in (_CREATE, _MIGRATE):
        connection.execute(sql.SQL(statements).format(schema=name))
    if found := [difference for table in _COLUMNS for difference in _differences(connection, name, table)]:
        raise TablesDiffer(_DIFFER.format(schema, "; ".join(found)))
    connection.execute(sql.SQL(_INDEX).format(schema=name))


_DIFFER = "the tables of {} aren't this pipeline's: {}. Nothing was changed; give another schema for the tables"


def _differences(connection: psycopg.Connection, schema: sql.Identifier, table: str) -> Iterator[str]:
    """Say how a table's columns differ from the pipeline's."""
    wanted, relation = _COLUMNS[table], sql.SQL("{}.{}").format(schema, sql.Identifier(table)).as_string(connection)
    found: dict[str, str] = dict(connection.execute(_FIND, [relation]).fetchall())
    if missing := wanted.keys() - found.keys():
        yield f"{table} lacks {', '.join(sorted(missing))}"
    if more := found.keys() - wanted.keys():
        yield f"{table} has {', '.join(sorted(more))} besides"
    for column in wanted.keys() & found.keys():
        if found[column] != wanted[column]:
            yield f"{table}.{column} is {found[column]}, not {wanted[column]}"
    if found.keys() == wanted.keys() and list(found) != list(wanted):
        yield f"{table} has its columns in another order: {', '.join(found)}"
