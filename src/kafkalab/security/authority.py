"""A certificate authority on disk, and the certificates it signs."""

from __future__ import annotations

import datetime
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kafkalab.security.files import private_folder, write_private

__all__ = ["CertificateAuthority", "Identity"]

_DAY = datetime.timedelta(days=1)
_BITS = 2048
# Extended key usages. Brokers are also clients of each other.
_CONNECTING = (ExtendedKeyUsageOID.CLIENT_AUTH,)
_SERVING = (ExtendedKeyUsageOID.SERVER_AUTH, *_CONNECTING)


@dataclass(frozen=True)
class Identity:
    """A private key and its certificate, in the formats that clients and brokers read.

    Attributes
    ----------
    name
        The certificate's common name.
    certificate
        PEM: the certificate and the authority's.
    key
        PEM: the private key, not encrypted.
    keystore
        PKCS12: both.
    truststore
        PKCS12: the authority's certificate, to trust.
    authority
        PEM: the authority's certificate.
    password
        Password of both stores.
    """

    name: str
    certificate: Path
    key: Path
    keystore: Path
    truststore: Path
    authority: Path
    password: str = field(repr=False)

    def client(self) -> dict[str, str]:
        """Return librdkafka settings with which a client shows this certificate."""
        return {
            "ssl.ca.location": str(self.authority),
            "ssl.certificate.location": str(self.certificate),
            "ssl.key.location": str(self.key),
        }

    def java(self) -> dict[str, str]:
        """Return settings with which Kafka's Java side, client or broker, shows this certificate."""
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.keystore),
            "ssl.keystore.password": self.password,
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.truststore),
            "ssl.truststore.password": self.password,
        }


class CertificateAuthority:
    """A certificate authority with its files in a folder. It's created, or loaded if the folder already has one.

    Parameters
    ----------
    folder
        Where its key and certificate and everything it issues are kept. Only the owner can open the folder.
    name
        Its common name, if it's created now.
    """

    def __init__(self, folder: Path, name: str = "kafkalab") -> None:
        self.folder = private_folder(folder)
        self.certificate = folder / "ca-cert.pem"
        """PEM: the authority's certificate, to trust."""
        if not self.certificate.exists():
            self._make(name)
        self._key = _read_key(folder / "ca-key.pem")
        self._certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        self._password_file = folder / "password"

    @property
    def password(self) -> str:
        """Password of every key store and trust store in the folder."""
        return self._password_file.read_text()

    def issue(
        self,
        name: str,
        hosts: Sequence[str] = (),
        *,
        begins: datetime.datetime | None = None,
        ends: datetime.datetime | None = None,
        folder: str | None = None,
    ) -> Identity:
        """Create a key, sign a certificate for it, and write both in every format. This replaces what the folder held.

        Parameters
        ----------
        name
            The common name: the name of a client's user, or of a broker.
        hosts
            Host names and addresses where a server may show it (its subject alternative names). Without any, it's a
            certificate for clients only, and nobody accepts it from a server.
        begins, ends
            When it's valid. By default from yesterday (clocks differ) for 90 days.
        folder
            The folder for its files, inside the authority's. By default `name`.
        """
        key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begins or now - _DAY)
            .not_valid_after(ends or now + 90 * _DAY)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_uses(digital_signature=True, key_encipherment=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(_SERVING if hosts else _CONNECTING), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
        return self._write(name, folder or name, key, builder.sign(self._key, hashes.SHA256()))

    def _make(self, name: str) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
        now = datetime.datetime.now(datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(_named(name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * _DAY)
            .not_valid_after(now + 365 * _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_uses(key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_private(self.folder / "ca-key.pem", _pem(key))
        write_private(self.folder / "password", secrets.token_urlsafe(18))
        write_private(self.certificate, certificate.public_bytes(Encoding.PEM))  # last: it shows that everything is there

    def _write(self, name: str, folder: str, key: rsa.RSAPrivateKey, certificate: x509.Certificate) -> Identity:
        to = private_folder(self.folder / folder)
        chain = certificate.public_bytes(Encoding.PEM) + self._certificate.public_bytes(Encoding.PEM)
        sealed = _sealed(self.password)
        trusted = [pkcs12.PKCS12Certificate(self._certificate, b"ca")]
        key_and_certificate = pkcs12.serialize_key_and_certificates(
            name.encode(), key, certificate, [self._certificate], sealed
        )
        return Identity(
            name,
            write_private(to / "certificate.pem", chain),
            write_private(to / "key.pem", _pem(key)),
            write_private(to / "keystore.p12", key_and_certificate),
            write_private(to / "truststore.p12", pkcs12.serialize_java_truststore(trusted, sealed)),
            self.certificate,
            self.password,
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _sealed(password: str) -> KeySerializationEncryption:
    """Return a store's encryption, with few rounds: they make guessing expensive, but nobody guesses 18 random bytes.

    A broker opens its stores a dozen times when it starts, and as often for each new certificate. Each of the usual
    20,000 rounds would cost time then.
    """
    builder = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(1)
    return builder.key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC).hmac_hash(hashes.SHA256()).build(password.encode())


def _read_key(path: Path) -> rsa.RSAPrivateKey:
    key = load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


def _uses(**uses: bool) -> x509.KeyUsage:
    """Return a key usage with only these purposes."""
    none = dict.fromkeys(
        ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "key_cert_sign",
         "crl_sign", "encipher_only", "decipher_only"), False,
    )  # fmt: skip
    return x509.KeyUsage(**{**none, **uses})
