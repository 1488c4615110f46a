"""A class that runs: its cluster, the registry of its events' schema, its door and its board."""

from __future__ import annotations

import secrets
import ssl
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from httpx2 import HTTPError

from kafkalab.classroom.borrowed import authority_of, require_login, try_seat
from kafkalab.classroom.class_cluster import INSTRUCTOR, ClassTopics, limit_seats, make_cluster
from kafkalab.classroom.door import Door, Seats
from kafkalab.classroom.events import SCHEMA
from kafkalab.classroom.join_code import SECRET, JoinCode, fingerprint_of
from kafkalab.classroom.membership import Membership
from kafkalab.classroom.released import NOTHING
from kafkalab.cluster import Cluster
from kafkalab.cluster.ports import HOST
from kafkalab.distribution import warn
from kafkalab.errors import KafkaLabError
from kafkalab.resources import require_disk
from kafkalab.security.authority import CertificateAuthority
from kafkalab.services import SchemaRegistry

__all__ = ["Classroom", "certificate_of"]

_ROOM = 500 << 20  # bytes of disk: seats' topics may keep 4 MB each, three times
_SUBJECT = "board-value"
_BROKERS_AFTER = 1  # the brokers' ports follow the door's


class Classroom:
    """A class from `start` to `stop`.

    Parameters
    ----------
    host
        The address of this machine where learners reach it. By default only this machine does.
    port
        The door's port. The brokers have the three after it. With 0, any free ones.
    hours
        How long it lasts.
    seats
        How many learners may join.
    existing
        A cluster to use, attached to, with the rights to create users, topics and ACLs. Without it, the class starts its own.
    registry
        The address of the schema registry beside that cluster, if there is one.

    Attributes
    ----------
    cluster
        The class's cluster.
    """

    def __init__(
        self,
        host: str = HOST,
        port: int = 0,
        *,
        hours: float = 10,
        seats: int = 100,
        existing: Cluster | None = None,
        registry: str = "",
    ) -> None:
        self._host, self._port = host, port
        self._expires = time.time() + hours * 3600
        self._existing, self._registry = existing, registry
        self.cluster = existing or make_cluster(host, port + _BROKERS_AFTER if port else 0)
        self.seats = Seats(self._admit, seats)
        self._topics: ClassTopics | None = None
        self._code: JoinCode | None = None
        self._id = secrets.token_hex(4)
        self._open = ExitStack()
        self._schema: Future[int] | None = None

    def start(self, said: Callable[[str], None] = lambda _: None) -> None:
        """Start the class. On return learners can join.

        Parameters
        ----------
        said
            Gets a sentence for each step.

        Raises
        ------
        KafkaLabError
            Why it can't start. Nothing is left then.
        """
        try:
            self._start(said)
        except BaseException:
            with suppress(KafkaLabError):  # of a cluster that is gone
                self.stop()
            raise

    def _start(self, said: Callable[[str], None]) -> None:
        require_disk(Path(tempfile.gettempdir()), _ROOM)
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="kafkalab-class-")))
        authority = CertificateAuthority(folder / "door")
        identity = authority.issue("door", [self._host])
        secret = secrets.token_bytes(SECRET)
        door = Door(self.seats, secret, identity)
        own = self._existing is None
        said("Starting the class's cluster" if own else "Connecting to your cluster")
        self._open.callback(self.cluster.stop)
        self.cluster.start()
        if not own:
            require_login(self.cluster.client_config())
        registering = self._open.enter_context(ThreadPoolExecutor(1, "kafkalab-class-schema"))
        self._schema = registering.submit(self._register)  # it takes as long as the brokers: people read the code meanwhile
        self._topics = ClassTopics(self.cluster)
        if not own:
            self._topics.require_none()
            self._open.callback(self._topics.remove)
        self._topics.prepare(self._password() if own else None)
        self._topics.publish(NOTHING)
        if not own:
            said("Trying a seat")
            self._try_a_seat()
        door.start(self._host, self._port)
        self._open.callback(door.stop)
        fingerprint = fingerprint_of(certificate_of(identity.certificate))
        self._code = JoinCode(self._host, door.port, self._expires, secret, fingerprint)
        if own:
            registering.submit(self._limit)  # after it: both at once would keep the first seats waiting

    @property
    def schema_id(self) -> int:
        """The registry's id of the events' schema. Waits until it's registered, and raises `KafkaLabError` if it can't be."""
        assert self._schema is not None, "the class has started"
        return self._schema.result()

    @property
    def code(self) -> str:
        """What learners type to join."""
        assert self._code is not None, "the class has started"
        return str(self._code)

    @property
    def topics(self) -> ClassTopics:
        """The class's topics."""
        assert self._topics is not None, "the class has started"
        return self._topics

    def stop(self) -> None:
        """End the class, and delete all that its seats wrote. On return nothing is left. Safe to call again.

        Raises
        ------
        KafkaLabError
            If a cluster that ran before doesn't delete it.
        """
        self._open.close()

    def _password(self) -> str:
        return str(self.cluster.client_config(INSTRUCTOR)["sasl.password"])

    def _limit(self) -> None:
        try:
            limit_seats(self.cluster, self.cluster.clients.command_config(INSTRUCTOR))
        except KafkaLabError as error:
            warn(f"{error}. The class goes on, and nothing slows down a seat that floods it")

    def _register(self) -> int:
        if self._existing is None:
            url = self._open.enter_context(SchemaRegistry(self.cluster)).url
        elif not self._registry:
            return 0  # the id of no schema: readers have the one of this version of the course
        else:
            url = self._registry
        try:
            return int(SchemaRegistryClient({"url": url}).register_schema(_SUBJECT, Schema(SCHEMA, "AVRO")))
        except (SchemaRegistryError, OSError, HTTPError) as error:
            raise KafkaLabError(f"the schema registry at {url} doesn't take the schema of events: {error}") from error

    def _admit(self, seat: str) -> Membership:
        password = self.topics.admit(seat)
        authority = authority_of(self.cluster.client_config(INSTRUCTOR if self._existing is None else None))
        servers = self.cluster.bootstrap_servers
        return Membership(self._id, seat, servers, password, authority, self.schema_id, self._expires)

    def _try_a_seat(self) -> None:
        name = f"trial-{secrets.token_hex(4)}"
        try:
            try_seat(self._admit(name))
        finally:
            self.topics.dismiss(name)


def certificate_of(file: Path) -> bytes:
    """Return the first certificate of a file as DER: a server's own, before its authority's."""
    end = "-----END CERTIFICATE-----"
    first, _, _ = file.read_text().partition(end)
    return ssl.PEM_cert_to_DER_cert(first + end)
