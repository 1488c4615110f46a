"""Who may do what: certificates, users, and the broker settings that ask for them.

`Security` says in words how a cluster is secured, as `ClusterSpec` says how many brokers it has; a `KeyRing` holds what
follows from it for one cluster: its certificate authority, its key stores, its passwords. All files with a secret in them
are readable by their owner alone.
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
