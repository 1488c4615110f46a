"""Certificates, users, and the broker settings that require them.

`Security` describes how a cluster is secured, like `ClusterSpec` describes its brokers. A `KeyRing` holds the files and
secrets for one cluster: its certificate authority, its key stores, its passwords. Only their owner can read files with
secrets.
"""

from __future__ import annotations

from kafkalab.lazy import on_first_use

_EXPORTS = {
    "CertificateAuthority": "kafkalab.security.authority",
    "Identity": "kafkalab.security.authority",
    "KeyRing": "kafkalab.security.keyring",
    "Security": "kafkalab.security.config",
    "login_line": "kafkalab.security.jaas",
    "split_keytab": "kafkalab.security.keytab",
}

__all__ = sorted(_EXPORTS)
__getattr__, __dir__ = on_first_use(__name__, _EXPORTS)
