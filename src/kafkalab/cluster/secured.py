"""What a cluster offers besides if it is secured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kafkalab.cluster.backends.base import Backend
from kafkalab.cluster.observer import Observer
from kafkalab.security.authority import CertificateAuthority
from kafkalab.security.keyring import KeyRing
from kafkalab.waiting import wait_until

__all__ = ["ClusterSecurity"]


class ClusterSecurity:
    """The security of a running cluster; `Cluster.security` gives it.

    Attributes
    ----------
    keyring
        The secrets of the cluster.
    """

    def __init__(self, backend: Backend, observer: Observer, keyring: KeyRing, known: Callable[[int], Backend]) -> None:
        self._backend = backend
        self._observer = observer
        self._known = known
        self.keyring = keyring

    @property
    def authority(self) -> CertificateAuthority:
        """Who signs the certificates of the brokers and their clients."""
        return self.keyring.authority

    @property
    def broker_password(self) -> str:
        """The password of the user that the brokers are to each other."""
        return self.keyring.node_password

    def broker_login(self, mechanism: str) -> str:
        """The JAAS line with which the brokers log in to each other by a mechanism.

        With ``PLAIN`` the line also holds the users that they accept. The SCRAM user has to be made on the running cluster
        before brokers use it: ``Security.between_brokers`` only makes it for the mechanism that they begin with.

        Raises
        ------
        ValueError
            When there is no login module for the mechanism.
        """
        return self.keyring.node_login(mechanism)

    def renew_certificate(self, broker: int) -> Path:
        """Make a new key and certificate for a node, and put them where it has its key store.

        On return the files are there. The node uses the old ones until it is told to look again (by an alteration of
        ``listener.name.<listener>.ssl.keystore.location``), or is restarted.

        Returns
        -------
        Path
            The key store, as the node knows it.

        Raises
        ------
        UnknownBroker
        """
        return self._known(broker).renew_certificate(broker)

    def wait_for_acls(self, number: int, timeout: float = 15.0) -> None:
        """Wait until every broker that runs knows so many ACL rules.

        An administrator is answered when the controller has a rule; brokers have it milliseconds later, each by itself.

        Raises
        ------
        WaitTimeout
            The message says how many rules each broker knows.
        """
        seen: dict[int, int] = {}

        def known() -> bool:
            seen.update(self._observer.acl_rules())
            return set(seen.values()) == {number}

        what = f"{number} ACL rules on every broker"
        wait_until(known, timeout, what, last_seen=lambda: seen, ignore=(OSError,), interval=0.02)
