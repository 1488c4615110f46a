"""What a secured cluster offers in addition."""

from __future__ import annotations

from pathlib import Path

from kafkalab.cluster.backends.control import Control
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

    def __init__(self, control: Control, observer: Observer, keyring: KeyRing) -> None:
        self._control = control
        self._observer = observer
        self.keyring = keyring

    @property
    def authority(self) -> CertificateAuthority:
        """The authority that signs the certificates of the brokers and their clients."""
        return self.keyring.authority

    @property
    def broker_password(self) -> str:
        """The password of the user with which brokers log in to each other."""
        return self.keyring.node_password

    def broker_login(self, mechanism: str) -> str:
        """Return the JAAS line with which the brokers log in to each other by a mechanism.

        With ``PLAIN`` the line also holds the users they accept. Create a SCRAM user on the running cluster before
        brokers use it: ``Security.between_brokers`` only creates it for the mechanism they start with.

        Raises
        ------
        ValueError
            If the mechanism has no login module.
        """
        return self.keyring.node_login(mechanism)

    def renew_certificate(self, broker: int) -> Path:
        """Create a new key and certificate for a node, and put them in place of its key store.

        When it returns, the files are there. The node uses the old ones until it restarts, or until you alter
        ``listener.name.<listener>.ssl.keystore.location``.

        Returns
        -------
        Path
            The key store, as the node knows it.

        Raises
        ------
        UnknownBroker
        """
        self._control.require_node(broker)
        return self._control.renew_certificate(broker)

    def wait_for_acls(self, number: int, timeout: float = 30.0) -> None:
        """Wait until every running broker knows this many ACL rules.

        The controller answers an administrator once it has a rule. Each broker learns it milliseconds later.

        Raises
        ------
        WaitTimeout
            The message shows how many rules each broker knows.
        """
        seen: dict[int, int] = {}

        def known() -> bool:
            seen.update(self._observer.acl_rules())
            return set(seen.values()) == {number}

        what = f"{number} ACL rules on every broker"
        wait_until(known, timeout, what, last_seen=lambda: seen, ignore=(OSError,), interval=0.02)
