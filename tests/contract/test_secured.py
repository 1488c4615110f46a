"""What a secured cluster guarantees, on every back end."""

from __future__ import annotations

import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
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

from contract_support import DOCKER_AT_LENGTH, make_topic
from kafkalab import Cluster, wait_until
from kafkalab.checks.access import try_connect
from kafkalab.cluster import Listener
from kafkalab.cluster.offsets import watermarks
from kafkalab.errors import NoSuperUser, UnknownListener, UnknownUser
from kafkalab.paths import files_below
from kafkalab.security import Security
from support import PATIENCE, commands

LISTENERS = (
    Listener("PLAINTEXT"),
    Listener("SSL", "SSL"),
    Listener("SASL_PLAINTEXT", "SASL_PLAINTEXT"),
    Listener("SASL_SSL", "SASL_SSL"),
)
NOT_ASCII = {"zoë-лев": "pässwörd 🙂", "ann": "two\nlines, pässwörd 🙂"}
USERS = {"admin": 'quo"ted\\secret', "stocks_producer": "producer123", **NOT_ASCII}


def outcome(config: dict[str, object], topic: str) -> str:
    """Send a record: the name of the error with which it failed, or of the one for which the client could not connect."""
    told: list[str] = []
    producer = Producer({**config, "error_cb": lambda error: told.append(error.name())})
    producer.produce(topic, "v", on_delivery=lambda error, _: told.append(error.name() if error else "sent"))

    def told_something() -> str | None:
        producer.poll(0.05)
        return next((name for name in told if name not in ("_ALL_BROKERS_DOWN", "_TRANSPORT")), None)

    name = wait_until(told_something, PATIENCE, "an outcome", last_seen=lambda: told)
    producer.purge()
    return name


@pytest.fixture(scope="module")
def secured(backend: str) -> Iterator[Cluster]:
    security = Security(USERS, mechanisms=("PLAIN", "SCRAM-SHA-256"), super_users=["admin", *NOT_ASCII])
    with Cluster(2, listeners=LISTENERS, security=security, backend=backend) as cluster:
        yield cluster


def test_all_listeners_stand_side_by_side_and_the_super_user_gets_through(secured: Cluster) -> None:
    topic = make_topic(secured, 1, 2)
    assert {b.state for b in secured.describe().brokers.values()} == {"up"}
    for listener in ("SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        assert outcome(secured.client_config("admin", listener), topic) == "sent"
    assert outcome(secured.client_config(), topic) == "sent"
    assert sum(high for _, high in watermarks(secured, topic).values()) == 4


@DOCKER_AT_LENGTH
def test_who_is_not_known_or_not_allowed_is_refused(secured: Cluster) -> None:
    topic = make_topic(secured, 1, 1)
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED).name()
    assert outcome(secured.client_config(listener="PLAINTEXT"), topic) == denied
    assert outcome(secured.client_config("stocks_producer", "SASL_SSL"), topic) == denied
    assert outcome(secured.client_config("stranger", "SSL"), topic) == denied
    assert try_connect(secured.client_config(listener="SSL")) == "TLS alert: bad certificate"
    assert outcome(secured.client_config("admin", "SASL_SSL", sasl_password="wrong"), topic) == "_AUTHENTICATION"
    with pytest.raises(UnknownUser, match=r"no user 'nobody'.*admin, .*stocks_producer"):
        secured.client_config("nobody")
    with pytest.raises(UnknownListener, match="no listener 'NONE'; there are PLAINTEXT, SSL"):
        secured.client_config("admin", "NONE")


@DOCKER_AT_LENGTH
def test_a_rule_holds_on_every_broker_once_it_was_waited_for(secured: Cluster) -> None:
    topic = make_topic(secured, 1, 2)
    admin = AdminClient(secured.client_config())
    rule = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:stocks_producer",
        "*",
        AclOperation.WRITE,
        AclPermissionType.ALLOW,
    )
    for created in admin.create_acls([rule]).values():
        created.result()
    secured.security.wait_for_acls(1)
    for broker in (0, 1):
        config = secured.client_config("stocks_producer", "SASL_SSL") | {
            "bootstrap.servers": secured.clients.bootstrap(broker, "SASL_SSL")
        }
        assert outcome(config, topic) == "sent"


# Kafka reads the names in messages of SCRAM as ASCII, and refuses others (its class ScramMessages).
@DOCKER_AT_LENGTH
@pytest.mark.parametrize("user", ["admin", "ann"])
def test_scram_users_are_made_on_the_running_cluster(secured: Cluster, user: str) -> None:
    topic = make_topic(secured, 1, 1)
    config = secured.client_config(user, "SASL_SSL", "SCRAM-SHA-256")
    assert outcome(config, topic) == "_AUTHENTICATION"
    admin = AdminClient(secured.client_config())
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    wanted = UserScramCredentialUpsertion(user, credential, USERS[user].encode())
    for made in admin.alter_user_scram_credentials([wanted]).values():
        made.result()
    wait_until(lambda: outcome(config, topic) == "sent", PATIENCE, "every broker to know the user")


