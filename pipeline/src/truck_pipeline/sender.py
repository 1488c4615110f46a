"""Send trucks' reports at a rate, and keep a ledger of the acknowledged events."""

from __future__ import annotations

import queue
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from truck_pipeline.events import encoder
from truck_pipeline.settings import Settings
from truck_pipeline.trucks import Event, Report

__all__ = ["MqttTruckSender", "Sender", "TruckSender"]

# Unacknowledged reports. So few that a partition without a leader can't fall far behind the others: all wait for it.
MAX_IN_FLIGHT = 200


class Sender(ABC):
    """Sends reports from a thread of its own, to where a subclass sends them.

    Parameters
    ----------
    settings
        Topic and registry are taken from these.
    reports
        Reports in the order in which to send them.
    rate
        Reports per second; 0: as fast as possible.
    """

    def __init__(self, settings: Settings, reports: Iterable[Report], rate: float = 0) -> None:
        self._encode = encoder(settings)
        self._reports, self._rate = list(reports), rate
        self._sent: list[Report] = []
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trucks", daemon=True)

    def start(self) -> Self:
        """Begin to send."""
        self._thread.start()
        return self

    def wait(self, timeout: float = 300) -> Self:
        """Wait until every report is acknowledged.

        Raises
        ------
        Exception
            Why a report could not be sent.
        TimeoutError
            When some aren't acknowledged after `timeout` seconds.
        """
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        if self._thread.is_alive():
            raise TimeoutError(f"{len(self._sent)} of {len(self._reports)} reports are acknowledged after {timeout:g} s")
        return self

    def stop(self) -> None:
        """Stop sending. Reports in flight still arrive."""
        self._stop.set()
        self._thread.join()

    @property
    def acknowledged(self) -> int:
        """How many reports have been acknowledged so far."""
        return len(self._sent)

    @property
    def ledger(self) -> list[Event]:
        """All acknowledged events, without repeats."""
        return list({report.event.correlation: report.event for report in self._sent if report.event}.values())

    @property
    def malformed(self) -> int:
        """How many of the acknowledged reports hold no event."""
        return sum(report.event is None for report in self._sent)

    def _run(self) -> None:
        try:
            self._send_all()
        except Exception as error:
            self._error = error

    def _send_all(self) -> None:
        began = time.monotonic()
        for number, report in enumerate(self._reports):
            if self._stop.is_set():
                break
            if self._rate:
                self._stop.wait(max(0.0, began + number / self._rate - time.monotonic()))
            self._send(report, self._encode(report.event) if report.event else report.malformed)
        self._flush()

    @abstractmethod
    def _send(self, report: Report, value: bytes) -> None:
        """Send a report when fewer than `MAX_IN_FLIGHT` are in flight. Append it to `_sent` when it's acknowledged."""

    @abstractmethod
    def _flush(self) -> None:
        """Wait until all reports are acknowledged."""


class TruckSender(Sender):
    """Sends reports to Kafka. The driver is the key.

    Parameters
    ----------
    client
        Settings of a producer, such as ``bootstrap.servers``.
    settings, reports, rate
        As for any `Sender`.
    """

    def __init__(self, client: Mapping[str, object], settings: Settings, reports: Iterable[Report], rate: float = 0) -> None:
        super().__init__(settings, reports, rate)
        # Without batches, nearly every event would cost three brokers a request and two copies of it.
        self._producer = Producer({"linger.ms": 100, **client, "enable.idempotence": True})
        self._topic = settings.positions

    def _send(self, report: Report, value: bytes) -> None:
        while len(self._producer) >= MAX_IN_FLIGHT:
            self._producer.poll(0.1)
        self._producer.produce(self._topic, value, key=str(report.driver), on_delivery=partial(self._acknowledge, report))
        self._producer.poll(0)

    def _flush(self) -> None:
        self._producer.flush()

    def _acknowledge(self, report: Report, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        self._sent.append(report)


class MqttTruckSender(Sender):
    """Publishes reports to an MQTT broker with QoS 1, as ``driver/ID/position``. A connector brings them to Kafka.

    When the MQTT broker goes away, it reconnects, and publishes unacknowledged reports again. So a report may come twice.

    Parameters
    ----------
    host, port
        Where the MQTT broker listens.
    settings, reports, rate
        As for any `Sender`.
    """

    def __init__(self, host: str, port: int, settings: Settings, reports: Iterable[Report], rate: float = 0) -> None:
        super().__init__(settings, reports, rate)
        self._acknowledged: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._waiting: dict[int, Report] = {}
        self._client = Client(CallbackAPIVersion.VERSION2, f"trucks-{uuid.uuid4().hex}", clean_session=False)
        self._client.reconnect_delay_set(1, 1)
        self._client.max_inflight_messages_set(MAX_IN_FLIGHT)
        self._client.on_publish = lambda _client, _data, number, *_: self._acknowledged.put(number)
        self._client.connect(host, port)
        self._client.loop_start()

    def _send(self, report: Report, value: bytes) -> None:
        while len(self._waiting) >= MAX_IN_FLIGHT or not self._acknowledged.empty():
            self._await_acknowledgement()
        sent = self._client.publish(f"driver/{report.driver}/position", value, qos=1)
        if sent.rc not in (MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_NO_CONN):  # it's sent after reconnecting
            raise OSError(f"a report could not be sent: {sent.rc.name}")
        self._waiting[sent.mid] = report

    def _flush(self) -> None:
        while self._waiting:
            self._await_acknowledgement()
        self._client.disconnect()
        self._client.loop_stop()

    def _await_acknowledgement(self) -> None:
        self._sent.append(self._waiting.pop(self._acknowledged.get()))
