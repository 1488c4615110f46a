"""Hello world in Protobuf, and an order: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference

from schema_support import V1, Registered, avro
from support import Verdict, commit

pytestmark = pytest.mark.cluster

PROTOBUF, GENERIC, ORDER = "06_protobuf", "06_generic", "06_order"
TOPIC = "protobuf-topic"

HEAD = 'syntax = "proto3";\npackage com.codingharbour.protobuf;\n'
MESSAGE_FILE = HEAD + "message SimpleMessage {\n  string content = 1;\n  string date_time = 2;\n}\n"
PRODUCT_FILE = HEAD + "message Product {\n  int32 product_id = 1;\n  string name = 2;\n  string description = 3;\n}\n"
ORDER_FIELDS = "  int64 order_id = 1;\n  int64 date_time = 2;\n"
ORDER_FILE = f'{HEAD}import "product.proto";\nmessage Order {{\n{ORDER_FIELDS}  repeated Product product = 3;\n}}\n'
ONE_FILE = f"{PRODUCT_FILE}message Order {{\n{ORDER_FIELDS}  Product product = 3;\n}}\n"


def text(number: int, value: str) -> bytes:
    """A text field, as Protobuf writes it."""
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def order(number: int, *names: str) -> bytes:
    """An order with products of these names."""
    products = (b"\x08\x01" + (text(2, name) if name else b"") for name in names)
    return b"\0\x08" + bytes([number + 1]) + b"\x10\x02" + b"".join(b"\x1a" + bytes([len(p)]) + p for p in products)


HELLO = b"\0" + text(1, "Hello world") + text(2, "2026-11-22T12:00:00")
SEEN = {"content": "Hello world", "date_time": "2026-11-22T12:00:00"}


def send(registered: Registered, payloads: list[bytes], keys: list[bytes | None] | None = None) -> None:
    registered.client.register_schema(f"{TOPIC}-value", Schema(MESSAGE_FILE, "PROTOBUF"))
    registered.fill(TOPIC, [registered.framed(f"{TOPIC}-value", payload) for payload in payloads], keys)


def test_protobuf(registered: Registered, verdict: Verdict) -> None:
    cluster, given = registered.cluster, {"registry": registered.registry}
    passed, printed = verdict(PROTOBUF, cluster, **given)
    assert not passed
    assert "There is no subject 'protobuf-topic-value' yet" in printed
    assert printed.count("Not looked at yet") == 2
    send(registered, [HELLO])
    verdict.says("There is no consumer group 'protobuf-consumer-group' yet", PROTOBUF, cluster, **given)
    commit(cluster, "protobuf-consumer-group", TOPIC)
    verdict.passes(PROTOBUF, cluster, **given)
    verdict.says("There is no consumer group 'generic-protobuf-consumer-group' yet", GENERIC, cluster, **given, seen=SEEN)
    commit(cluster, "generic-protobuf-consumer-group", TOPIC)
    verdict.passes(GENERIC, cluster, **given, seen=SEEN)
    verdict.says("Do the names come from the registry's schema", GENERIC, cluster, **given, seen={"1": "Hello world"})
    verdict.says(
        "Each key of `seen` should be text, not a whole number (one is 1)", GENERIC, cluster, **given, seen={1: "Hello world"}
    )
    verdict.says("Give check() your answer as seen=", GENERIC, cluster, **given)


@pytest.mark.parametrize(
    ("sentence", "payloads", "keys"),
    [
        ("protobuf-topic holds 2 records. One is enough", [HELLO, HELLO], None),
        ("The record has a key", [HELLO], [b"k"]),
        ("The content is 'Hello'", [b"\0" + text(1, "Hello") + text(2, "2026-11-22T12:00:00")], None),
        ("which isn't ISO 8601", [b"\0" + text(1, "Hello world") + text(2, "noon")], None),
        ("isn't the text's SimpleMessage", [b"\0\xff\xff"], None),
    ],
)
def test_protobuf_that_is_wrong(
    registered: Registered, verdict: Verdict, sentence: str, payloads: list[bytes], keys: list[bytes | None] | None
) -> None:
    send(registered, payloads, keys)
    commit(registered.cluster, "protobuf-consumer-group", TOPIC)
    verdict.says(sentence, PROTOBUF, registered.cluster, registry=registered.registry)


def test_another_kind_of_schema(registered: Registered, verdict: Verdict) -> None:
    registered.client.register_schema(f"{TOPIC}-value", avro(V1))
    verdict.says("of type AVRO, not PROTOBUF", PROTOBUF, registered.cluster, registry=registered.registry)


def send_orders(registered: Registered, payloads: list[bytes], file: str = ORDER_FILE) -> None:
    registered.client.register_schema("product.proto", Schema(PRODUCT_FILE, "PROTOBUF"))
    references = [SchemaReference("product.proto", "product.proto", 1)] if "import" in file else []
    registered.client.register_schema("orders-value", Schema(file, "PROTOBUF", references))
    registered.fill("orders", [registered.framed("orders-value", payload) for payload in payloads])


def test_order(registered: Registered, verdict: Verdict) -> None:
    cluster, given = registered.cluster, {"registry": registered.registry, "products": [0, 1, 2]}
    send_orders(registered, [order(0), order(1, "a"), order(2, "a", "b")])
    verdict.says("There is no consumer group 'orders' yet", ORDER, cluster, **given)
    commit(cluster, "orders", "orders")
    verdict.passes(ORDER, cluster, **given)
    verdict.passes(ORDER, cluster, **{**given, "products": (0, 1, 2)})
    verdict.says("You read orders with [0, 1, 1] products", ORDER, cluster, **{**given, "products": [0, 1, 1]})
    verdict.says("Give check() your answer as products=", ORDER, cluster, registry=registered.registry)
    registered.add("orders", [registered.framed("orders-value", order(3, ""))])
    verdict.says("A product of the order at offset 3 has no name", ORDER, cluster, **given)


def test_order_with_one_product_at_most(registered: Registered, verdict: Verdict) -> None:
    send_orders(registered, [order(0), order(1, "a")], ONE_FILE)
    passed, printed = verdict(ORDER, registered.cluster, registry=registered.registry, products=[0, 1])
    assert not passed
    assert "The 2 orders have 0, 1 products" in printed
    assert "The order's schema refers to no other schema" in printed
