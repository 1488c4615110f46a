"""A Kerberos key distribution centre: Hadoop's MiniKdc, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kafkalab.cluster.backends.failure import ended, log_tail
from kafkalab.cluster.ports import HOST, Reservation, reserve_port
from kafkalab.distribution import JVM_OPTIONS, announce, ensure_jars, gssapi_support, java_command
from kafkalab.environment import inherited
from kafkalab.errors import KdcFailed
from kafkalab.lifeline import Owner, Run, reap
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.security import login_line, split_keytab
from kafkalab.security.files import private_folder
from kafkalab.waiting import wait_until

__all__ = ["MiniKdc"]

_START_SECONDS = 60.0
_HEAP = "-Xmx64m"
_NAME = re.compile(r"[\w./-]+")  # Hadoop's MiniKdc would take others, and make tickets for them that nobody can ask for
_ORGANISATION, _DOMAIN = "KAFKALAB", "TEST"


class MiniKdc:
    """A Kerberos realm on loopback. It exists as long as this KDC runs.

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

    def __init__(self, principals: Sequence[str]) -> None:
        self.principals = tuple(principals)
        for name in self.principals:
            if not _NAME.fullmatch(name):
                raise KdcFailed(f"{name!r} is no name for a principal: letters, digits and any of -_./ (the realm is added)")
        self._run: Run | None = None
        self._owner = Owner()
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._reservation: Reservation | None = None
        self._keytabs: dict[str, Path] = {}
        end_nameless()

    @staticmethod
    def broker() -> str:
        """Return the service principal of brokers at 127.0.0.1, with the name that Java finds for that address."""
        try:
            return f"kafka/{socket.gethostbyaddr(HOST)[0]}"
        except OSError:
            return f"kafka/{HOST}"

    def start(self) -> MiniKdc:
        """Start it. On return, it accepts connections and every principal has a key table. Does nothing if it already runs.

        Raises
        ------
        KdcFailed
            If it ends before that; the message has its reason. Also if it was killed, because its keys are gone.
        DownloadError
            If its jars aren't in the cache and can't be downloaded.
        """
        if self.running:
            return self
        if self._process is not None:
            raise KdcFailed("the KDC has ended, and its keys with it; call stop() first: the next start makes new ones")
        jars = ensure_jars("kdc", announce)
        self._run, self._owner = Run.create("kdc"), Owner()
        try:
            self._launch(jars)
        except BaseException:
            self.stop()
            raise
        note_started(self, "KDC", lambda: self.running, self.stop)
        return self

    def _launch(self, jars: Sequence[Path]) -> None:
        assert self._run is not None
        folder = private_folder(self._run.directory / "kdc")
        self._reservation = reserve_port()
        self._port = self._reservation.port
        told = {
            "org.name": _ORGANISATION,
            "org.domain": _DOMAIN,
            "kdc.bind.address": HOST,
            "kdc.port": self._port,
            "transport": "TCP",
            "instance": "kafkalab",
            "max.ticket.lifetime": 86_400_000,
            "max.renewable.lifetime": 604_800_000,
            "debug": "false",
        }
        (folder / "kdc.properties").write_text("".join(f"{name}={value}\n" for name, value in told.items()))
        with (folder / "output.log").open("wb") as output:
            self._process = subprocess.Popen(
                [str(java_command()), _HEAP, *JVM_OPTIONS, f"-Djava.io.tmpdir={folder}", "-cp", os.pathsep.join(map(str, jars)),
                 "org.apache.hadoop.minikdc.MiniKdc", str(folder), str(folder / "kdc.properties"), str(folder / "all.keytab"),
                 *self.principals],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=self._run.environment(), start_new_session=True, cwd=folder, umask=0o077,
            )  # fmt: skip
        wait_until(
            self._ready, _START_SECONDS, "the KDC to be ready", last_seen=lambda: log_tail(self.logs()), ignore=(OSError,)
        )
        self._keytabs = split_keytab(folder / "all.keytab", folder)

    def _ready(self) -> bool:
        assert self._process is not None and self._run is not None
        if self._process.poll() is not None:
            why = ended("the KDC", self._process.returncode, {"output.log": self.logs()})
            raise KdcFailed(f"{why}\nIts last lines:\n{log_tail(self.logs())}")
        if "Standalone MiniKdc Running" not in self.logs():
            return False
        socket.create_connection((HOST, self._port), 1).close()
        return True

    def kill(self) -> None:
        """Kill it with SIGKILL, as a crash would. On return, its process is gone. Clients keep the tickets they have."""
        if self._process is None:
            raise KdcFailed("the KDC is not running")
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Stop it. On return, its process and its files are gone. Does nothing if it isn't running.

        In a process that was forked after `start` it does nothing either, because the KDC belongs to the parent.
        """
        if not self._owner.is_me:
            return
        run, self._run = self._run, None
        if run is not None:
            reap(run)
        if self._process is not None:
            self._process.wait()
        if self._reservation is not None:
            self._reservation.close()
        self._process = self._reservation = None

    def __enter__(self) -> MiniKdc:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Return whether its process runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def krb5_conf(self) -> Path:
        """Return the file that tells clients where the realm's KDC is (``-Djava.security.krb5.conf=…``)."""
        assert self._run is not None, "the KDC was not started"
        return self._run.directory / "kdc" / "krb5.conf"

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

    def logs(self) -> str:
        """Return its log so far."""
        if self._run is None:
            return ""
        path = self._run.directory / "kdc" / "output.log"
        return path.read_text(errors="replace") if path.exists() else ""
