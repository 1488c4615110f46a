"""What `MqttBroker` guarantees."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import paho.mqtt.client as mqtt
import psutil
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from kafkalab import resources, wait_until
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.errors import MqttFailed, NotEnoughResources, PortInUse, UnknownUser
from kafkalab.paths import files_below
from kafkalab.services import MqttBroker
from support import PATIENCE, own_runs

TOPICS = "truck/+/position"


@pytest.fixture(scope="module")
def broker() -> Iterator[MqttBroker]:
    with MqttBroker() as broker:
        yield broker


class Client(mqtt.Client):
    """A client with a persistent session that keeps what it gets; it acknowledges that, or leaves it at that."""

    def __init__(self, broker: MqttBroker, name: str, *, acknowledges: bool = True) -> None:
        super().__init__(
            CallbackAPIVersion.VERSION2, name, clean_session=False, manual_ack=not acknowledges, reconnect_on_failure=False
        )
        self.got: list[str] = []
        self.on_message = lambda _client, _data, message: self.got.append(message.payload.decode())
        self.connect(broker.host, broker.port)
        self.loop_start()

    def subscribe_now(self, topic: str) -> None:
        done: list[object] = []
        self.on_subscribe = lambda *_: done.append(_)
        self.subscribe(topic, qos=1)
        wait_until(lambda: done, PATIENCE, "the subscription")

    def publish_all(self, *payloads: str, qos: int) -> None:
        for sent in [self.publish("truck/10/position", payload, qos) for payload in payloads]:
            sent.wait_for_publish(30)

    def leave(self) -> None:
        self.disconnect()
        self.loop_stop()

    def wait_for(self, *payloads: str) -> None:
        wait_until(lambda: set(payloads) <= set(self.got), PATIENCE, f"{len(payloads)} messages", last_seen=lambda: self.got)


def test_what_was_acknowledged_survives_kills_until_it_is_delivered(broker: MqttBroker) -> None:
    url = broker.url
    subscriber = Client(broker, "subscriber")
    subscriber.subscribe_now(TOPICS)
    subscriber.leave()
    publisher = Client(broker, "publisher")
    sent = [f"{n}" for n in range(200)]
    publisher.publish_all("in memory alone", qos=0)
    publisher.publish_all(*sent, qos=1)
    broker.kill()
    assert not broker.running
    with pytest.raises(MqttFailed, match="can't be killed"):
        broker.kill()
    publisher.leave()
    broker.start()
    assert broker.url == url
    for _ in range(11):  # what it doesn't acknowledge is delivered again, however often
        silent = Client(broker, "subscriber", acknowledges=False)
        silent.wait_for(*sent)
        silent.leave()
    broker.kill()
    broker.restart()
    subscriber = Client(broker, "subscriber")
    subscriber.wait_for(*sent)
    assert sorted(subscriber.got, key=int) == sent
    subscriber.subscribe_now(TOPICS)  # answered after the acknowledgements before it
    subscriber.leave()
    again = Client(broker, "subscriber")
    publisher = Client(broker, "publisher")
    publisher.publish_all("the last", qos=1)
    again.wait_for("the last")
    assert again.got == ["the last"]  # the others were acknowledged
    for client in (again, publisher):
        client.leave()


def test_it_listens_on_loopback_only(broker: MqttBroker) -> None:
    listening = [c.laddr.ip for c in psutil.Process(broker.pid).net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    assert listening and set(listening) <= {HOST, f"::ffff:{HOST}"}


def welcome(broker: MqttBroker, user: str, password: str, *, tls: bool) -> str:
    """What the broker says to a client: whether it may come in, or why not."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
    if tls:
        client.tls_set(broker.authority)
    client.username_pw_set(user, password)
    said: list[str] = []
    client.on_connect = lambda _client, _data, _flags, reason, _properties: said.append(str(reason))
    client.on_disconnect = lambda *_: said.append("cut off")
    client.connect(broker.host, broker.port)
    client.loop_start()
    try:
        return wait_until(lambda: said, PATIENCE, "the broker to answer")[0]
    finally:
        client.disconnect()
        client.loop_stop()


def test_with_tls_and_users_it_lets_in_who_has_the_right_password_and_encrypts() -> None:
    strange = "ENC(\"ü\\ '#:"
    with MqttBroker(users={"truck": strange, "office": "secret"}, tls=True) as broker:
        assert broker.url == f"ssl://{broker.host}:{broker.port}"
        assert welcome(broker, "office", strange, tls=True) == welcome(broker, "nobody", "", tls=True) == "Not authorized"
        assert welcome(broker, "office", "secret", tls=False) == "cut off"
        assert welcome(broker, "truck", strange, tls=True) == "Success"
        broker.kill()
        broker.start()
        assert welcome(broker, "office", "secret", tls=True) == "Success"
        config = broker.connector_config("office")
        assert config["mqtt.user"] == "office" and config["mqtt.password"] == "secret" and config["mqtt.url"] == broker.url
        with pytest.raises(UnknownUser, match="no user 'guest'; it has truck, office"):
            broker.connector_config("guest")
        folder = broker._run.directory
        assert folder.stat().st_mode & 0o077 == 0
        held = b"".join(path.read_bytes() for path in files_below(folder) if path.is_file() and "keys" not in path.parts)
        assert b"secret" not in held and "secret" not in repr(broker)  # its hash alone is there


def test_without_tls_there_is_no_certificate_and_names_of_users_are_checked(broker: MqttBroker) -> None:
    assert broker.connector_config() == {"mqtt.url": broker.url}
    with pytest.raises(MqttFailed, match="without tls=True"):
        broker.authority  # noqa: B018
    with pytest.raises(ValueError, match="the password of 'truck' is text"):
        MqttBroker(users={"truck": ""})


def test_one_that_cannot_start_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = own_runs()
    with monkeypatch.context() as short:
        short.setattr(resources, "available_memory", lambda: 60 << 20)
        with pytest.raises(NotEnoughResources, match="an MQTT broker needs about 110 MB of memory, but only 60 MB"):
            MqttBroker().start()
    with reserve_port() as held, pytest.raises(PortInUse, match=str(held.port)):
        MqttBroker(port=held.port).start()
    assert own_runs() == before
    with pytest.raises(MqttFailed, match="call start"):
        MqttBroker().url  # noqa: B018


def test_nothing_is_left_when_it_stops(broker: MqttBroker) -> None:
    process, port, folder = psutil.Process(broker.pid), broker.port, broker._run.directory
    broker.stop()
    assert not process.is_running() and not folder.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))
    broker.stop()  # again
