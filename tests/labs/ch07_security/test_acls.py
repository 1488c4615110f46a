"""ACL rules for four users: each wrong rule gets its sentence, and the right ones pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from kafkalab import Cluster
from support import Verdict, create

pytestmark = pytest.mark.cluster

LAB = "07_acls"

LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY

SetRules = Callable[[Mapping[str, AclBinding]], None]


def rule(
    user: str,
    operation: AclOperation,
    kind: ResourceType,
    name: str,
    pattern: ResourcePatternType = LITERAL,
    host: str = "*",
    permission: AclPermissionType = ALLOW,
) -> AclBinding:
    """A rule for a user."""
    return AclBinding(kind, name, pattern, f"User:{user}", host, operation, permission)


RIGHT = {
    "write": rule("stocks_producer", WRITE, TOPIC, "stock-prices"),
    "read": rule("stocks_consumer", READ, TOPIC, "stock-prices"),
    "group": rule("stocks_consumer", READ, GROUP, "stocks"),
    "prefix": rule("analyst", READ, TOPIC, "stock-", PREFIXED),
    "groups": rule("analyst", READ, GROUP, "analyst-", PREFIXED),
    "secret": rule("analyst", READ, TOPIC, "stock-secret", permission=DENY),
    "visitor": rule("visitor", ALL, TOPIC, "stock-prices", host="198.51.100.1"),
}


@pytest.fixture(scope="module", autouse=True)
def topics(ruled: Cluster) -> None:
    """The lab's topics."""
    for topic in ("stock-prices", "stock-news", "stock-secret"):
        create(ruled, topic, 1, copies=1)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"write": None}, "stocks_producer may not write the topic stock-prices"),
        ({"write": rule("stocks_producer", ALL, TOPIC, "stock-prices")}, "may read the topic stock-prices, which is more"),
        ({"more": rule("stocks_producer", WRITE, TOPIC, "stock-secret")}, "may write the topic stock-secret, which is more"),
        ({"write": rule("stocks_producer", WRITE, TOPIC, "stock-prices", host="127.0.0.1")}, "has the host 127.0.0.1"),
        ({"write": rule("stocks_producer", WRITE, TOPIC, "stock-", PREFIXED)}, "may write the topic stock-news, which is more"),
        ({"read": None}, "stocks_consumer may not read the topic stock-prices"),
        ({"group": None}, "stocks_consumer may not read the group stocks"),
        ({"group": rule("stocks_consumer", READ, GROUP, "*")}, "stocks_consumer may read the group others, which is more"),
        ({"prefix": rule("analyst", READ, TOPIC, "stock-prices")}, "analyst may not read the topic stock-news"),
        ({"secret": None}, "analyst may read the topic stock-secret, which is more"),
        ({"more": rule("analyst", READ, GROUP, "*")}, "analyst may read the group others, which is more"),
        ({"groups": None}, "analyst may not read the group analyst-7"),
        (
            {"prefix": rule("analyst", READ, TOPIC, "stock-prices"), "more": rule("analyst", READ, TOPIC, "stock-news")},
            "isn't prefixed. What may analyst do with a topic that you create tomorrow?",
        ),
        ({"visitor": None}, "There is no rule for User:visitor"),
        ({"visitor": rule("visitor", READ, TOPIC, "stock-prices", host="198.51.100.1")}, "are ALLOW READ. Which operation"),
        ({"visitor": rule("visitor", ALL, TOPIC, "stock-news", host="198.51.100.1")}, "is about the topic stock-news"),
        ({"visitor": rule("visitor", ALL, TOPIC, "stock-prices")}, "has the host *, which isn't the address in the text"),
    ],
)
def test_wrong_rules(
    ruled: Cluster, set_rules: SetRules, verdict: Verdict, wrong: dict[str, AclBinding | None], sentence: str
) -> None:
    set_rules({name: r for name, r in {**RIGHT, **wrong}.items() if r is not None})
    verdict.says(sentence, LAB, ruled)


def test_right_rules_and_none(ruled: Cluster, set_rules: SetRules, verdict: Verdict) -> None:
    set_rules(RIGHT)
    verdict.passes(LAB, ruled)
    set_rules({})
    passed, printed = verdict(LAB, ruled)
    assert not passed
    assert "0 of 8 requirements" in printed
    assert "stocks_producer may not write" in printed
    assert "Not looked at yet. First: visitor may do everything with its topic" in printed
