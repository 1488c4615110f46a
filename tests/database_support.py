"""What tests do with a PostgreSQL server."""

from __future__ import annotations

from typing import Any

import psycopg

from kafkalab.services import PostgreSQL

__all__ = ["tell"]


def tell(server: PostgreSQL, *statements: str) -> list[tuple[Any, ...]]:
    """Have the database do this, as one transaction; what it answers to the last statement."""
    with psycopg.connect(server.url) as connection:
        for statement in statements:
            answer = connection.execute(statement.encode())
        return answer.fetchall() if answer.description else []
