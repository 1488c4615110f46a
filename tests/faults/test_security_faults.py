"""Certificates, logins and tickets that are wrong, or go: a clear error each."""

from __future__ import annotations

import datetime
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from cryptography import x509

from kafkalab import Cluster, wait_until
from kafkalab.checks.access import CONNECTED, try_connect
from kafkalab.cluster import Listener
from kafkalab.errors import BackendUnavailable, BrokerFailed, KdcFailed
from kafkalab.lifeline import marked_processes
from kafkalab.security import CertificateAuthority, Identity, Security
from kafkalab.services import MiniKdc
from support import PATIENCE, create, in_a_fork

pytestmark = pytest.mark.cluster

DAY = datetime.timedelta(days=1)
NOW = datetime.datetime.now(datetime.UTC)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority") / "ca")


def listener(name: str, identity: Identity, **more: str) -> Listener:
    return Listener(name, "SSL", settings={**identity.java(), **more})


@pytest.fixture(scope="module")
def doors(authority: CertificateAuthority) -> Iterator[Cluster]:
    """A broker that shows another certificate on each listener."""
    shown = {
        "GOOD": authority.issue("good", ["localhost", "127.0.0.1"]),
        "MISNAMED": authority.issue("misnamed", ["kafka.example.com"]),
        "EXPIRED": authority.issue("expired", ["127.0.0.1"], begins=NOW - 9 * DAY, ends=NOW - DAY),
        "EARLY": authority.issue("early", ["127.0.0.1"], begins=NOW + DAY, ends=NOW + 9 * DAY),
    }
    listeners = [Listener(), *[listener(name, identity, **{"ssl.client.auth": "required"}) for name, identity in shown.items()]]
    with Cluster(1, backend="local", listeners=listeners) as cluster:
        yield cluster


def client(
    cluster: Cluster, name: str, authority: CertificateAuthority, identity: Identity, **more: object
) -> dict[str, object]:
    trust = {"ssl.ca.location": str(authority.certificate)}
    return {
        "bootstrap.servers": cluster.clients.servers(name),
        "security.protocol": "SSL",
        **identity.client(),
        **trust,
        **more,
    }


def test_a_host_name_that_does_not_match(doors: Cluster, authority: CertificateAuthority) -> None:
    me = authority.issue("me")
    assert try_connect(client(doors, "GOOD", authority, me)) == CONNECTED
    assert try_connect(client(doors, "MISNAMED", authority, me)) == "_SSL"
    unchecked = client(doors, "MISNAMED", authority, me, **{"ssl.endpoint.identification.algorithm": "none"})
    assert try_connect(unchecked) == CONNECTED  # which is why nobody should switch it off


@pytest.mark.parametrize("name", ["EXPIRED", "EARLY"])
def test_a_broker_before_and_after_its_certificates_validity(
    doors: Cluster, authority: CertificateAuthority, name: str
) -> None:
    assert try_connect(client(doors, name, authority, authority.issue("me"))) == "_SSL"


@pytest.mark.parametrize(("begins", "ends"), [(NOW - 9 * DAY, NOW - DAY), (NOW + DAY, NOW + 9 * DAY)])
def test_a_client_before_and_after_its_certificates_validity(
    doors: Cluster, authority: CertificateAuthority, begins: datetime.datetime, ends: datetime.datetime
) -> None:
    told = try_connect(client(doors, "GOOD", authority, authority.issue("me", begins=begins, ends=ends)))
    assert told.startswith("TLS alert: certificate"), told


def test_a_broken_pem_file(doors: Cluster, authority: CertificateAuthority, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    me = authority.issue("me")
    broken.write_bytes(me.certificate.read_bytes()[:200])
    told = try_connect(client(doors, "GOOD", authority, me, **{"ssl.certificate.location": str(broken)}))
    assert told.startswith("settings that librdkafka rejects") and "ssl.certificate.location" in told


def test_a_key_store_with_a_wrong_password(authority: CertificateAuthority) -> None:
    identity = authority.issue("broker", ["127.0.0.1"])
    with pytest.raises(BrokerFailed, match=r"(?i)password was incorrect"):
        Cluster(
            1, backend="local", listeners=[Listener(), listener("SSL", identity, **{"ssl.keystore.password": "wrong"})]
        ).start()


def test_a_key_store_that_is_not_there(authority: CertificateAuthority, tmp_path: Path) -> None:
    identity = authority.issue("broker", ["127.0.0.1"])
    missing = {"ssl.keystore.location": str(tmp_path / "none.p12")}
    with pytest.raises(BrokerFailed, match=r"none.p12"):
        Cluster(1, backend="local", listeners=[Listener(), listener("SSL", identity, **missing)]).start()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('org.apache.kafka.common.security.plain.PlainLoginModule required username="a"', "(?i)JAAS|configuration"),
        ('org.example.NoSuchModule required username="a";', "NoSuchModule"),
    ],
)
def test_a_wrong_jaas_line(line: str, reason: str) -> None:
    settings = {"sasl.enabled.mechanisms": "PLAIN", "plain.sasl.jaas.config": line}
    with pytest.raises(BrokerFailed, match=reason):
        Cluster(1, backend="local", listeners=[Listener(), Listener("SASL", "SASL_PLAINTEXT", settings=settings)]).start()


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    """A broker with a certificate of its own, which also knows a user's password."""
    listeners = [Listener("SSL", "SSL"), Listener("SASL_SSL", "SASL_SSL")]
    security = Security({"alice": "secret"}, mechanisms=("SCRAM-SHA-512",), authorizer=False)
    with Cluster(1, backend="local", listeners=listeners, security=security) as cluster:
        yield cluster


