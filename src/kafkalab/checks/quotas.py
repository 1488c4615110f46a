"""Questions about quotas: which ones the cluster knows."""

from __future__ import annotations

from contextlib import closing

from kafka.protocol.admin import DescribeClientQuotasRequest, DescribeClientQuotasResponse

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.cluster.wire import BrokerConnection
from kafkalab.errors import KafkaLabError

__all__ = ["CLIENT_ID", "USER", "quotas_of", "require_quota"]

CLIENT_ID, USER = "client-id", "user"
_VERSION = 1
_TIMEOUT = 10.0
_WORDS = {CLIENT_ID: "the client id", USER: "the user"}


def quotas_of(ctx: CheckContext, entity: str, name: str) -> dict[str, float]:
    """Return the quotas of a single client id or user: value by setting, empty if it has none."""
    request = DescribeClientQuotasRequest(components=[], strict=False, version=_VERSION)
    with closing(BrokerConnection(ctx.cluster.bootstrap(0), _TIMEOUT)) as connection:
        try:
            answer = connection.ask(request, DescribeClientQuotasResponse, _VERSION)
        except OSError as error:
            raise KafkaLabError(f"broker 0 doesn't tell its quotas: {error}") from error
    for entry in answer.entries or ():
        if [(part.entity_type, part.entity_name) for part in entry.entity] == [(entity, name)]:
            return {value.key: float(value.value) for value in entry.values}
    return {}


def require_quota(ctx: CheckContext, entity: str, name: str, setting: str, limit: float) -> None:
    """Raise `Unmet` unless a client id or user has this quota."""
    found = quotas_of(ctx, entity, name)
    if setting not in found:
        others = f" It has {', '.join(found)}." if found else ""
        raise Unmet(f"The cluster knows no {setting} for {_WORDS[entity]} {name}.{others} kafka-configs.sh lists all quotas.")
    if found[setting] != limit:
        raise Unmet(f"The {setting} of {_WORDS[entity]} {name} is {found[setting]:g}. What does the text ask for?")
