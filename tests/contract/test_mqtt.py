"""What `MqttBroker` guarantees."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import paho.mqtt.client as mqtt
import psutil
import pytest

from kafkalab import wait_until
from kafkalab.cluster.ports import HOST, reserve_port
from kafkalab.errors import MqttFailed, PortInUse
from kafkalab.services import MqttBroker
from support import own_runs

TOPICS = "truck/+/position"


@pytest.fixture(scope="module")
def broker() -> Iterator[MqttBroker]:
    with MqttBroker() as broker:
        yield broker


class Client(mqtt.Client):
    """A client with a persistent session that keeps what it gets; it acknowledges that, or leaves it at that."""

    def __init__(self, broker: MqttBroker, name: str, *, acknowledges: bool = True) -> None:
        super().__init__(
            mqtt.CallbackAPIVersion.VERSION2, name, clean_session=False, manual_ack=not acknowledges, reconnect_on_failure=False
        )
        self.got: list[str] = []
        self.on_message = lambda _client, _data, message: self.got.append(message.payload.decode())
        self.connect(broker.host, broker.port)
        self.loop_start()

    def subscribe_now(self, topic: str) -> None:
        done: list[object] = []
        self.on_subscribe = lambda *_: done.append(_)
        self.subscribe(topic, qos=1)
        wait_until(lambda: done, 30, "the subscription")

    def publish_all(self, *payloads: str, qos: int) -> None:
        for sent in [self.publish("truck/10/position", payload, qos) for payload in payloads]:
            sent.wait_for_publish(30)

    def leave(self) -> None:
        self.disconnect()
        self.loop_stop()

    def wait_for(self, *payloads: str) -> None:
        wait_until(lambda: set(payloads) <= set(self.got), 30, f"{len(payloads)} messages", last_seen=lambda: self.got)


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


def test_one_that_cannot_start_says_why_and_leaves_nothing() -> None:
    before = own_runs()
    with reserve_port() as held, pytest.raises(PortInUse, match=str(held.port)):
        MqttBroker(port=held.port).start()
    assert own_runs() == before
    with pytest.raises(MqttFailed, match="call start"):
        MqttBroker().url  # noqa: B018


def test_nothing_is_left_when_it_stops(broker: MqttBroker) -> None:
    process, port, folder = psutil.Process(broker.pid), broker.port, broker._run.directory  # type: ignore[union-attr]
    broker.stop()
    assert not process.is_running() and not folder.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port))
    broker.stop()  # again


def test_nothing_is_left_when_its_owner_is_killed() -> None:
    program = """
import json, sys
from kafkalab.services import MqttBroker
broker = MqttBroker().start()
print(json.dumps([broker.pid, str(broker._run.directory)]), flush=True)
sys.stdin.read()
"""
    owner = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pid, folder = json.loads(owner.stdout.readline())
    process = psutil.Process(pid)
    owner.kill()
    owner.communicate()
    wait_until(lambda: not os.path.exists(folder) and not process.is_running(), 30, "the MQTT broker and its folder to be gone")
