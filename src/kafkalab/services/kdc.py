"""A Kerberos key distribution centre: Hadoop's MiniKdc, in a process of its own."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Sequence
from pathlib import Path

from kafkalab.cluster.ports import HOST
from kafkalab.distribution import JVM_OPTIONS, announce, ensure_jars, gssapi_support, java_command
from kafkalab.environment import inherited
from kafkalab.errors import KdcFailed
from kafkalab.lifeline import Run
from kafkalab.security import login_line, split_keytab
from kafkalab.services.base import SingleServer
from kafkalab.services.server import ServerProcess

__all__ = ["MiniKdc"]

_HEAP = "-Xmx64m"
_NAME = re.compile(r"[\w./-]+")  # Hadoop's MiniKdc would take others, and make tickets for them that nobody can ask for
_ORGANISATION, _DOMAIN = "KAFKALAB", "TEST"


class MiniKdc(SingleServer[ServerProcess]):
    """A Kerberos realm on loopback. It exists as long as this KDC runs.

    On return of `start`, every principal has a key table. A KDC that was killed can't start again, because its keys are gone:
    stop it first. Clients keep the tickets they have.

    Parameters
    ----------
    principals
        Its users and services, without the realm: ``"alice"``, ``"kafka/localhost"``.

    Raises
    ------
    KdcFailed
        If one of these can't be a principal's name: it's empty, or has a space or a realm.

    Examples
    --------
    >>> with MiniKdc(["alice", MiniKdc.broker()]) as kdc:  # doctest: +SKIP
    ...     kdc.keytab("alice")
    """

    realm = f"{_ORGANISATION}.{_DOMAIN}"

    _KIND, _WHO, _NOUN, _FAILURE = "kdc", "the KDC", "KDC", KdcFailed
    _START_SECONDS = 60.0

    def __init__(self, principals: Sequence[str]) -> None:
        super().__init__()
        self.principals = tuple(principals)
        for name in self.principals:
            if not _NAME.fullmatch(name):
                raise KdcFailed(f"{name!r} is no name for a principal: letters, digits and any of -_./ (the realm is added)")
        self._keytabs: dict[str, Path] = {}

    @staticmethod
    def broker() -> str:
        """Return the service principal of brokers at 127.0.0.1, with the name that Java finds for that address."""
        try:
            return f"kafka/{socket.gethostbyaddr(HOST)[0]}"
        except OSError:
            return f"kafka/{HOST}"

    @property
    def krb5_conf(self) -> Path:
        """Return the file that tells clients where the realm's KDC is (``-Djava.security.krb5.conf=…``)."""
        return self._require_started().directory / "krb5.conf"

    def environment(self) -> dict[str, str]:
        """Return an environment in which Kafka's tools can log in to this realm."""
        jars, options = gssapi_support()
        words = [f"-Djava.security.krb5.conf={self.krb5_conf}", *options]
        return inherited(KAFKA_OPTS=" ".join(words), CLASSPATH=os.pathsep.join(map(str, jars)))

    def keytab(self, principal: str) -> Path:
        """Return the key table of a principal, which serves as its password. Only you can read the file.

        Raises
        ------
        KeyError
            If there's no such principal.
        """
        return self._keytabs[principal]

    def login(self, principal: str, *, initiates: bool = True) -> str:
        """Return the JAAS line with which a principal logs in by its key table.

        Parameters
        ----------
        principal
            Its name, without the realm.
        initiates
            Whether it requests tickets, as clients do. A broker only checks its clients' tickets, and needs no KDC for that.
        """
        line: str = login_line(
            "GSSAPI", useKeyTab=True, storeKey=True, keyTab=self.keytab(principal), principal=f"{principal}@{self.realm}",
            isInitiator=initiates, doNotPrompt=True, useTicketCache=False,
        )  # fmt: skip
        return line

    # -- parts --------------------------------------------------------------------------------------------------

    def _require(self) -> None:
        if self._server is not None:
            raise KdcFailed("the KDC has ended, and its keys with it; call stop() first: the next start makes new ones")

    def _make_server(self, run: Run) -> ServerProcess:
        return ServerProcess(run, "kdc", self._WHO, KdcFailed, ports=(0,))

    def _launch(self, server: ServerProcess) -> None:
        folder, jars = server.folder, ensure_jars("kdc", announce)
        settings = {
            "org.name": _ORGANISATION,
            "org.domain": _DOMAIN,
            "kdc.bind.address": HOST,
            "kdc.port": server.port,
            "transport": "TCP",
            "instance": "kafkalab",
            "max.ticket.lifetime": 86_400_000,
            "max.renewable.lifetime": 604_800_000,
            "debug": "false",
        }
        (folder / "kdc.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        server.launch(
            [str(java_command()), _HEAP, *JVM_OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", os.pathsep.join(map(str, jars)),
             "org.apache.hadoop.minikdc.MiniKdc", str(folder), str(folder / "kdc.properties"), str(folder / "all.keytab"),
             *self.principals],
            umask=0o077,
        )  # fmt: skip

    def _is_ready(self, server: ServerProcess) -> bool:
        if "Standalone MiniKdc Running" not in server.logs():
            return False
        socket.create_connection((HOST, server.port), 1).close()
        self._keytabs = split_keytab(server.folder / "all.keytab", server.folder)
        return True
