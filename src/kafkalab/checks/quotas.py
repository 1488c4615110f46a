"""Questions about quotas: which ones the cluster knows."""

from __future__ import annotations

from collections.abc import Mapping
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


def quotas_of(ctx: CheckContext, entity: Mapping[str, str]) -> dict[str, float]:
    """Return the quotas of a client id, of a user, or of both together: value by setting, empty if there are none."""
    request = DescribeClientQuotasRequest(components=[], strict=False, version=_VERSION)
    with closing(BrokerConnection(ctx.cluster.clients.bootstrap(0), _TIMEOUT)) as connection:
        try:
            answer = connection.ask(request, DescribeClientQuotasResponse, _VERSION)
        except OSError as error:
            raise KafkaLabError(f"broker 0 doesn't tell its quotas: {error}") from error
    for entry in answer.entries or ():
        if {part.entity_type: part.entity_name for part in entry.entity} == entity:
            return {value.key: float(value.value) for value in entry.values}
    return {}


def require_quota(ctx: CheckContext, entity: Mapping[str, str], setting: str, limit: float) -> None:
    """Raise `Unmet` unless a client id, a user, or both together have this quota."""
    quotas, whose = quotas_of(ctx, entity), " with ".join(f"{_WORDS[kind]} {name}" for kind, name in entity.items())
    if setting not in quotas:
        others = f" It has {', '.join(quotas)}." if quotas else ""
        raise Unmet(f"The cluster knows no {setting} for {whose}.{others} kafka-configs.sh lists all quotas.")
    if quotas[setting] != limit:
        raise Unmet(f"The {setting} of {whose} is {quotas[setting]:g}. What does the text ask for?")