def test_a_user_that_is_removed_while_connected(secured: Cluster) -> None:
    admin = AdminClient(secured.client_config())
    create(secured, "t", 1, 1)

    def alter(alteration: object) -> None:
        for altered in admin.alter_user_scram_credentials([alteration]).values():
            altered.result()

    alter(UserScramCredentialUpsertion("alice", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"secret"))
    config = secured.client_config("alice", "SASL_SSL")
    wait_until(lambda: try_connect(config) == CONNECTED, PATIENCE, "the user to be known")
    connected = Producer(config)
    connected.produce("t", "1")
    assert connected.flush(PATIENCE) == 0
    alter(UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_512))
    wait_until(lambda: try_connect(config) == "_AUTHENTICATION", PATIENCE, "the user to be refused")
    told: list[object] = []
    connected.produce("t", "2", on_delivery=lambda error, _: told.append(error))
    assert connected.flush(PATIENCE) == 0 and told == [None]  # it stays in until its connection ends


@pytest.mark.parametrize("name", ["SSL", "SASL_SSL"])
def test_an_address_that_wants_tls_or_a_login(secured: Cluster, name: str) -> None:
    servers, began = secured.clients.servers(name), time.monotonic()
    with pytest.raises(BackendUnavailable, match=f"no broker answers at {servers}: .*it may want TLS or a login"):
        Cluster.attached(servers).start()
    assert time.monotonic() - began < 30


def serial_number(cluster: Cluster) -> int:
    """That of the certificate that the broker shows."""
    host, port = cluster.clients.bootstrap(0, "SSL").split(":")
    context = ssl.create_default_context(cafile=str(cluster.security.authority.certificate))
    with (
        socket.create_connection((host, int(port)), 5) as plain,
        context.wrap_socket(plain, server_hostname=host) as secure,
    ):
        return x509.load_der_x509_certificate(secure.getpeercert(binary_form=True)).serial_number


def test_a_certificate_is_replaced_on_a_running_broker(secured: Cluster) -> None:
    before = serial_number(secured)
    store = secured.security.renew_certificate(0)
    assert serial_number(secured) == before
    entry = ConfigEntry("listener.name.ssl.ssl.keystore.location", str(store), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "0", incremental_configs=[entry])
    admin = AdminClient(secured.client_config())
    admin.incremental_alter_configs([resource])[resource].result()
    wait_until(
        lambda: serial_number(secured) != before,
        PATIENCE,
        "the new certificate",
        last_seen=lambda: secured.nodes.logs(0)[-3000:],
    )
    secured.restart(0)
    assert serial_number(secured) != before


# -- Kerberos -------------------------------------------------------------------------------------------------------


def test_a_kdc_starts_gives_key_tables_belongs_to_its_process_and_leaves_nothing() -> None:
    with MiniKdc(["alice", MiniKdc.broker()]) as kdc:
        assert kdc.running and kdc.realm in kdc.krb5_conf.read_text()
        assert kdc.keytab("alice").stat().st_mode & 0o077 == 0
        with pytest.raises(KeyError):
            kdc.keytab("nobody")
        run = kdc._run
        assert run is not None and marked_processes(run.id)
        assert kdc.start() is kdc
        in_a_fork(kdc.stop)
        assert kdc.running
    assert not kdc.running and not marked_processes(run.id) and not run.directory.exists()
    with pytest.raises(KdcFailed, match="can't be killed: it doesn't run"):
        kdc.kill()


def test_a_principal_that_cannot_be() -> None:
    for name in ("", "alice@EXAMPLE.COM", "two words"):
        with pytest.raises(KdcFailed, match="no name for a principal"):
            MiniKdc([name])


def test_tickets_and_the_kdc_gone(tmp_path: Path) -> None:
    broker = MiniKdc.broker()
    with MiniKdc(["alice", broker]) as kdc:
        settings = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "gssapi.sasl.jaas.config": kdc.login(broker, initiates=False),
            "sasl.kerberos.principal.to.local.rules": "RULE:[1:$1],RULE:[2:$1]",
        }
        config = tmp_path / "client.properties"
        config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
            f"sasl.jaas.config={kdc.login('alice')}\n"
        )
        security = Security(authorizer=False)
        realm = [f"-Djava.security.krb5.conf={kdc.krb5_conf}"]
        kerberos = Listener("KERBEROS", "SASL_PLAINTEXT", settings=settings)
        with Cluster(1, backend="local", listeners=[kerberos], security=security, java_options=realm) as cluster:

            def topics() -> subprocess.CompletedProcess[str]:
                command = [
                    "kafka-topics.sh",
                    "--bootstrap-server",
                    cluster.clients.servers("KERBEROS"),
                    "--command-config",
                    str(config),
                    "--list",
                ]
                return subprocess.run(command, env=kdc.environment(), capture_output=True, text=True, timeout=PATIENCE)

            create(cluster, "stock-prices", 1, 1)
            listed = topics()
            assert "stock-prices" in listed.stdout, listed.stderr[-2000:]
            assert f"authenticationID=alice@{kdc.realm}" in cluster.nodes.logs(0)
            kdc.kill()
            refused = topics()
            assert refused.returncode != 0
            assert (
                "LoginException" in refused.stderr + refused.stdout or "Connection refused" in refused.stderr + refused.stdout
            )
            assert cluster.nodes.states()[0] == "up"
            with pytest.raises(KdcFailed, match=r"call stop\(\) first"):
                kdc.start()


def test_the_python_client_says_that_it_has_no_kerberos() -> None:
    with pytest.raises(KafkaException, match="No provider for SASL mechanism GSSAPI"):
        AdminClient({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"})
