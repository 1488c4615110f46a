"""ACL rules for four users: what each of them may do, and nothing else."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from kafkalab.checks.access import acl_rules, group_rights, topic_rights
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.checks.probes import parametrized
from kafkalab.checks.topics import existing

__all__ = ["lab"]

TOPICS = ("stock-prices", "stock-news", "stock-secret")
ADDRESS = "198.51.100.1"
READ, WRITE, NOTHING = frozenset({"READ"}), frozenset({"WRITE"}), frozenset[str]()
WANTED: dict[str, dict[tuple[str, str], frozenset[str]]] = {
    "stocks_producer": {
        ("topic", "stock-prices"): WRITE,
        ("topic", "stock-news"): NOTHING,
        ("topic", "stock-secret"): NOTHING,
        ("group", "stocks"): NOTHING,
    },
    "stocks_consumer": {
        ("topic", "stock-prices"): READ,
        ("topic", "stock-news"): NOTHING,
        ("topic", "stock-secret"): NOTHING,
        ("group", "stocks"): READ,
        ("group", "others"): NOTHING,
    },
    "analyst": {
        ("topic", "stock-prices"): READ,
        ("topic", "stock-news"): READ,
        ("topic", "stock-secret"): NOTHING,
        ("group", "analyst-7"): READ,
        ("group", "others"): NOTHING,
    },
    "visitor": {("topic", "stock-prices"): NOTHING},
}
"""User → resource → what the user must be able to do there: read, write, both or nothing."""

lab = Lab("07_acls")

check = lab.add_check(
    "07_acls",
    "Write rules for four users",
    hints=(
        "A rule has a resource (type, name, literal or prefixed), a principal (User:…), a host and an operation. It allows or "
        "denies.",
        "AclBinding takes restype, name, resource_pattern_type, principal, host, operation and permission_type, in this order. "
        "The function `rule` fills it for you.",
        "A consumer needs rights for its topic and for its group. Read includes Describe.",
        "Too many rights? kafka-acls.sh --remove, with the same options as --add, removes a rule.",
    ),
)


@parametrized
def _has_rights(ctx: CheckContext, user: str) -> None:
    for topic in TOPICS:
        existing(ctx, topic)
    for (kind, name), wanted in WANTED[user].items():
        try:
            rights = topic_rights(ctx, user, name) if kind == "topic" else group_rights(ctx, user, name)
        except KafkaException as error:
            raise Unmet(f"{user} can't ask for its rights: {error.args[0].str()}.") from error
        got = rights & (READ | WRITE)
        if missing := wanted - got:
            raise Unmet(f"{user} may not {min(missing).lower()} the {kind} {name}. Which rule allows it?")
        if more := got - wanted:
            raise Unmet(f"{user} may {min(more).lower()} the {kind} {name}, which is more than the text asks for.")


producer_has_rights = check.requires("stocks_producer may write to its topic, and nothing more")(_has_rights("stocks_producer"))


@check.requires("stocks_producer may come from any host", after=producer_has_rights)
def producer_comes_from_anywhere(ctx: CheckContext) -> None:
    for rule in acl_rules(ctx):
        if rule.principal == "User:stocks_producer" and rule.host != "*":
            raise Unmet(f"A rule for User:stocks_producer has the host {rule.host}. From how many hosts may it write?")


check.requires("stocks_consumer may read its topic in its group, and nothing more")(_has_rights("stocks_consumer"))
analyst_has_rights = check.requires("analyst may read every topic that begins with stock-, except the secret one")(
    _has_rights("analyst")
)


@check.requires("The rules that allow analyst to read are prefixed", after=analyst_has_rights)
def analyst_has_prefixed_rules(ctx: CheckContext) -> None:
    for rule in acl_rules(ctx):
        allows = rule.permission_type == AclPermissionType.ALLOW
        if rule.principal == "User:analyst" and allows and rule.resource_pattern_type != ResourcePatternType.PREFIXED:
            raise Unmet(f"The rule for {rule.name} isn't prefixed. What may analyst do with a topic that you create tomorrow?")


@check.requires("visitor may do everything with its topic")
def visitor_may_do_everything(ctx: CheckContext) -> None:
    rules = [rule for rule in acl_rules(ctx) if rule.principal == "User:visitor"]
    if not rules:
        raise Unmet("There is no rule for User:visitor.")
    for rule in rules:
        if (rule.restype, rule.name) != (ResourceType.TOPIC, "stock-prices"):
            raise Unmet(f"A rule for User:visitor is about the {ResourceType(rule.restype).name.lower()} {rule.name}.")
    if not any((rule.operation, rule.permission_type) == (AclOperation.ALL, AclPermissionType.ALLOW) for rule in rules):
        operations = ", ".join(
            sorted(f"{AclPermissionType(rule.permission_type).name} {AclOperation(rule.operation).name}" for rule in rules)
        )
        raise Unmet(f"The rules for User:visitor are {operations}. Which operation stands for every one of them?")


@check.requires("visitor may come from one address only, which isn't this machine's", after=visitor_may_do_everything)
def visitor_comes_from_one_address(ctx: CheckContext) -> None:
    rules = [rule for rule in acl_rules(ctx) if rule.principal == "User:visitor"]
    if others := [rule.host for rule in rules if rule.host != ADDRESS]:
        raise Unmet(f"A rule for User:visitor has the host {others[0]}, which isn't the address in the text.")


check.requires("So visitor may do nothing from here", after=visitor_comes_from_one_address)(_has_rights("visitor"))
