"""How librdkafka asks Kafka over Spark Connect: with settings of a Java client."""

from __future__ import annotations

from pathlib import Path

import pytest

from truck_pipeline.librdkafka import as_librdkafka, librdkafka_client

MODULES = {"PLAIN": "plain.Plain", "SCRAM-SHA-512": "scram.Scram"}


def test_a_login_by_password() -> None:
    password = 'quo"ted\\sec;ret\n='
    quoted = r"quo\"ted\\sec;ret\n="
    for mechanism, name in MODULES.items():
        module = f"org.apache.kafka.common.security.{name}LoginModule"
        line = f'{module} required username="ann" password="{quoted}";'
        java = {
            "bootstrap.servers": "b:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism, "sasl.jaas.config": line,
        }  # fmt: skip
        wanted = {name: java[name] for name in ("bootstrap.servers", "security.protocol", "sasl.mechanism")}
        assert as_librdkafka(java) == wanted | {"sasl.username": "ann", "sasl.password": password}
    bare = "org.apache.kafka.common.security.plain.PlainLoginModule required username=ann password='it''s' ;"
    settings = as_librdkafka({"security.protocol": "SASL_SSL", "sasl.jaas.config": bare.replace("''", "\\'")})
    assert (settings["sasl.username"], settings["sasl.password"]) == ("ann", "it's")


def test_certificates(tmp_path: Path) -> None:
    pem = tmp_path / "ca.pem"
    pem.touch()
    stores = {
        f"ssl.{store}.{what}": value
        for store in ("truststore", "keystore")
        for what, value in (("type", "PEM"), ("location", str(pem)))
    }
    files = as_librdkafka({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "", **stores})
    assert files == {
        "security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": str(pem), "ssl.certificate.location": str(pem), "ssl.key.location": str(pem),
    }  # fmt: skip
    texts = {"ssl.truststore.certificates": "ca", "ssl.keystore.certificate.chain": "chain", "ssl.keystore.key": "key"}
    assert as_librdkafka(texts) == {"ssl.ca.pem": "ca", "ssl.certificate.pem": "chain", "ssl.key.pem": "key"}


def test_what_means_nothing_to_it_is_left_out() -> None:
    java = {"bootstrap.servers": "b:1", "fetch.max.wait.ms": "10", "linger.ms": "20", "sasl.login.class": "x"}
    assert as_librdkafka(java) == {"bootstrap.servers": "b:1"}


@pytest.mark.parametrize(
    ("java", "said"),
    [
        ({"ssl.truststore.location": "/trust.jks"}, "can't read ssl.truststore.location: give ssl.truststore.type=PEM"),
        ({"ssl.keystore.location": "/key.p12", "ssl.keystore.type": "PKCS12"}, "give ssl.keystore.type=PEM"),
        ({"ssl.truststore.location": "/no/ca.pem", "ssl.truststore.type": "PEM"}, "no such file on this machine"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "log in by PLAIN without .*: give sasl.mechanism=PLAIN or"),
        (
            {"security.protocol": "SASL_SSL", "sasl.jaas.config": 'com.sun.security.auth.module.Krb5LoginModule required principal="ann";'},
            "log in by GSSAPI without a name and a password",
        ),
    ],
)  # fmt: skip
def test_what_only_java_can(java: dict[str, str], said: str) -> None:
    with pytest.raises(ConnectionError, match=said):
        as_librdkafka(java)


def test_no_broker_answers(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("truck_pipeline.librdkafka._TIMEOUT", 0.5)
    with (
        pytest.raises(ConnectionError, match="Connection refused"),
        librdkafka_client({"bootstrap.servers": "127.0.0.1:1"}) as describe,
    ):
        describe("topic")
    assert capfd.readouterr().err == ""
