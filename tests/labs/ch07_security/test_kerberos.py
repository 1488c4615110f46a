"""Logins with tickets: each wrong answer gets its sentence, and the right one passes. No KDC runs here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from kafkalab import Cluster
from kafkalab.services import MiniKdc
from support import Verdict, commit, create, put

pytestmark = pytest.mark.cluster

LAB = "07_kerberos"
LITERAL, WRITE = ResourcePatternType.LITERAL, AclOperation.WRITE


def allow(who: str, operation: AclOperation, kind: ResourceType, name: str) -> AclBinding:
    """A rule that lets one of the two clients do something."""
    principal = f"User:kafka-{who}-stocks"
    return AclBinding(kind, name, ResourcePatternType.LITERAL, principal, "*", operation, AclPermissionType.ALLOW)


RULES = {
    "write": allow("producer", AclOperation.WRITE, ResourceType.TOPIC, "stock-prices"),
    "read": allow("consumer", AclOperation.READ, ResourceType.TOPIC, "stock-prices"),
    "group": allow("consumer", AclOperation.READ, ResourceType.GROUP, "stocks"),
}
REFUSED = ["Caused by: javax.security.auth.login.LoginException: …"]


KDC = MiniKdc([])  # never started


class Running(MiniKdc):
    """One that says that it runs."""

    running = True


def test_kerberos(
    ruled: Cluster,
    set_rules: Callable[[Mapping[str, AclBinding]], None],
    verdict: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed, printed = verdict(LAB, ruled, kdc=KDC, refused=REFUSED)
    assert not passed
    assert "0 of 5 requirements" in printed  # nothing counts as met only because there is nothing
    assert "The broker's log shows no login of kafka-producer-stocks" in printed
    assert printed.count("Not looked at yet") == 2

    seen = "".join(f"authenticationID=kafka-{who}-stocks@KAFKALAB.TEST;" for who in ("producer", "consumer"))
    monkeypatch.setattr(ruled.nodes, "logs", lambda _: seen)
    verdict.says("no rule that lets User:kafka-producer-stocks write a topic", LAB, ruled, kdc=KDC, refused=REFUSED)
    deny = AclPermissionType.DENY
    set_rules({"deny": AclBinding(ResourceType.TOPIC, "stock-prices", LITERAL, "User:kafka-producer-stocks", "*", WRITE, deny)})
    verdict.says("no rule that lets User:kafka-producer-stocks write a topic", LAB, ruled, kdc=KDC, refused=REFUSED)
    set_rules({"write": RULES["write"]})
    verdict.says("no rule that lets User:kafka-consumer-stocks read a topic", LAB, ruled, kdc=KDC, refused=REFUSED)
    set_rules({"write": RULES["write"], "read": RULES["read"]})
    verdict.says("no rule that lets User:kafka-consumer-stocks read a group", LAB, ruled, kdc=KDC, refused=REFUSED)
    set_rules(RULES)
    verdict.says("There is no topic 'stock-prices' yet", LAB, ruled, kdc=KDC, refused=REFUSED)
    create(ruled, "stock-prices", 1, copies=1)
    put(ruled, "stock-prices", [(None, str(number), 0) for number in range(3)])
    verdict.says("There is no consumer group 'stocks' yet", LAB, ruled, kdc=KDC, refused=REFUSED)
    commit(ruled, "stocks", "stock-prices", {0: 2})
    verdict.says("stocks has committed offset 2 in partition 0", LAB, ruled, kdc=KDC, refused=REFUSED)
    commit(ruled, "stocks", "stock-prices")
    verdict.passes(LAB, ruled, kdc=KDC, refused=REFUSED)
    verdict.passes(LAB, ruled, kdc=KDC, refused="\n".join(REFUSED))
    verdict.says("Give check() your answer as refused=", LAB, ruled, kdc=KDC)
    verdict.says("doesn't mention a failed login", LAB, ruled, kdc=KDC, refused=[">"])
    verdict.says("Give check() your answer as kdc=", LAB, ruled, refused=REFUSED)
    verdict.says("The KDC is running", LAB, ruled, kdc=Running([]), refused=REFUSED)