def test_secrets_are_readable_by_their_owner_alone_and_no_process_shows_one(secured: Cluster) -> None:
    secured.client_config("admin", "SSL")
    secured.clients.command_config("admin", "SASL_SSL")
    folder = secured.nodes.run.directory
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = set()
    for path in files_below(folder):
        with suppress(FileNotFoundError):  # a broker renames a checkpoint once it's written
            if path.is_file() and path.name != "docker":  # that one names the engine
                modes.add(stat.S_IMODE(path.stat().st_mode))
    assert modes == {0o600}
    words = [secured.security.broker_password, secured.security.authority.password, *USERS.values()]
    assert not [word for command in commands(secured.nodes.run.id) for word in words if word in " ".join(command)]
    assert not [word for broker in (0, 1) for word in words if word in secured.nodes.logs(broker)]


@pytest.mark.parametrize("user", NOT_ASCII)
def test_a_name_and_a_password_that_are_not_ascii(secured: Cluster, user: str) -> None:
    topic = make_topic(secured, 1, 1)
    assert outcome(secured.client_config(user, "SSL"), topic) == "sent"
    assert outcome(secured.client_config(user, "SASL_SSL", "PLAIN"), topic) == "sent"


@DOCKER_AT_LENGTH
@pytest.mark.parametrize("user", NOT_ASCII)
def test_they_reach_kafkas_tools_too(secured: Cluster, user: str) -> None:
    topic = make_topic(secured, 1, 1)
    command = ["kafka-topics.sh", "--bootstrap-server", secured.clients.servers("SASL_SSL"), "--list"]
    login = ["--command-config", str(secured.clients.command_config(user, "SASL_SSL"))]
    listed = subprocess.run(command + login, capture_output=True, text=True, timeout=PATIENCE)
    assert topic in listed.stdout, listed.stderr[-2000:]


@DOCKER_AT_LENGTH
def test_faults_are_seen_on_a_secured_cluster_too_and_other_settings_hold(secured: Cluster) -> None:
    topic = make_topic(secured, 1, 2)
    secured.kill(1)
    assert secured.describe().brokers[1].state == "dead"
    by_plain = secured.client_config("admin", "SASL_PLAINTEXT", "PLAIN") | {
        "bootstrap.servers": secured.clients.bootstrap(1, "SASL_PLAINTEXT")
    }
    secured.restart(1, settings={"listener.name.sasl_plaintext.sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    assert outcome(by_plain, topic) == "_AUTHENTICATION"
    secured.isolate(1)
    secured.wait_for(lambda v: v.out_of_sync(topic, 1), "it to be fenced")
    secured.heal(1)
    secured.wait_for(lambda v: v.in_sync(topic), "all in sync", PATIENCE)


@pytest.fixture(scope="module")
def by_scram(backend: str) -> Iterator[Cluster]:
    """Two brokers that log in to each other by SCRAM from the beginning."""
    security = Security({"admin": "a"}, mechanisms=("PLAIN",), between_brokers="SCRAM-SHA-512")
    with Cluster(2, listeners=[Listener("SASL_SSL", "SASL_SSL")], security=security, backend=backend) as cluster:
        yield cluster


@DOCKER_AT_LENGTH
def test_brokers_that_log_in_to_each_other_by_scram_from_the_beginning(by_scram: Cluster) -> None:
    topic = make_topic(by_scram, 1, 2)
    by_scram.wait_for(lambda v: v.in_sync(topic), "both copies")
    assert outcome(by_scram.client_config("admin"), topic) == "sent"


@pytest.mark.at_length
def test_a_login_that_a_restart_was_given_is_kept(by_scram: Cluster) -> None:
    topic = make_topic(by_scram, 1, 2)
    config = by_scram.client_config("admin") | {"bootstrap.servers": by_scram.clients.bootstrap(0)}
    none = {"listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    login = {"listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": by_scram.security.broker_login("SCRAM-SHA-512")}
    by_scram.restart(0, settings={**none, **login})
    assert outcome(config, topic) == "_AUTHENTICATION"
    # It keeps the login, without which it would not start.
    by_scram.restart(0, settings={"listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"})
    assert outcome(config, topic) == "sent"


@DOCKER_AT_LENGTH
def test_an_authorizer_without_a_super_user_is_refused_before_it_hangs(backend: str) -> None:
    authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    with pytest.raises(NoSuperUser, match=r"Name User:ANONYMOUS in super.users"):
        Cluster(1, backend=backend, settings=authorizer)
    with pytest.raises(NoSuperUser):
        Cluster(1, backend=backend, settings={**authorizer, "super.users": "User:admin"})


@DOCKER_AT_LENGTH
def test_a_topic_that_nobody_may_see_is_not_described(secured: Cluster) -> None:
    topic = make_topic(secured, 1, 1)
    admin = AdminClient(secured.client_config("stocks_producer", "SASL_SSL"))
    metadata = admin.list_topics(topic, timeout=10).topics[topic]
    assert metadata.error is not None and metadata.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException):
        admin.create_topics([NewTopic("other", 1, 1)])["other"].result()
