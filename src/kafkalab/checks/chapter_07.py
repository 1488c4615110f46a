"""Chapter 07: certificates, users, rules, another mechanism, Kerberos."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from kafkalab.checks.common import answer, behind, counted, existing
from kafkalab.checks.doors import IN, group_rights, topic_rights, when_knocking
from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight
from kafkalab.errors import UnknownListener

__all__ = ["LABS"]

_TIMEOUT = 10.0

# -- what several labs ask ------------------------------------------------------------------------------------------


def _admin(sight: Sight) -> AdminClient:
    """To be kept in a variable while it is asked: what it has been asked ends with it."""
    return AdminClient(sight.cluster.client_config())


def _servers(sight: Sight, listener: str) -> str:
    try:
        return sight.cluster.servers(listener)
    except UnknownListener:
        raise Unmet(f"The cluster has no listener named {listener}.") from None


def _holds(topic: str, at_least: int) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        existing(sight, topic)
        if (found := sum(sight.end_offsets(topic).values())) < at_least:
            raise Unmet(f"{topic} holds {counted(found, 'record')}, not {at_least}. Did the producer wait for the answers (flush)?")

    return probe


def _read_by(group: str, topic: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        existing(sight, topic)
        for partition, end, _ in behind(sight, sight.committed(group), topic):
            raise Unmet(
                f"In partition {partition} the group {group} has not committed what stands there ({counted(end, 'record')}). "
                "Was all of it read, and committed?"
            )

    return probe


# -- certificates ---------------------------------------------------------------------------------------------------

_SSL = "SSL"


def _client(sight: Sight) -> Mapping[str, object]:
    settings = answer(sight, "client", "the librdkafka settings of your client")
    missing = [name for name in ("security.protocol", "ssl.ca.location") if name not in settings]  # type: ignore[operator]
    if missing:
        raise Unmet(f"Your client's settings lack {missing[0]}.")
    return settings  # type: ignore[return-value]


def _shown_certificate(sight: Sight) -> None:
    _servers(sight, _SSL)
    authority = str(_client(sight)["ssl.ca.location"])
    for broker, view in sight.view().brokers.items():
        if not view.address:
            continue
        host, port = sight.cluster.bootstrap(broker, _SSL).split(":")
        context = ssl.create_default_context(cafile=authority)
        try:
            with socket.create_connection((host, int(port)), _TIMEOUT) as plain, context.wrap_socket(plain, server_hostname="localhost"):
                pass
        except ssl.SSLCertVerificationError as error:
            raise Unmet(
                f"Broker {broker} shows a certificate that your authority's does not vouch for, or that is not good for localhost: "
                f"{error.verify_message}. Which certificate stands in the key store under kafka_cluster?"
            ) from None
        except (OSError, ssl.SSLError) as error:
            raise Unmet(f"Broker {broker} does not speak TLS on its SSL listener: {error}.") from None


def _client_is_let_in(sight: Sight) -> None:
    if (told := when_knocking(_client(sight))) != IN:
        raise Unmet(f"Your client was not let in: {told}. Which of the two did not believe the other's certificate?")


def _others_are_not(sight: Sight) -> None:
    settings = dict(_client(sight))
    for name in ("ssl.certificate.location", "ssl.key.location"):
        settings.pop(name, None)
    if when_knocking(settings) == IN:
        raise Unmet("A client without a certificate was let in. Which setting of the listener asks for one?")
    plain = {"bootstrap.servers": _servers(sight, _SSL)}
    if when_knocking(plain) == IN:
        raise Unmet("A client that speaks plain text was let in on the SSL listener.")


_CERTIFICATES = Lab(
    "07_ssl",
    "Certificates made by hand",
    (
        Requirement("each broker shows a certificate of your authority, good for localhost", _shown_certificate),
        Requirement("your client is let in with its certificate", _client_is_let_in),
        Requirement("without one, or in plain text, nobody is", _others_are_not),
        Requirement("stock-prices holds the prices", _holds("stock-prices", 90)),
        Requirement("the group stocks has read them", _read_by("stocks", "stock-prices")),
    ),
    (
        "`keytool -list -v -keystore … -storepass:env STORE_PASSWORD` shows what is in a store. In the key store, kafka_cluster needs a "
        "chain of two certificates; the issuer of the first is the owner of the second.",
        "The order counts: the authority's certificate goes into the key store before the signed one.",
        "A client that says `_SSL` did not believe the broker: look at `ssl.ca.location`. One that gets an alert was not believed: look at "
        "its certificate, its key, and who signed it.",
        "`ssl.client.auth` is `none`, `requested` or `required`.",
    ),
)

# -- users with passwords -------------------------------------------------------------------------------------------

_USERS = {"admin": "kafka-123", "stocks_consumer": "consumer123", "stocks_producer": "producer123"}
_SCRAM_PASSWORD = "kafka123"


def _login(sight: Sight, user: str, password: str, mechanism: str) -> dict[str, object]:
    return {
        "bootstrap.servers": _servers(sight, "SASL_SSL"),
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(sight.cluster.authority.certificate),
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def _in_with(mechanism: str, passwords: Mapping[str, str]) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        for user, password in passwords.items():
            if (told := when_knocking(_login(sight, user, password, mechanism))) != IN:
                raise Unmet(
                    f"{user} is not let in by {mechanism} with the password of the text: {told}. Do the brokers know user and mechanism?"
                )

    return probe


def _not_in_with(mechanism: str) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        for user in _USERS:
            if (told := when_knocking(_login(sight, user, "a wrong one", mechanism))) == IN:
                raise Unmet(f"{user} is let in by {mechanism} with any password.")
            if told != "_AUTHENTICATION":
                raise Unmet(f"With a wrong password {user} is not told _AUTHENTICATION, but: {told}. Does the listener accept {mechanism}?")

    return probe


def _kept(sight: Sight) -> None:
    admin = _admin(sight)
    asked = admin.describe_user_scram_credentials(list(_USERS), request_timeout=_TIMEOUT)
    for user, future in asked.items():
        try:
            found = {info.mechanism.name: info.iterations for info in future.result().scram_credential_infos}
        except KafkaException:
            raise Unmet(f"The cluster knows no SCRAM user {user}.") from None
        for mechanism, iterations in (("SCRAM_SHA_256", 8192), ("SCRAM_SHA_512", 4096)):
            if found.get(mechanism) != iterations:
                kept = f"{found[mechanism]} iterations" if mechanism in found else "nothing"
                raise Unmet(f"For {user} and {mechanism} the cluster keeps {kept}, not {iterations} iterations.")


_PASSWORDS = (
    Lab(
        "07_plain",
        "Users by PLAIN",
        (
            Requirement("the three users are let in with their passwords", _in_with("PLAIN", _USERS)),
            Requirement("with another password they are not", _not_in_with("PLAIN")),
            Requirement("stock-prices holds the prices", _holds("stock-prices", 60)),
            Requirement("the group stocks has read them", _read_by("stocks", "stock-prices")),
        ),
        (
            "A JAAS line is: module, `required`, options as name=\"value\", and one semicolon, at the very end.",
            "`user_admin=\"…\"` says that there is a user admin; `username=\"admin\"` says as whom the broker itself logs in.",
            "`sasl.enabled.mechanisms` is a list with commas. A mechanism that is not in it is refused, whatever the line says.",
        ),
    ),
    Lab(
        "07_scram",
        "Users by SCRAM, made while the cluster runs",
        (
            Requirement("each user is kept for both mechanisms, with 8192 and 4096 iterations", _kept),
            Requirement("the three are let in by SCRAM-SHA-256", _in_with("SCRAM-SHA-256", dict.fromkeys(_USERS, _SCRAM_PASSWORD))),
            Requirement("with another password they are not", _not_in_with("SCRAM-SHA-256")),
            Requirement("stock-prices holds all prices", _holds("stock-prices", 120)),
            Requirement("the group stocks-again has read them", _read_by("stocks-again", "stock-prices")),
        ),
        (
            "`kafka-configs.sh … --describe --entity-type users` shows who is known, and with how many iterations.",
            "The file for `--add-config-file` has one line, for one mechanism: `SCRAM-SHA-256=iterations=8192,password=…`. Without "
            "iterations, Kafka takes its default.",
            "The password is kafka123 here, for all three; with PLAIN it was another one for each.",
        ),
    ),
)

# -- rules ----------------------------------------------------------------------------------------------------------

_TOPICS = ("stock-prices", "stock-news", "stock-secret")

# User, resource, name → what the user must be able to do there, of reading and writing.
_WANTED: tuple[tuple[str, str, str, frozenset[str]], ...] = (
    ("stocks_producer", "topic", "stock-prices", frozenset({"WRITE"})),
    ("stocks_producer", "topic", "stock-news", frozenset()),
    ("stocks_consumer", "topic", "stock-prices", frozenset({"READ"})),
    ("stocks_consumer", "topic", "stock-secret", frozenset()),
    ("stocks_consumer", "group", "stocks", frozenset({"READ"})),
    ("stocks_consumer", "group", "others", frozenset()),
    ("analyst", "topic", "stock-prices", frozenset({"READ"})),
    ("analyst", "topic", "stock-news", frozenset({"READ"})),
    ("analyst", "topic", "stock-secret", frozenset()),
    ("analyst", "group", "analyst-7", frozenset({"READ"})),
    ("visitor", "topic", "stock-prices", frozenset()),
)


def _may(users: Iterable[str]) -> Callable[[Sight], None]:
    def probe(sight: Sight) -> None:
        for topic in _TOPICS:
            existing(sight, topic)
        for user, kind, name, wanted in _WANTED:
            if user not in users:
                continue
            config = sight.cluster.client_config(user)
            rights = topic_rights(config, name) if kind == "topic" else group_rights(config, name)
            got = rights & {"READ", "WRITE"}
            if missing := wanted - got:
                raise Unmet(f"{user} may not {min(missing).lower()} the {kind} {name}.")
            if more := got - wanted:
                raise Unmet(f"{user} may {min(more).lower()} the {kind} {name}, which is more than the text asks for.")

    return probe


def _rules(sight: Sight) -> list:
    every = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    admin = _admin(sight)
    return admin.describe_acls(every, request_timeout=_TIMEOUT).result()


def _by_host(sight: Sight) -> None:
    found = [rule for rule in _rules(sight) if rule.principal == "User:visitor"]
    if not found:
        raise Unmet("There is no rule for User:visitor.")
    if any(rule.host != "198.51.100.1" for rule in found):
        raise Unmet("The visitor may come from other hosts than 198.51.100.1.")


def _by_prefix(sight: Sight) -> None:
    allowing = [r for r in _rules(sight) if r.principal == "User:analyst" and r.permission_type == AclPermissionType.ALLOW]
    patterns = {rule.resource_pattern_type for rule in allowing}
    if patterns != {ResourcePatternType.PREFIXED}:
        raise Unmet("The analyst's rules that allow are to be by prefix, so that they hold for topics that come later, too.")


_ACLS = Lab(
    "07_acls",
    "Rules for four users",
    (
        Requirement("the producer may write its topic, and no more", _may(["stocks_producer"])),
        Requirement("the consumer may read its topic in its group, and no more", _may(["stocks_consumer"])),
        Requirement("the analyst may read what begins with stock-, but not the secret one", _may(["analyst"])),
        Requirement("the analyst's rules are by prefix", _by_prefix),
        Requirement("the visitor may come from one host only, which is not this one", _by_host),
        Requirement("so the visitor may do nothing here", _may(["visitor"])),
    ),
    (
        "A rule has a resource (type, name, literal or prefixed), a principal (`User:…`), a host, an operation, and whether it allows or denies.",
        "`AclBinding(restype, name, resource_pattern_type, principal, host, operation, permission_type)`: the function `rule` fills it for you.",
        "A consumer needs the topic and its group. Read brings Describe with it.",
        "Too much? `kafka-acls.sh --remove` with the same words as `--add` takes a rule away.",
    ),
)

# -- another mechanism ----------------------------------------------------------------------------------------------

_NEW = "SCRAM-SHA-256"


def _brokers_use_it(sight: Sight) -> None:
    admin = _admin(sight)
    for broker, view in sight.view().brokers.items():
        if not view.address:
            continue
        resource = ConfigResource(ResourceType.BROKER, str(broker))  # one a call: each broker answers for itself
        told = admin.describe_configs([resource], request_timeout=_TIMEOUT)[resource].result()
        if (mechanism := told["sasl.mechanism.inter.broker.protocol"].value) != _NEW:
            raise Unmet(f"Broker {broker} logs in to the other one by {mechanism}.")


def _each_broker(sight: Sight, mechanism: str) -> Iterable[tuple[int, str]]:
    config = sight.cluster.client_config("stocks_producer", "SASL_SSL", mechanism)
    for broker, view in sight.view().brokers.items():
        if view.address:
            yield broker, when_knocking({**config, "bootstrap.servers": sight.cluster.bootstrap(broker, "SASL_SSL")})


def _old_is_refused(sight: Sight) -> None:
    for broker, told in _each_broker(sight, "PLAIN"):
        if told == IN:
            raise Unmet(f"Broker {broker} still lets clients in by PLAIN.")


def _new_is_let_in(sight: Sight) -> None:
    for broker, told in _each_broker(sight, _NEW):
        if told != IN:
            raise Unmet(f"Broker {broker} does not let stocks_producer in by {_NEW}: {told}.")


def _nothing_lost(sight: Sight) -> None:
    writers = answer(sight, "writers", "the ledger producers, the old one and the new one")
    if len(writers) < 2:  # type: ignore[arg-type]
        raise Unmet("Only one writer has worked. Who sends by the new mechanism?")
    existing(sight, "stock-prices")
    there = {(m.partition(), m.offset()): (m.key(), m.value()) for m in sight.records("stock-prices")}
    for writer in writers:  # type: ignore[attr-defined]
        if not writer.acknowledged:
            raise Unmet(f"Nothing of the writer {writer.name} was ever acknowledged.")
        if writer.failed:
            raise Unmet(f"{counted(writer.failed, 'message')} of the writer {writer.name} had to be given up: {writer.failures}.")
        for entry in writer.entries:
            if there.get((entry.partition, entry.offset)) != ((entry.key or "").encode(), entry.value.encode()):
                raise Unmet(f"{entry.value!r} of the writer {writer.name} was acknowledged and is not there.")


def _nobody_shut_out(sight: Sight) -> None:
    knocks = answer(sight, "knocks", "who knocked, and who got in: [(mechanism, True or False), …]")
    if shut_out := [mechanism for mechanism, inside in knocks if not inside]:  # type: ignore[attr-defined]
        raise Unmet(
            f"{counted(len(shut_out), 'client')} knocked by {shut_out[0]} and did not get in. Was a broker restarted before the other "
            "one was back?"
        )
    if {mechanism for mechanism, _ in knocks} != {"PLAIN", _NEW}:  # type: ignore[attr-defined]
        raise Unmet("Nobody knocked by both mechanisms. When do the clients move?")


_ROLLING = Lab(
    "07_rolling",
    "From PLAIN to SCRAM, while everybody works",
    (
        Requirement("brokers log in to each other by SCRAM-SHA-256", _brokers_use_it),
        Requirement("clients are let in by SCRAM-SHA-256", _new_is_let_in),
        Requirement("and no longer by PLAIN", _old_is_refused),
        Requirement("no message was given up, and none that was acknowledged is missing", _nothing_lost),
        Requirement("nobody was ever shut out", _nobody_shut_out),
    ),
    (
        "`cluster.restart(broker, settings={…})` starts a broker again with settings that it keeps from then on.",
        "Wait after each broker: `cluster.wait_for(lambda view: all(len(p.isr) == 2 for p in view.topics[\"stock-prices\"]), \"…\", 60)`.",
        "A broker that does not come back? `print(cluster.logs(broker)[-3000:])`: a mechanism without a line of its own, or a user broker "
        "that SCRAM does not know.",
    ),
)

# -- Kerberos -------------------------------------------------------------------------------------------------------

_PRODUCER, _CONSUMER = "kafka-producer-stocks", "kafka-consumer-stocks"


def _logged_in(sight: Sight) -> None:
    log = sight.cluster.logs(0)
    for principal in (_PRODUCER, _CONSUMER):
        if f"authenticationID={principal}@" not in log:
            raise Unmet(f"The broker has not seen {principal} log in. What does the tool say, and what does the broker's log?")


def _named_rules(sight: Sight) -> None:
    found = {(rule.principal, rule.restype.name, rule.operation.name) for rule in _rules(sight)}
    wanted = ((_PRODUCER, "TOPIC", "WRITE"), (_CONSUMER, "TOPIC", "READ"), (_CONSUMER, "GROUP", "READ"))
    for name, kind, operation in wanted:
        principal = f"User:{name}"
        if (principal, kind, operation) not in found:
            raise Unmet(f"There is no rule that lets {principal} {operation.lower()} a {kind.lower()}.")


def _no_ticket(sight: Sight) -> None:
    told = " ".join(map(str, answer(sight, "refused", "what the tool wrote when the KDC was gone")))  # type: ignore[call-overload]
    if "LoginException" not in told and "Connection refused" not in told:
        raise Unmet("In what the tool wrote nothing says that it could not log in. Was the KDC gone by then?")


_KERBEROS = Lab(
    "07_kerberos",
    "Tickets of a KDC",
    (
        Requirement("both clients have logged in by Kerberos", _logged_in),
        Requirement("rules name them", _named_rules),
        Requirement("stock-prices holds three prices", _holds("stock-prices", 3)),
        Requirement("the group stocks has read them", _read_by("stocks", "stock-prices")),
        Requirement("without the KDC there is no ticket", _no_ticket),
    ),
    (
        "The options of the module are written without commas, and end with one semicolon. `print(kdc.keytab(BROKER))` shows where the "
        "broker's key table is.",
        "A principal is given with its realm: `name@REALM`, and the realm is `kdc.realm`.",
        "`Cannot locate KDC`? The tool has not been told where it is: look at `os.environ[\"KAFKA_OPTS\"]`.",
        "`-Dsun.security.krb5.debug=true`, added to KAFKA_OPTS, makes Java tell every step.",
    ),
)

LABS = (_CERTIFICATES, *_PASSWORDS, _ACLS, _ROLLING, _KERBEROS)
