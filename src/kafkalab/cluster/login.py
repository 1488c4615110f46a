"""How kafkalab's own connections encrypt and log in, from the same settings as clients: librdkafka's."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkalab.errors import BackendUnavailable

__all__ = ["Login", "login_from"]

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@dataclass(frozen=True)
class Login:
    """What a connection does before its first question.

    Attributes
    ----------
    context
        Encrypts the connection. None: it isn't encrypted.
    mechanism
        SASL's mechanism; empty: the connection logs in with its certificate, or not at all.
    user, password
        Of a mechanism.
    """

    context: ssl.SSLContext | None = None
    mechanism: str = ""
    user: str = ""
    password: str = field(default="", repr=False)


def login_from(settings: Mapping[str, object]) -> Login:
    """Return the login that librdkafka's settings describe.

    Raises
    ------
    BackendUnavailable
        If they want a mechanism other than PLAIN and SCRAM, or name a certificate that can't be read.
    """
    protocol = str(settings.get("security.protocol", "plaintext")).upper()
    context = _context(settings) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return Login(context)
    mechanism = str(settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "GSSAPI")))
    if mechanism not in _MECHANISMS:
        raise BackendUnavailable(
            f"kafkalab can log in to a cluster with {', '.join(_MECHANISMS)}, and these client settings want {mechanism}"
        )
    return Login(context, mechanism, str(settings.get("sasl.username", "")), str(settings.get("sasl.password", "")))


def _context(settings: Mapping[str, object]) -> ssl.SSLContext:
    def given(name: str) -> str | None:
        return str(settings[name]) if settings.get(name) else None

    try:
        context = ssl.create_default_context(cafile=given("ssl.ca.location"), cadata=given("ssl.ca.pem"))
        if certificate := given("ssl.certificate.location"):
            context.load_cert_chain(certificate, given("ssl.key.location"), given("ssl.key.password"))
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise BackendUnavailable(f"the certificates in the client settings can't be used: {error}") from error
    verifies = str(settings.get("enable.ssl.certificate.verification", True)).lower() == "true"
    if not verifies or settings.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if not verifies:
        context.verify_mode = ssl.CERT_NONE
    return context
