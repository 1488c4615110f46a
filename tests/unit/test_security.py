"""Certificates, JAAS lines and key tables, without a cluster."""

from __future__ import annotations

import contextlib
import datetime
import ssl
import stat
import struct
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from kafkalab.cluster import ClusterSpec, Listener
from kafkalab.errors import NoSuperUser, UnknownListener, UnknownUser
from kafkalab.security import CertificateAuthority, Identity, KeyRing, Security, login_line, split_keytab


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority") / "ca", "an authority")


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_certificate_in_every_form(authority: CertificateAuthority) -> None:
    identity = authority.issue("broker", ["localhost", "127.0.0.1"])
    certificate = read(identity.certificate)
    certificate.verify_directly_issued_by(read(authority.certificate))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    key, stored, more = pkcs12.load_key_and_certificates(identity.keystore.read_bytes(), identity.password.encode())
    assert key is not None and stored == certificate and len(more) == 1
    ssl.create_default_context(cafile=str(identity.authority)).load_cert_chain(identity.certificate, identity.key)
    with pytest.raises(ValueError):
        pkcs12.load_key_and_certificates(identity.keystore.read_bytes(), b"wrong")


def test_a_users_certificate_serves_nobody(authority: CertificateAuthority) -> None:
    def greet(server: Identity) -> None:
        trusting = ssl.create_default_context(cafile=str(authority.certificate))
        trusting.check_hostname = False
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(server.certificate, server.key)
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        sides = trusting.wrap_bio(back, there), serving.wrap_bio(there, back, server_side=True)
        for side in (*sides, *sides):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()

    greet(authority.issue("broker", ["localhost"]))
    with pytest.raises(ssl.SSLCertVerificationError, match="unsuitable certificate purpose|unsupported certificate purpose"):
        greet(authority.issue("alice"))


def test_nobody_else_can_read_what_it_wrote(authority: CertificateAuthority) -> None:
    authority.issue("alice")
    files = [path for path in authority.folder.rglob("*") if path.is_file()]
    assert files and {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(authority.folder.stat().st_mode) == 0o700
    assert authority.password not in repr(authority.issue("alice"))


def test_validity_is_as_asked_for_and_an_authority_is_found_again(authority: CertificateAuthority) -> None:
    begins = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
    early = read(authority.issue("early", begins=begins, ends=begins + datetime.timedelta(days=2)).certificate)
    assert (early.not_valid_before_utc, early.not_valid_after_utc) == (begins, begins + datetime.timedelta(days=2))
    again = CertificateAuthority(authority.folder, "another name, which does not matter")
    assert read(again.issue("late").certificate).issuer == early.issuer
    assert again.password == authority.password


def test_a_jaas_line_takes_care_of_quotes() -> None:
    line = login_line("PLAIN", username="alice", password='a"b\\c;d')
    assert line == (
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="a\\"b\\\\c;d";'
    )
    assert login_line("PLAIN", password="a\nb").endswith('password="a\\nb";')
    assert login_line("SCRAM-SHA-512").endswith("ScramLoginModule required;")
    assert ' useKeyTab="true"' in login_line("GSSAPI", useKeyTab=True)
    with pytest.raises(ValueError, match="no login module for 'DIGEST-MD5'; there are PLAIN"):
        login_line("DIGEST-MD5")


def entry(realm: str, *parts: str) -> bytes:
    body = struct.pack(">h", len(parts))
    for text in (realm, *parts):
        body += struct.pack(">h", len(text)) + text.encode()
    body += b"the rest: type, time, key"
    return struct.pack(">i", len(body)) + body


def test_a_key_table_is_split_by_principal(tmp_path: Path) -> None:
    alice, broker = entry("R", "alice"), entry("R", "kafka", "localhost")
    hole = struct.pack(">i", -6) + b"\0" * 6
    (tmp_path / "all").write_bytes(b"\x05\x02" + alice + hole + broker + alice)
    split = split_keytab(tmp_path / "all", tmp_path)
    assert {name: path.read_bytes() for name, path in split.items()} == {
        "alice": b"\x05\x02" + alice + alice,
        "kafka/localhost": b"\x05\x02" + broker,
    }
    assert stat.S_IMODE(split["alice"].stat().st_mode) == 0o600
    (tmp_path / "none").write_bytes(b"no table")
    with pytest.raises(ValueError, match="no key table"):
        split_keytab(tmp_path / "none", tmp_path)


def test_what_a_user_needs_follows_from_the_listener(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "secrets", Security({"alice": "secret"}, mechanisms=("SCRAM-SHA-256", "PLAIN")))
    assert ring.client("PLAINTEXT", "alice", None) == {"security.protocol": "PLAINTEXT"}
    assert set(ring.client("SSL", None, None)) == {"security.protocol", "ssl.ca.location"}
    assert set(ring.client("SSL", "bob", None)) == {
        "security.protocol",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
    }
    assert ring.client("SASL_SSL", "alice", None)["sasl.mechanism"] == "SCRAM-SHA-256"
    assert ring.client("SASL_PLAINTEXT", "alice", "PLAIN")["sasl.password"] == "secret"
    assert "PlainLoginModule" in ring.java_client("SASL_SSL", "alice", "PLAIN")["sasl.jaas.config"]
    with pytest.raises(UnknownUser, match="no user 'bob' with a password; there are alice"):
        ring.client("SASL_SSL", "bob", None)
    assert "secret" not in repr(ring.security)


def test_an_authorizer_needs_somebody_whom_it_lets_through() -> None:
    authorizer = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
    with pytest.raises(NoSuperUser, match=r"super.users is ''"):
        ClusterSpec(settings=authorizer)
    ClusterSpec(settings={**authorizer, "super.users": "User:admin; User:ANONYMOUS"})
    ClusterSpec(settings={**authorizer, "allow.everyone.if.no.acl.found": True})
    ClusterSpec(settings=authorizer, security=Security())


def test_listeners_by_name() -> None:
    spec = ClusterSpec(listeners=(Listener("A"), Listener("B", "SSL")), security=Security())
    assert spec.listener("B").protocol == "SSL"
    assert spec.opened() == ("A", "B", "KAFKALAB")
    with pytest.raises(UnknownListener, match="no listener 'C'; there are A, B"):
        spec.listener("C")
