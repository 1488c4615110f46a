"""`MqttBroker`: a real MQTT broker, from a notebook cell."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from paho.mqtt.client import MQTT_ERR_SUCCESS, Client
from paho.mqtt.enums import CallbackAPIVersion

from kafkalab.cluster.ports import HOST
from kafkalab.cluster.spec import require_port
from kafkalab.distribution import announce, ensure_jars
from kafkalab.errors import MqttFailed, UnknownUser
from kafkalab.lifeline import Run
from kafkalab.resources import require_memory
from kafkalab.security.authority import CertificateAuthority, Identity
from kafkalab.security.config import Security
from kafkalab.security.files import write_private
from kafkalab.services.base import RestartableServer
from kafkalab.services.java_process import JavaProcess
from kafkalab.settings import as_text, format_properties

__all__ = ["MqttBroker"]

_MAIN = "org.apache.activemq.artemis.core.server.embedded.Main"
_HEAP = "48m"
_MEMORY = 110 << 20
_ANSWER_SECONDS = 10

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


class MqttBroker(RestartableServer[JavaProcess]):
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

    _KIND, _WHO, _NOUN, _FAILURE = "mqtt", "the MQTT broker", "MQTT broker", MqttFailed

    def __init__(self, *, users: Mapping[str, str] | None = None, tls: bool = False, port: int = 0) -> None:
        require_port(port, 0, "the port of the MQTT broker")
        super().__init__()
        self._users = Security(users or {}).users
        self._tls = tls
        self._identity: Identity | None = None
        self._port = port

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return self._required().port

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
        self._require_started()
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
        return self._required().pid

    # -- parts --------------------------------------------------------------------------------------------------

    def _require(self) -> None:
        require_memory(_MEMORY, "an MQTT broker")

    def _make_server(self, run: Run) -> JavaProcess:
        if self._tls:
            authority = CertificateAuthority(run.directory / "keys", "MQTT")
            self._identity = authority.issue("mqtt", [self.host, "localhost"])
        return JavaProcess(run, "mqtt", self._WHO, MqttFailed, ports=(self._port,))

    def _launch(self, server: JavaProcess) -> None:
        folder = server.folder
        folders = {f"{what}Directory": folder / "data" / what for what in ("journal", "bindings", "largeMessages", "paging")}
        settings = as_text({**_SETTINGS, **folders, **self._security(folder), f"{_ACCEPTOR}.port": server.port})
        file = write_private(folder / "broker.properties", format_properties(settings))
        write_private(folder / "simplelogger.properties", format_properties(_LOG_SETTINGS))  # found on the class path
        classes = os.pathsep.join(map(str, [folder, *ensure_jars("mqtt-broker", announce)]))
        server.run_java(_HEAP, classes, _MAIN, [str(folder), str(file)])

    def _is_ready(self, server: JavaProcess) -> bool:
        """Return whether it answers a client that connects, even if only that it wants a password."""
        answers: list[object] = []
        client = Client(CallbackAPIVersion.VERSION2)
        client.on_connect = lambda *answer: answers.append(answer)
        if self._identity is not None:
            client.tls_set(str(self._identity.authority))
        client.connect(self.host, self.port, keepalive=_ANSWER_SECONDS)
        while client.loop() == MQTT_ERR_SUCCESS and not answers:  # an error if none comes in time
            pass
        client.disconnect()
        return bool(answers)

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
