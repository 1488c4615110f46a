"""Certificates made by hand: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from kafkalab import Cluster
from kafkalab.cluster import Listener
from kafkalab.security import CertificateAuthority
from support import BACKEND, Verdict, commit, create, put

pytestmark = pytest.mark.cluster

LAB = "07_ssl"
LISTENER = "listener.name.ssl."


def send(cluster: Cluster, count: int) -> None:
    put(cluster, "stock-prices", [(None, str(number), 0) for number in range(count)])


def anything_goes(authority: CertificateAuthority, folder: Path) -> dict[str, str]:
    """A client's settings with a certificate that the authority signed for no use in particular."""
    me = authority.issue("anybody").client()
    signer = load_pem_private_key((authority.folder / "ca-key.pem").read_bytes(), None)
    subject, issuer = (
        x509.load_pem_x509_certificate(Path(me[f"ssl.{name}.location"]).read_bytes()) for name in ("certificate", "ca")
    )
    assert isinstance(signer, rsa.RSAPrivateKey)
    builder = x509.CertificateBuilder(issuer.subject, subject.subject, subject.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(subject.not_valid_before_utc).not_valid_after(subject.not_valid_after_utc)
    made = folder / "anybody.pem"
    made.write_bytes(builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM))
    return {**me, "ssl.certificate.location": str(made)}


def test_ssl(verdict: Verdict, tmp_path: Path) -> None:
    """Right but for one answer each; then the broker comes back with wrong settings."""
    authority, other = CertificateAuthority(tmp_path / "ca"), CertificateAuthority(tmp_path / "other")
    settings = {**authority.issue("broker", ["localhost", "127.0.0.1"]).java(), "ssl.client.auth": "required"}
    listeners = [Listener(), Listener("SSL", "SSL", settings=settings)]
    with Cluster(1, backend=BACKEND, listeners=listeners) as cluster:
        client = {
            "bootstrap.servers": cluster.clients.servers("SSL"),
            "security.protocol": "SSL",
            **authority.issue("stocks").client(),
        }
        verdict.says("Give check() your answer as client=", LAB, cluster)
        passed, printed = verdict(LAB, cluster, client=client)
        assert not passed
        assert "There is no topic 'stock-prices' yet" in printed
        assert "Not looked at yet. First: stock-prices holds the 90 prices." in printed
        create(cluster, "stock-prices", 1, copies=1)
        send(cluster, 89)
        verdict.says("holds 89 records, not 90", LAB, cluster, client=client)
        send(cluster, 1)
        verdict.says("There is no consumer group 'stocks' yet", LAB, cluster, client=client)
        commit(cluster, "stocks", "stock-prices")
        verdict.passes(LAB, cluster, client=client)

        def rejected(sentence: str, **wrong: object) -> None:
            verdict.says(sentence, LAB, cluster, client={**client, **wrong})

        verdict.says("lack security.protocol", LAB, cluster, client={"bootstrap.servers": cluster.clients.servers("SSL")})
        rejected("Broker 0's certificate isn't trusted for localhost", **{"ssl.ca.location": str(other.certificate)})
        rejected("isn't there, or holds no certificate", **{"ssl.ca.location": str(tmp_path / "nothing")})
        foreign = {**other.issue("stocks").client(), "ssl.ca.location": str(authority.certificate)}
        rejected("Your client can't connect: TLS alert", **foreign)
        rejected(
            "so its key can pose as a broker. What did openssl add?", **authority.issue("a broker", ["127.0.0.1"]).client()
        )
        rejected("doesn't say what it's good for", **anything_goes(authority, tmp_path))

        cluster.restart(0, settings={f"{LISTENER}ssl.client.auth": "none"})
        rejected("A client without a certificate connects")
        elsewhere = authority.issue("elsewhere", ["kafka.example.com", "127.0.0.1"]).java()
        cluster.restart(0, settings={f"{LISTENER}{name}": value for name, value in elsewhere.items()})
        rejected("Which certificates does the key store hold under kafka_cluster, and for which names?")


def test_the_untouched_lab(clean: Cluster, verdict: Verdict) -> None:
    passed, printed = verdict(LAB, clean, client={"bootstrap.servers": "", "log_level": 2})
    assert not passed
    assert "0 of 6 requirements" in printed
    assert "The cluster has no listener named SSL" in printed
