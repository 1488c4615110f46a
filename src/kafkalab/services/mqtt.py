"""`MqttBroker`: a real MQTT broker, from a notebook cell."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Self

from kafkalab.cluster.ports import HOST, Reservation, reserve_port
from kafkalab.cluster.resources import require_memory
from kafkalab.cluster.spec import require_port
from kafkalab.distribution import announce, ensure_jars
from kafkalab.errors import MqttFailed
from kafkalab.lifeline import Owner, Run, reap
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
    "securityEnabled": False,
    # What is acknowledged is in a file before. A killed process loses nothing of it, also without waiting for the disk.
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

# A client without a name or a session says that it speaks MQTT 3.1.1; the broker says that it may.
_CONNECT = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x0a\x00\x00"
_ACCEPTED = b"\x20\x02\x00\x00"


class MqttBroker:
    """An MQTT broker on loopback: Apache ActiveMQ Artemis, a process of yours, also where Kafka's brokers are containers.

    It speaks MQTT 3.1.1 and 5. What it has acknowledged with QoS 1 or 2 to a publisher, and not yet delivered to a subscriber
    with a persistent session, is kept in files and survives a kill. With QoS 0 it's kept in memory alone. The broker ends with
    this process, and its data with it.

    Parameters
    ----------
    port
        Its port; with 0 any free one.

    Raises
    ------
    ValueError
        When that can't be a port.

    Attributes
    ----------
    host
        Where it listens, with `port`. It asks for no password.

    Examples
    --------
    >>> with MqttBroker() as broker:  # doctest: +SKIP
    ...     client = paho.mqtt.client.Client(CallbackAPIVersion.VERSION2)
    ...     client.connect(broker.host, broker.port)
    """

    host = HOST

    def __init__(self, *, port: int = 0) -> None:
        require_port(port, 0, "the port of the MQTT broker")
        self._wanted = port
        self._run: Run | None = None
        self._owner = Owner()
        self._held: Reservation | None = None
        self._process: JavaProcess | None = None

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it; also again, with its data, after it was killed. One that runs is left as it is. On return it answers.

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
            self._process = JavaProcess(self._run, "mqtt")
            self._spawn(self._process)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it. On return its process, its port and its data are gone.

        In a process that was forked off after `start`, nothing is ended: the broker is its parent's.
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
        """Kill it with SIGKILL: a crash. On return its process is gone; what was in files is there at the next start.

        Raises
        ------
        MqttFailed
            When it doesn't run.
        """
        if self._process is None or not self.running:
            raise MqttFailed("the MQTT broker can't be killed: it doesn't run")
        self._process.kill()

    def restart(self) -> None:
        """Start it again, at the same port and with its data; one that runs is shut down in order first.

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
        """Where it listens."""
        self._started()
        assert self._held is not None
        return self._held.port

    @property
    def url(self) -> str:
        """Its address as Java's clients and connectors want it: ``tcp://127.0.0.1:…``."""
        return f"tcp://{self.host}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Its process id, also after it was killed."""
        return self._started().pid

    def logs(self) -> str:
        """Its log so far, of all its lives."""
        return self._started().log

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
        settings = as_text({**_SETTINGS, **folders, "acceptorConfigurations.mqtt.params.port": self.port})
        file = write_private(folder / "broker.properties", format_properties(settings))
        write_private(folder / "simplelogger.properties", format_properties(_LOG_SETTINGS))  # found on the class path
        classes = os.pathsep.join(map(str, [folder, *ensure_jars("mqtt-broker", announce)]))
        process.spawn(_HEAP, classes, _MAIN, [str(folder), str(file)])

        def answers() -> bool:
            if not process.alive:
                raise MqttFailed(process.last_words("the MQTT broker ended by itself"))
            with socket.create_connection((self.host, self.port), _ANSWER_SECONDS) as client:
                client.sendall(_CONNECT)
                return client.recv(len(_ACCEPTED)) == _ACCEPTED

        wait_until(answers, _START_SECONDS, "the MQTT broker to answer", last_seen=process.last_words, ignore=(OSError,))
