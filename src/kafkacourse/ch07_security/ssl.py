"""Certificates made by hand, for brokers and clients."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

from kafkalab.checks.access import CONNECTED, brokers_at, servers, try_connect
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import has_read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import holds

__all__ = ["lab"]

LISTENER = "SSL"
TOPIC = "stock-prices"
_SECONDS = 10.0  # for a connection, and for an answer

lab = Lab("07_ssl")

check = lab.add_check(
    "07_ssl",
    "Make certificates by hand",
    hints=(
        "keytool -list -v -keystore … -storepass:env KEYSTORE_PASSWORD shows what a store holds. In the key store, "
        "kafka_cluster needs a chain of two certificates, and the issuer of the first one owns the second.",
        "The order matters: import the authority's certificate into the key store before the signed one.",
        "A client that reports _SSL rejected the broker: look at ssl.ca.location. One that gets a TLS alert was rejected by "
        "the broker: look at its certificate, its key, and who signed it.",
        "ssl.client.auth is none, requested or required.",
    ),
)


def _client(ctx: CheckContext) -> dict[str, Any]:
    settings: dict[str, Any] = ctx.answer("client", dict[str, object], "the librdkafka settings of your client")
    for name in ("security.protocol", "ssl.ca.location"):
        if name not in settings:
            raise Unmet(f"Your client's settings lack {name}.")
    return settings


@check.requires("Each broker shows a certificate that your authority signed for localhost")
def brokers_show_certificates(ctx: CheckContext) -> None:
    servers(ctx, LISTENER)
    authority = str(_client(ctx)["ssl.ca.location"])
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError):
        raise Unmet("The file at ssl.ca.location isn't there, or holds no certificate.") from None
    # Python 3.13 also asks for extensions that neither Kafka's clients nor its brokers need.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    for broker, address in brokers_at(ctx, LISTENER):
        host, port = address.split(":")
        try:
            with (
                socket.create_connection((host, int(port)), _SECONDS) as plain,
                context.wrap_socket(plain, server_hostname="localhost"),
            ):
                pass
        except ssl.SSLCertVerificationError as error:
            raise Unmet(
                f"Broker {broker}'s certificate isn't trusted for localhost: {error.verify_message}. Which certificates does "
                "the key store hold under kafka_cluster, and for which names?"
            ) from None
        except (OSError, ssl.SSLError) as error:
            raise Unmet(f"Broker {broker} doesn't speak TLS on its SSL listener: {error}.") from None


@check.requires("Your client connects with its certificate", after=brokers_show_certificates)
def client_connects(ctx: CheckContext) -> None:
    if (result := try_connect(_client(ctx))) != CONNECTED:
        raise Unmet(f"Your client can't connect: {result}. Which of the two rejects the other's certificate?")


@check.requires("Your client's certificate is good for clients only", after=client_connects)
def certificate_is_for_clients(ctx: CheckContext) -> None:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    settings = _client(ctx)
    if "ssl.certificate.location" not in settings:
        raise Unmet("Your client's settings lack ssl.certificate.location.")
    certificate = x509.load_pem_x509_certificate(Path(str(settings["ssl.certificate.location"])).read_bytes())
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        raise Unmet(
            "The client's certificate doesn't say what it's good for, so its key can pose as a broker. Which "
            "file of extensions did openssl get?"
        ) from None
    if ExtendedKeyUsageOID.SERVER_AUTH in usage:
        raise Unmet("The client's certificate is also good for servers, so its key can pose as a broker. What did openssl add?")


@check.requires("A client without a certificate, or without TLS, can't connect", after=client_connects)
def others_cannot_connect(ctx: CheckContext) -> None:
    settings = _client(ctx)
    for name in list(settings):
        if name.startswith(("ssl.certificate.", "ssl.key.", "ssl.keystore.")):
            del settings[name]
    if try_connect(settings) == CONNECTED:
        raise Unmet("A client without a certificate connects. Which setting of the listener asks for one?")
    if try_connect({"bootstrap.servers": servers(ctx, LISTENER)}) == CONNECTED:
        raise Unmet("A plaintext client connects to the SSL listener. Which protocol does the listener have?")


prices_are_there = check.requires("stock-prices holds the 90 prices")(holds(TOPIC, 90))
check.requires("The group stocks has read and committed them", after=prices_are_there)(has_read_everything("stocks", TOPIC))
