"""The labs of chapter 07: wrong answers are told apart from the right one, with a sentence that helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kafkalab import Cluster, wait_until
from kafkalab.checks.doors import IN, when_knocking
from kafkalab.cluster import Listener
from kafkalab.security import CertificateAuthority, Security, login_line
from kafkalab.workers import Acknowledgement

from .support import Verdict

pytestmark = pytest.mark.cluster


def create(cluster: Cluster, *topics: str) -> None:
    admin = AdminClient(cluster.client_config())
    for topic in topics:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    cluster.wait_for(lambda v: all(t in v.topics and None not in v.leaders(t).values() for t in topics), "the topics")


def send(cluster: Cluster, count: int, topic: str = "stock-prices", **message: object) -> list[tuple[int, int]]:
    places: list[tuple[int, int]] = []
    producer = Producer(cluster.client_config())
    for number in range(count):
        told = {"value": str(number), **message}
        producer.produce(topic, on_delivery=lambda _, m: places.append((m.partition(), m.offset())), **told)
    assert producer.flush(20) == 0
    return places


def commit(cluster: Cluster, group: str, offset: int, topic: str = "stock-prices") -> None:
    consumer = Consumer(cluster.client_config(group_id=group))
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


# -- 07_ssl ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority") / "ca")


def ssl_cluster(authority: CertificateAuthority, hosts: list[str], client_auth: str) -> Cluster:
    settings = {**authority.issue("broker", hosts).java(), "ssl.client.auth": client_auth}
    return Cluster(1, backend="local", listeners=[Listener(), Listener("SSL", "SSL", settings=settings)])


def ssl_client(cluster: Cluster, authority: CertificateAuthority) -> dict[str, object]:
    return {"bootstrap.servers": cluster.servers("SSL"), "security.protocol": "SSL", **authority.issue("stocks").client()}


def test_ssl(authority: CertificateAuthority, verdict: Verdict, tmp_path: Path) -> None:
    with ssl_cluster(authority, ["localhost", "127.0.0.1"], "required") as cluster:
        client = ssl_client(cluster, authority)
        verdict.says("Give check() your answer as client=", "07_ssl", cluster)
        verdict.says("There is no topic 'stock-prices' yet", "07_ssl", cluster, client=client)
        create(cluster, "stock-prices")
        send(cluster, 89)
        verdict.says("holds 89 records, not 90", "07_ssl", cluster, client=client)
        send(cluster, 1)
        verdict.says("the group stocks has not committed", "07_ssl", cluster, client=client)
        commit(cluster, "stocks", 90)
        verdict.passes("07_ssl", cluster, client=client)
        verdict.says("Your client's settings lack security.protocol", "07_ssl", cluster, client={"bootstrap.servers": cluster.servers("SSL")})
        other = CertificateAuthority(tmp_path / "other")
        trusting_others = {**client, "ssl.ca.location": str(other.certificate)}
        verdict.says("that your authority's does not vouch for", "07_ssl", cluster, client=trusting_others)
        foreign = {**other.issue("stocks").client(), "ssl.ca.location": str(authority.certificate)}
        verdict.says("Your client was not let in: TLS alert", "07_ssl", cluster, client={**client, **foreign})


def test_ssl_of_the_untouched_lab(authority: CertificateAuthority, verdict: Verdict) -> None:
    with Cluster(1, backend="local") as cluster:
        untouched = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL", **authority.issue("stocks").client()}
        verdict.says("The cluster has no listener named SSL", "07_ssl", cluster, client=untouched)


@pytest.mark.parametrize(
    ("hosts", "client_auth", "says"),
    [
        (["kafka.example.com", "127.0.0.1"], "required", "or that is not good for localhost"),
        (["localhost", "127.0.0.1"], "none", "A client without a certificate was let in"),
    ],
)
def test_ssl_wrong_brokers(authority: CertificateAuthority, verdict: Verdict, hosts: list[str], client_auth: str, says: str) -> None:
    with ssl_cluster(authority, hosts, client_auth) as cluster:
        verdict.says(says, "07_ssl", cluster, client=ssl_client(cluster, authority))


# -- 07_plain and 07_scram ------------------------------------------------------------------------------------------

USERS = {"admin": "kafka-123", "stocks_consumer": "consumer123", "stocks_producer": "producer123"}


def users_cluster(mechanisms: str, users: dict[str, str]) -> Cluster:
    login = {
        "sasl.enabled.mechanisms": mechanisms,
        "plain.sasl.jaas.config": login_line("PLAIN", **{f"user_{name}": word for name, word in users.items()}),
        "scram-sha-256.sasl.jaas.config": login_line("SCRAM-SHA-256"),
        "scram-sha-512.sasl.jaas.config": login_line("SCRAM-SHA-512"),
    }
    listeners = [Listener(), Listener("SASL_SSL", "SASL_SSL", settings=login)]
    return Cluster(1, backend="local", listeners=listeners, security=Security(authorizer=False))


def make_users(cluster: Cluster, password: str, iterations: int, *mechanisms: ScramMechanism) -> None:
    admin = AdminClient(cluster.client_config())
    wanted = [
        UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, iterations), password.encode())
        for user in USERS
        for mechanism in mechanisms
    ]
    for made in admin.alter_user_scram_credentials(wanted).values():
        made.result()


def test_plain_and_scram(verdict: Verdict) -> None:
    with users_cluster("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", USERS) as cluster:
        create(cluster, "stock-prices")
        verdict.says("holds 0 records, not 60", "07_plain", cluster)
        send(cluster, 60)
        verdict.says("the group stocks has not committed", "07_plain", cluster)
        commit(cluster, "stocks", 60)
        verdict.passes("07_plain", cluster)

        verdict.says("knows no SCRAM user admin", "07_scram", cluster)
        make_users(cluster, "kafka123", 4096, ScramMechanism.SCRAM_SHA_256)
        verdict.says("keeps 4096 iterations, not 8192", "07_scram", cluster)
        make_users(cluster, "kafka-123", 8192, ScramMechanism.SCRAM_SHA_256)
        verdict.says("keeps nothing, not 4096", "07_scram", cluster)
        make_users(cluster, "kafka123", 4096, ScramMechanism.SCRAM_SHA_512)
        verdict.says("is not let in by SCRAM-SHA-256 with the password of the text: _AUTHENTICATION", "07_scram", cluster)
        make_users(cluster, "kafka123", 8192, ScramMechanism.SCRAM_SHA_256)
        config = {**cluster.client_config(listener="SASL_SSL"), "sasl.mechanism": "SCRAM-SHA-256", "sasl.password": "kafka123"}
        for user in USERS:
            wait_until(lambda u=user: when_knocking({**config, "sasl.username": u}) == IN, 20, "the password to be known")
        verdict.says("holds 60 records, not 120", "07_scram", cluster)
        send(cluster, 60)
        verdict.says("the group stocks-again has not committed", "07_scram", cluster)
        commit(cluster, "stocks-again", 120)
        verdict.passes("07_scram", cluster)


def test_plain_with_another_password_and_without_the_mechanism(verdict: Verdict) -> None:
    with users_cluster("SCRAM-SHA-256,PLAIN", {**USERS, "admin": "kafka123"}) as cluster:
        verdict.says("admin is not let in by PLAIN with the password of the text", "07_plain", cluster)
    with users_cluster("SCRAM-SHA-256", USERS) as cluster:
        verdict.says("Do the brokers know user and mechanism?", "07_plain", cluster)
    with Cluster(1, backend="local", security=Security()) as cluster:
        verdict.says("no listener named SASL_SSL", "07_plain", cluster)


# -- 07_acls --------------------------------------------------------------------------------------------------------

LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def rule(user, operation, kind, name, pattern=LITERAL, host="*", permission=ALLOW) -> AclBinding:  # noqa: ANN001
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


@pytest.fixture(scope="module")
def ruled() -> Iterator[Cluster]:
    users = {name: name for name in ("stocks_producer", "stocks_consumer", "analyst", "visitor")}
    with Cluster(1, backend="local", listeners=[Listener("SASL_SSL", "SASL_SSL")], security=Security(users)) as cluster:
        create(cluster, "stock-prices", "stock-news", "stock-secret")
        yield cluster


def set_rules(cluster: Cluster, rules: dict[str, AclBinding]) -> None:
    admin = AdminClient(cluster.client_config())
    every = AclBindingFilter(ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)
    for deleted in admin.delete_acls([every]).values():
        deleted.result()
    cluster.wait_for_acls(0)
    if rules:
        for created in admin.create_acls(list(rules.values())).values():
            created.result()
    cluster.wait_for_acls(len(rules))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"write": None}, "stocks_producer may not write the topic stock-prices"),
        ({"write": rule("stocks_producer", ALL, TOPIC, "stock-prices")}, "stocks_producer may read the topic stock-prices, which is more"),
        ({"write": rule("stocks_producer", WRITE, TOPIC, "stock-", PREFIXED)}, "stocks_producer may write the topic stock-news, which is more"),
        ({"read": None}, "stocks_consumer may not read the topic stock-prices"),
        ({"group": None}, "stocks_consumer may not read the group stocks"),
        ({"group": rule("stocks_consumer", READ, GROUP, "*")}, "stocks_consumer may read the group others, which is more"),
        ({"prefix": rule("analyst", READ, TOPIC, "stock-prices")}, "analyst may not read the topic stock-news"),
        ({"secret": None}, "analyst may read the topic stock-secret, which is more"),
        ({"groups": None}, "analyst may not read the group analyst-7"),
        (
            {"prefix": rule("analyst", READ, TOPIC, "stock-prices"), "more": rule("analyst", READ, TOPIC, "stock-news")},
            "are to be by prefix",
        ),
        ({"visitor": None}, "There is no rule for User:visitor"),
        ({"visitor": rule("visitor", ALL, TOPIC, "stock-prices")}, "The visitor may come from other hosts"),
    ],
)
def test_acls_wrong(ruled: Cluster, verdict: Verdict, wrong: dict[str, AclBinding | None], says: str) -> None:
    set_rules(ruled, {name: r for name, r in {**RIGHT, **wrong}.items() if r is not None})
    verdict.says(says, "07_acls", ruled)


def test_acls_right_and_none(ruled: Cluster, verdict: Verdict) -> None:
    set_rules(ruled, RIGHT)
    verdict.passes("07_acls", ruled)
    set_rules(ruled, {})
    verdict.says("stocks_producer may not write", "07_acls", ruled)


# -- 07_rolling -----------------------------------------------------------------------------------------------------

NEW = "SCRAM-SHA-256"


@dataclass
class Writer:
    """What the check asks of a ledger producer."""

    name: str
    entries: list[Acknowledgement]
    failures: dict[str, int] = field(default_factory=dict)

    @property
    def acknowledged(self) -> int:
        return len(self.entries)

    @property
    def failed(self) -> int:
        return sum(self.failures.values())


def written(cluster: Cluster, name: str) -> Writer:
    places = send(cluster, 5, key=name, value="message 1")
    return Writer(name, [Acknowledgement(1, "message 1", name, p, offset, 0.0, 0.0) for p, offset in places])


def test_rolling(verdict: Verdict) -> None:
    security = Security({"stocks_producer": "secret"}, mechanisms=("PLAIN",), between_brokers="PLAIN", authorizer=False)
    with Cluster(1, backend="local", listeners=[Listener("SASL_SSL", "SASL_SSL")], security=security) as cluster:
        create(cluster, "stock-prices")
        old, new = written(cluster, "old"), written(cluster, "new")
        right = {"writers": [old, new], "knocks": [("PLAIN", True), (NEW, True)]}
        verdict.says("Broker 0 logs in to the other one by PLAIN", "07_rolling", cluster, **right)
        verdict.says("Broker 0 does not let stocks_producer in by SCRAM-SHA-256", "07_rolling", cluster, **right)
        verdict.says("Broker 0 still lets clients in by PLAIN", "07_rolling", cluster, **right)
        admin = AdminClient(cluster.client_config())
        people = {"stocks_producer": "secret", "broker": cluster.broker_password}
        wanted = [UserScramCredentialUpsertion(n, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), w.encode()) for n, w in people.items()]
        for made in admin.alter_user_scram_credentials(wanted).values():
            made.result()
        settings = {"sasl.mechanism.inter.broker.protocol": NEW}
        for listener, line in (("sasl_ssl", login_line(NEW)), ("internal", cluster.broker_login(NEW))):
            settings[f"listener.name.{listener}.sasl.enabled.mechanisms"] = NEW
            settings[f"listener.name.{listener}.scram-sha-256.sasl.jaas.config"] = line
        cluster.restart(0, settings=settings)
        verdict.passes("07_rolling", cluster, **right)
        lost = Writer("old", [Acknowledgement(9, "message 9", "old", 0, 99, 0.0, 0.0)])
        for says, wrong in {
            "Give check() your answer as writers=": {"writers": []},
            "Only one writer has worked": {"writers": [old]},
            "Nothing of the writer new was ever acknowledged": {"writers": [old, Writer("new", [])]},
            "1 message of the writer new had to be given up": {"writers": [old, Writer("new", new.entries, {"_MSG_TIMED_OUT": 1})]},
            "'message 9' of the writer old was acknowledged and is not there": {"writers": [lost, new]},
            "Give check() your answer as knocks=": {"knocks": []},
            "1 client knocked by PLAIN and did not get in": {"knocks": [("PLAIN", False), (NEW, True)]},
            "Nobody knocked by both mechanisms": {"knocks": [("PLAIN", True)]},
        }.items():
            verdict.says(says, "07_rolling", cluster, **{**right, **wrong})


# -- 07_kerberos ----------------------------------------------------------------------------------------------------


def test_kerberos(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [
        rule("kafka-producer-stocks", WRITE, TOPIC, "stock-prices"),
        rule("kafka-consumer-stocks", READ, TOPIC, "stock-prices"),
        rule("kafka-consumer-stocks", READ, GROUP, "stocks"),
    ]
    right = {"refused": ["Caused by: javax.security.auth.login.LoginException: …"]}
    with Cluster(1, backend="local", security=Security()) as cluster:
        verdict.says("has not seen kafka-producer-stocks log in", "07_kerberos", cluster, **right)
        seen = "".join(f"authenticationID=kafka-{who}-stocks@KAFKALAB.TEST;" for who in ("producer", "consumer"))
        monkeypatch.setattr(cluster, "logs", lambda _: seen)
        verdict.says("no rule that lets User:kafka-producer-stocks write a topic", "07_kerberos", cluster, **right)
        for number in range(3):
            set_rules(cluster, {str(n): r for n, r in enumerate(rules[: number + 1])})
            if number < 2:
                verdict.says("no rule that lets User:kafka-consumer-stocks read a", "07_kerberos", cluster, **right)
        verdict.says("There is no topic 'stock-prices' yet", "07_kerberos", cluster, **right)
        create(cluster, "stock-prices")
        send(cluster, 3)
        verdict.says("the group stocks has not committed", "07_kerberos", cluster, **right)
        commit(cluster, "stocks", 3)
        verdict.passes("07_kerberos", cluster, **right)
        verdict.says("Give check() your answer as refused=", "07_kerberos", cluster)
        verdict.says("nothing says that it could not log in", "07_kerberos", cluster, refused=[">"])
