"""`MqttBroker`: a real MQTT broker, from a notebook cell."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from kafkalab.cluster.ports import HOST, Reservation, reserve_port
from kafkalab.cluster.spec import require_port
from kafkalab.distribution import announce, ensure_jars
from kafkalab.errors import MqttFailed, UnknownUser
from kafkalab.lifeline import Owner, Run, reap
from kafkalab.rebinding import end_nameless, note_started
from kafkalab.resources import require_memory
from kafkalab.security.authority import CertificateAuthority, Identity
from kafkalab.security.config import Security
from kafkalab.security.files import write_private
from kafkalab.services.java_process import JavaProcess
from kafkalab.settings import as_text, format_properties
from kafkalab.waiting import wait_until

__all__ = ["MqttBroker"]

_MAIN = "org.apache.activemq.artemis.core.server.embedded.Main"
_HEAP = "48m"
_MEMORY = 110 << 20
_START_SECONDS = 120.0
_ANSWER_SECONDS = 10.0

_SETTINGS: Mapping[str, object] = {
    "name": "mqtt",
    # A message is in a file before it's acknowledged. That survives a kill, even if the disk hasn't written it yet.
    "journalType": "NIO",
    "journalDatasync": False,
    "journalFileSize": 1 << 20,
    "journalMinFiles": 2,
    # By default it takes no messages while the machine's disk is 90 % full.
    "maxDiskUsage": -1,
    "criticalAnalyzer": False,
    "JMXManagementEnabled": False,
    "threadPoolMaxSize": 8,
    "acceptorConfigurations.mqtt.factoryClassName": "org.apache.activemq.artemis.core.remoting.impl.netty.NettyAcceptorFactory",
    "acceptorConfigurations.mqtt.params.host": HOST,
    "acceptorConfigurations.mqtt.params.protocols": "MQTT",
    "acceptorConfigurations.mqtt.params.remotingThreads": 2,
    # Java's own sockets: the same on every system.
    "acceptorConfigurations.mqtt.params.useEpoll": False,
    "acceptorConfigurations.mqtt.params.useKQueue": False,
}

_LOG_SETTINGS: Mapping[str, str] = {
    "org.slf4j.simpleLogger.showDateTime": "true",
    "org.slf4j.simpleLogger.dateTimeFormat": "[yyyy-MM-dd HH:mm:ss,SSS]",
    "org.slf4j.simpleLogger.log.org.apache.activemq.audit": "warn",  # else each step of each client
}

_ACCEPTOR = "acceptorConfigurations.mqtt.params"
_LOGIN = 'jaasConfigs."users".modules.file'
_QUEUES = [f"{verb}{kind}Queue" for verb in ("create", "delete") for kind in ("Durable", "NonDurable")]
_RIGHTS = ("send", "consume", "createAddress", "deleteAddress", *_QUEUES)
_ROUNDS, _BYTES = 1024, 64

# A client without a name or a session says that it speaks MQTT 3.1.1; the broker says that it may, or that it needs a password.
_CONNECT = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x0a\x00\x00"
_ANSWER, _REST = b"\x20\x02", 2


class MqttBroker:
    """An MQTT broker on loopback: Apache ActiveMQ Artemis. It's a process even if Kafka's brokers are containers.

    It speaks MQTT 3.1.1 and 5. Messages of QoS 1 or 2 that it has acknowledged, and not yet delivered to a subscriber with a
    persistent session, are in files and survive a kill. Messages of QoS 0 are in memory only. The broker ends with this
    process, and its data with it.

    Parameters
    ----------
    users
        Password by name. Without users it asks nobody for a password.
    tls
        Whether it accepts TLS connections only. Its certificate comes from an authority of its own.
    port
        Its port; with 0 any free one.

    Raises
    ------
    ValueError
        If the port, or a user's name or password, isn't a possible one.

    Attributes
    ----------
    host
        Where it listens, with `port`.

    Examples
    --------
    >>> with MqttBroker() as broker:  # doctest: +SKIP
    ...     client = paho.mqtt.client.Client(CallbackAPIVersion.VERSION2)
    ...     client.connect(broker.host, broker.port)
    """

    host = HOST

    def __init__(self, *, users: Mapping[str, str] | None = None, tls: bool = False, port: int = 0) -> None:
        require_port(port, 0, "the port of the MQTT broker")
        self._users = Security(users or {}).users
        self._tls = tls
        self._identity: Identity | None = None
        self._wanted = port
        self._run: Run | None = None
        self._owner = Owner()
        self._held: Reservation | None = None
        self._process: JavaProcess | None = None
        end_nameless()

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it, or start it again with its data after a kill. On return, it answers. Does nothing if it already runs.

        Raises
        ------
        MqttFailed
            When it ends by itself; with its log's last lines.
        PortInUse, NotEnoughResources
            Why it could not start.
        DownloadError, HashMismatch
            When it isn't in the cache (16 MB) and cannot be downloaded, or is not what was locked.
        WaitTimeout
            When it runs but doesn't answer in time.
        """
        if self.running:
            return self
        if self._process is not None:
            self._spawn(self._process)
            return self
        require_memory(_MEMORY, "an MQTT broker")
        self._held = reserve_port(self._wanted)  # held as long as its data: after a crash it listens there again
        try:
            self._run, self._owner = Run.create("mqtt"), Owner()
            if self._tls:
                authority = CertificateAuthority(self._run.directory / "keys", "MQTT")
                self._identity = authority.issue("mqtt", [self.host, "localhost"])
            self._process = JavaProcess(self._run, "mqtt")
            self._spawn(self._process)
        except BaseException:
            self.stop()
            raise
        note_started(self, "MQTT broker", lambda: self._run is not None, self.stop)
        return self

    def stop(self) -> None:
        """End it. On return, its process, its port and its data are gone.

        Does nothing in a process that was forked after `start`: the broker belongs to its parent.
        """
        if not self._owner.is_me:
            return
        process, self._process = self._process, None
        if process is not None:
            process.kill()  # nobody needs its data any more
        run, self._run = self._run, None
        if run is not None:
            reap(run)
        if self._held is not None:
            self._held.close()
        self._held = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<MqttBroker: {'running' if self.running else 'not running'}>"

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.alive

    # -- faults -------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill it with SIGKILL, as a crash would. On return, its process is gone. The next start reads its data from its files.

        Raises
        ------
        MqttFailed
            When it doesn't run.
        """
        if self._process is None or not self.running:
            raise MqttFailed("the MQTT broker can't be killed: it doesn't run")
        self._process.kill()

    def restart(self) -> None:
        """Start it again at the same port, with its data. If it runs, stop it cleanly first. On return, it answers.

        Raises
        ------
        MqttFailed
            When it was not started, or ends before it answers.
        """
        process = self._started()
        process.end()
        self._spawn(process)

    # -- sight --------------------------------------------------------------------------------------------------

    @property
    def port(self) -> int:
        """The port on which it listens."""
        self._started()
        assert self._held is not None
        return self._held.port

    @property
    def url(self) -> str:
        """Its address as Java's clients and connectors want it: ``tcp://127.0.0.1:…``, or ``ssl://…``."""
        return f"{'ssl' if self._tls else 'tcp'}://{self.host}:{self.port}"

    @property
    def authority(self) -> Path:
        """The certificate that clients must trust, as PEM: ``client.tls_set(broker.authority)``.

        Raises
        ------
        MqttFailed
            When it was not started, or started without TLS.
        """
        self._started()
        if self._identity is None:
            raise MqttFailed("the MQTT broker shows no certificate: it was made without tls=True")
        return self._identity.authority

    def connector_config(self, user: str | None = None) -> dict[str, str]:
        """Return settings for the course's MQTT source: address, trust store and login. They may hold passwords.

        Raises
        ------
        MqttFailed
            When it was not started.
        UnknownUser
            When there's no such user.
        """
        config = {"mqtt.url": self.url}
        if self._identity is not None:
            trusted, password = self._identity.truststore, self._identity.password
            config |= {"mqtt.truststore.location": str(trusted), "mqtt.truststore.password": password}
        if user is not None:
            if user not in self._users:
                raise UnknownUser(f"the MQTT broker has no user {user!r}; it has {', '.join(self._users) or 'none'}")
            config |= {"mqtt.user": user, "mqtt.password": self._users[user]}
        return config

    @property
    def pid(self) -> int | None:
        """Its process id, even after it was killed."""
        return self._started().pid

    def logs(self) -> str:
        """Return its log since its first start."""
        return self._started().logs()

    # -- parts --------------------------------------------------------------------------------------------------

    def _started(self) -> JavaProcess:
        if self._process is None:
            raise MqttFailed("the MQTT broker is not running: call start() first")
        return self._process

    def _spawn(self, process: JavaProcess) -> None:
        """Start its process, and wait until it answers."""
        assert self._run is not None
        folder = self._run.directory
        folders = {f"{what}Directory": folder / "data" / what for what in ("journal", "bindings", "largeMessages", "paging")}
        settings = as_text({**_SETTINGS, **folders, **self._security(folder), f"{_ACCEPTOR}.port": self.port})
        file = write_private(folder / "broker.properties", format_properties(settings))
        write_private(folder / "simplelogger.properties", format_properties(_LOG_SETTINGS))  # found on the class path
        classes = os.pathsep.join(map(str, [folder, *ensure_jars("mqtt-broker", announce)]))
        process.spawn(_HEAP, classes, _MAIN, [str(folder), str(file)])

        def answers() -> bool:
            if not process.alive:
                raise MqttFailed(process.ended("the MQTT broker"))
            with self._connected() as client:
                client.sendall(_CONNECT)
                return client.recv(len(_ANSWER) + _REST).startswith(_ANSWER)

        wait_until(answers, _START_SECONDS, "the MQTT broker to answer", last_seen=process.last_words, ignore=(OSError,))

    def _connected(self) -> socket.socket:
        client = socket.create_connection((self.host, self.port), _ANSWER_SECONDS)
        if self._identity is None:
            return client
        trusting = ssl.create_default_context(cafile=self._identity.authority)
        return trusting.wrap_socket(client, server_hostname=self.host)

    def _security(self, folder: Path) -> dict[str, object]:
        """Return its settings for TLS and passwords, and write the files that they name."""
        settings: dict[str, object] = {"securityEnabled": bool(self._users)}
        if self._identity is not None:
            settings |= {
                f"{_ACCEPTOR}.sslEnabled": True,
                f"{_ACCEPTOR}.keyStoreType": "PKCS12",
                f"{_ACCEPTOR}.keyStorePath": self._identity.keystore,
                f"{_ACCEPTOR}.keyStorePassword": self._identity.password,
            }
        if self._users:
            hashed = {name: _hashed(password) for name, password in self._users.items()}
            write_private(folder / "users.properties", format_properties(hashed))
            write_private(folder / "roles.properties", format_properties({"client": ",".join(self._users)}))
            settings |= {
                f"{_ACCEPTOR}.securityDomain": "users",
                f"{_LOGIN}.loginModuleClass": "org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule",
                f"{_LOGIN}.controlFlag": "required",
                f"{_LOGIN}.params.baseDir": folder,
                f'{_LOGIN}.params."org.apache.activemq.jaas.properties.user"': "users.properties",
                f'{_LOGIN}.params."org.apache.activemq.jaas.properties.role"': "roles.properties",
                **{f'securityRoles."#".client.{right}': True for right in _RIGHTS},
            }
        return settings


def _hashed(password: str) -> str:
    """Return a password's salted hash in Artemis' format. No file holds the password itself."""
    salt = secrets.token_bytes(32)
    digest = hashlib.pbkdf2_hmac("sha1", password.encode(), salt, _ROUNDS, _BYTES)
    return f"ENC({_ROUNDS}:{salt.hex().upper()}:{digest.hex().upper()})"
