"""Clients that log in with tickets of a KDC."""

from __future__ import annotations

from confluent_kafka.admin import AclOperation, AclPermissionType, ResourceType

from kafkalab.checks.access import acl_rules
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import has_read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import holds
from kafkalab.services import MiniKdc

__all__ = ["lab"]

TOPIC = "stock-prices"
PRODUCER, CONSUMER = "kafka-producer-stocks", "kafka-consumer-stocks"
RULES = (
    (PRODUCER, ResourceType.TOPIC, AclOperation.WRITE),
    (CONSUMER, ResourceType.TOPIC, AclOperation.READ),
    (CONSUMER, ResourceType.GROUP, AclOperation.READ),
)

lab = Lab("07_kerberos")

check = lab.add_check(
    "07_kerberos",
    "Log in with tickets",
    hints=(
        "The module's options have no commas between them and end with one semicolon. print(kdc.keytab(BROKER)) shows where "
        "the broker's key table is.",
        "A principal is written with its realm: name@REALM, and kdc.realm is the realm.",
        'Does the tool say Cannot locate KDC? Then it doesn\'t know where the KDC is: look at os.environ["KAFKA_OPTS"].',
        "Add -Dsun.security.krb5.debug=true to KAFKA_OPTS, and Java reports every step.",
    ),
)


@check.requires("Both clients have logged in by Kerberos")
def clients_logged_in(ctx: CheckContext) -> None:
    log = ctx.cluster.logs(0)
    for principal in (PRODUCER, CONSUMER):
        if f"authenticationID={principal}@" not in log:
            raise Unmet(f"The broker's log shows no login of {principal}. What did the tool say?")


@check.requires("ACL rules name both of them")
def rules_name_clients(ctx: CheckContext) -> None:
    allowing = [rule for rule in acl_rules(ctx) if rule.permission_type == AclPermissionType.ALLOW]
    found = {(rule.principal, rule.restype, rule.operation) for rule in allowing}
    for name, kind, operation in RULES:
        if not {(f"User:{name}", kind, allowed) for allowed in (operation, AclOperation.ALL)} & found:
            raise Unmet(f"There is no rule that lets User:{name} {operation.name.lower()} a {kind.name.lower()}.")


prices_are_there = check.requires("stock-prices holds the three prices")(holds(TOPIC, 3))
check.requires("The group stocks has read and committed them", after=prices_are_there)(has_read_everything("stocks", TOPIC))


@check.requires("Without the KDC a client gets no ticket", after=clients_logged_in)
def no_ticket_without_kdc(ctx: CheckContext) -> None:
    if ctx.answer("kdc", MiniKdc, "your KDC").running:
        raise Unmet("The KDC is running. A client that asks it now gets a ticket.")
    told = ctx.answer("refused", object, "what the tool wrote when the KDC was gone")
    if not any(reason in str(told) for reason in ("LoginException", "Connection refused")):  # a list of lines, or one text
        raise Unmet("What the tool wrote doesn't mention a failed login. Did you keep its errors (2>&1)?")
