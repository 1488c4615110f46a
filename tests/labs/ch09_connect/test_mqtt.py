"""Positions from MQTT in two topics: each wrong answer gets its sentence, and right ones pass."""

from __future__ import annotations

import json
from collections.abc import Iterator

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from connect_support import ask, put
from kafkalab import Cluster, ConnectCluster, MqttBroker, wait_until
from kafkalab.checks import CheckContext
from support import PATIENCE, Verdict, create
from support import put as send

pytestmark = pytest.mark.cluster

LAB, SAFE, FAST = "09_mqtt", "truck_position", "truck_position_qos0"
BYTES, TEXT = "org.apache.kafka.connect.converters.ByteArrayConverter", "org.apache.kafka.connect.storage.StringConverter"
SENT = [json.dumps({"truck": 10 + number % 2, "number": number}) for number in range(6)]


@pytest.fixture(scope="module")
def broker() -> Iterator[MqttBroker]:
    with MqttBroker() as broker:
        yield broker


def listen(connect: ConnectCluster, broker: MqttBroker, name: str, qos: int, topic: str, **more: str) -> None:
    config = {
        "connector.class": "MqttSourceConnector",
        "mqtt.url": broker.url,
        "mqtt.topics": "truck/+/position",
        "mqtt.qos": qos,
        "mqtt.client.id": name,
        "topic": topic,
        "key.converter": TEXT,
        "value.converter": BYTES,
    }
    [worker] = connect.workers
    before = worker.logs().count("connected to tcp")
    put(connect, name, config | {key.replace("_", "."): value for key, value in more.items()})
    connect.wait_until_running(name)
    wait_until(lambda: worker.logs().count("connected to tcp") > before, PATIENCE, f"{name} to reach the MQTT broker")


def drive(cluster: Cluster, broker: MqttBroker, topic: str) -> None:
    """Publish positions and temperatures, and wait until the topic has what its connector asks for."""
    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.connect(broker.host, broker.port)
    client.loop_start()
    for position in SENT:
        truck = json.loads(position)["truck"]
        client.publish(f"truck/{truck}/temperature", "21", qos=1)
        client.publish(f"truck/{truck}/position", position, qos=1).wait_for_publish(60)
    client.disconnect()
    client.loop_stop()

    def there() -> bool:
        return topic in cluster.describe(groups=False).topics and len(CheckContext(cluster).records(topic)) >= len(SENT)

    wait_until(there, PATIENCE, f"the positions in {topic}")


def pretend(cluster: Cluster, topic: str, values: list[str]) -> None:
    """Fill a topic as its connector would."""
    create(cluster, topic, 1, 1)
    send(cluster, topic, [("truck/10/position", value, 0) for value in values])


@pytest.mark.parametrize("filter_", ["truck/+/position", "+/+/position"])
def test_positions_that_came_through(
    single: Cluster, connect: ConnectCluster, broker: MqttBroker, verdict: Verdict, filter_: str
) -> None:
    verdict.says("There is no connector 'trucks' yet", LAB, single, connect=connect)
    # A session keeps the filters that it had: without an id of its own the second one would get each position twice.
    listen(connect, broker, "trucks", 1, SAFE, mqtt_topics=filter_, mqtt_client_id=filter_)
    listen(connect, broker, "trucks-qos0", 0, "elsewhere")
    pretend(single, FAST, SENT[:2])
    drive(single, broker, SAFE)
    send(single, SAFE, [("truck/10/position", SENT[0], 0)])
    answers = {"connect": connect, "sent": SENT, "lost": 4, "twice": 1}
    verdict.passes(LAB, single, **answers)
    verdict.says("`lost` is 2. Compare `sent` with the values", LAB, single, **(answers | {"lost": 2}))
    verdict.says("`twice` is 2. How many different values", LAB, single, **(answers | {"twice": 2}))
    more = json.dumps({"truck": 10, "number": 6})
    verdict.says("truck_position lacks 1 position of 7", LAB, single, **(answers | {"sent": [*SENT, more]}))
    send(single, FAST, [("truck/10/position", value, 0) for value in SENT[2:]])
    verdict.says("truck_position_qos0 has all positions. Was there an outage", LAB, single, **answers)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"value_converter": TEXT}, "begins with '[B@"),
        ({"value_converter": "org.apache.kafka.connect.json.JsonConverter"}, "Which converter leaves bytes as they are?"),
        ({"mqtt_topics": "truck/#"}, "truck_position has a temperature, too. Which"),
    ],
)
def test_a_topic_that_holds_something_else(
    single: Cluster, connect: ConnectCluster, broker: MqttBroker, verdict: Verdict, more: dict[str, str], sentence: str
) -> None:
    listen(connect, broker, "trucks", 1, SAFE, mqtt_client_id=sentence, **more)
    listen(connect, broker, "trucks-qos0", 0, "elsewhere")
    pretend(single, FAST, SENT[:2])
    drive(single, broker, SAFE)
    verdict.says(sentence, LAB, single, connect=connect, sent=SENT, lost=4, twice=0)


def test_connectors_that_promise_something_else(
    single: Cluster, connect: ConnectCluster, broker: MqttBroker, verdict: Verdict
) -> None:
    listen(connect, broker, "trucks", 0, SAFE)
    verdict.says("trucks reads with QoS 0, not 1", LAB, single, connect=connect)
    listen(connect, broker, "trucks", 1, SAFE)
    listen(connect, broker, "trucks-qos0", 0, FAST, mqtt_client_id="trucks")
    verdict.says("have the same client id", LAB, single, connect=connect)
    ask(connect, "DELETE", "/connectors/trucks")
