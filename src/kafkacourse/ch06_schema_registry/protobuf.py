"""A Protobuf message, read with and without its class, and a schema that refers to another one."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from confluent_kafka import Message

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import has_read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.schemas import client_of, framed, has_type, message_payload, subject_versions
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

__all__ = ["lab"]

MESSAGES, ORDERS = "protobuf-topic", "orders"
STRING, INT32, INT64, MESSAGE = 9, 5, 3, 11

lab = Lab("06_protobuf")

protobuf = lab.add_check(
    "06_protobuf",
    "Say hello in Protobuf",
    hints=(
        'ProtobufSerializer(SimpleMessage, client, {"use.deprecated.format": False}) registers the schema on first use.',
        "datetime.now(UTC).isoformat() is the time as text.",
        'ProtobufDeserializer(SimpleMessage, {"use.deprecated.format": False}) reads it. consumer.commit(record) is '
        "asynchronous; close() waits for it.",
    ),
)


def _decode(client: SchemaRegistryClient, record: Message, message: str) -> Any:
    """Decode a record's message, with the fields that the lab's text names."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    payload = message_payload(framed(client, record)[2])
    described = {
        "SimpleMessage": [("content", 1, STRING, 1), ("date_time", 2, STRING, 1)],
        "Product": [("product_id", 1, INT32, 1), ("name", 2, STRING, 1), ("description", 3, STRING, 1)],
        "Order": [("order_id", 1, INT64, 1), ("date_time", 2, INT64, 1), ("product", 3, MESSAGE, 3)],
    }
    messages = []
    for name, fields in described.items():
        found = descriptor_pb2.DescriptorProto(name=name)
        for field, number, kind, label in fields:
            type_name = ".check.Product" if kind == MESSAGE else None
            found.field.add(name=field, number=number, type=kind, label=label, type_name=type_name)
        messages.append(found)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto(name="check.proto", package="check", syntax="proto3", message_type=messages))
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"check.{message}")).FromString(payload)
    except DecodeError as error:
        raise Unmet(
            f"The record at offset {record.offset()} of {record.topic()} isn't the text's {message}. Compare the fields' "
            "numbers and types."
        ) from error


def _hello(ctx: CheckContext) -> Message:
    records = filled(ctx, MESSAGES)
    if len(records) != 1:
        raise Unmet(f"{MESSAGES} holds {len(records)} records. One is enough. To begin afresh, run the cell that sends again.")
    return records[0]


registered = protobuf.requires("The schema is registered for the topic as Protobuf")(has_type(f"{MESSAGES}-value", "PROTOBUF"))


@protobuf.requires("One record without a key says Hello world, and when", after=registered)
def record_says_hello(ctx: CheckContext) -> None:
    record = _hello(ctx)
    if record.key() is not None:
        raise Unmet("The record has a key. The text asks for none.")
    message = _decode(client_of(ctx), record, "SimpleMessage")
    if message.content != "Hello world":
        raise Unmet(f"The content is {message.content!r}.")
    try:
        datetime.fromisoformat(message.date_time)
    except ValueError:
        raise Unmet(f"date_time is {message.date_time!r}, which isn't ISO 8601.") from None


protobuf.requires("The group protobuf-consumer-group has committed it", after=record_says_hello)(
    has_read_everything("protobuf-consumer-group", MESSAGES)
)

generic = lab.add_check(
    "06_generic",
    "Read it without its class",
    hints=(
        "Bytes 1 to 4 of the value are the schema's id. descriptor_of(id) describes the file that the registry holds.",
        "A pool that has the description finds the message type by its full name: the package, a dot, and "
        "message_type[0].name.",
        "message_factory.GetMessageClass(…).FromString(value[6:]) reads it. Its method ListFields gives pairs of "
        "descriptor and value.",
    ),
)


@generic.requires("You saw every field under its name in the schema")
def fields_were_seen(ctx: CheckContext) -> None:
    message = _decode(client_of(ctx), _hello(ctx), "SimpleMessage")
    seen = ctx.answer("seen", dict[str, str], "the fields that your generic consumer saw: name → value")
    if seen != {"content": message.content, "date_time": message.date_time}:
        raise Unmet(f"Your consumer saw {seen}. Do the names come from the registry's schema, and the values from the record?")


generic.requires("The group generic-protobuf-consumer-group has committed an offset of its own", after=fields_were_seen)(
    has_read_everything("generic-protobuf-consumer-group", MESSAGES)
)

order = lab.add_check(
    "06_order",
    "Send an order with products",
    hints=(
        "A field that can occur any number of times is `repeated`.",
        'The order\'s file has the line import "product.proto"; and the serializer registers the imported file first.',
        'ProtobufDeserializer(Order, {"use.deprecated.format": False}) reads an order. len(order.product) counts its products.',
    ),
)


@order.requires("orders holds orders with none, one and several products")
def orders_have_products(ctx: CheckContext) -> None:
    client, counts = client_of(ctx), []
    for record in filled(ctx, ORDERS):
        found = _decode(client, record, "Order")
        counts.append(len(found.product))
        if any(not product.name for product in found.product):
            raise Unmet(f"A product of the order at offset {record.offset()} has no name.")
    if not {0, 1} <= set(counts) or max(counts) < 2:
        raise Unmet(f"The {counted(len(counts), 'order')} have {', '.join(map(str, counts))} products.")


@order.requires("The order's schema refers to the product's, which is a schema of its own")
def order_refers_to_product(ctx: CheckContext) -> None:
    latest = subject_versions(ctx, f"{ORDERS}-value")[-1]
    referred = [reference.subject for reference in latest.schema.references or []]
    if not referred:
        raise Unmet("The order's schema refers to no other schema. In which file is Product, and who imports it?")
    for subject in referred:
        subject_versions(ctx, subject or "")


order.requires("The group orders has read and committed them", after=orders_have_products)(
    has_read_everything("orders", ORDERS)
)


@order.requires("You know how many products each order has", after=orders_have_products)
def orders_were_read(ctx: CheckContext) -> None:
    given = ctx.answer("products", list[int], "how many products each order has, as you read them, in order of offset")
    client = client_of(ctx)
    there = [len(_decode(client, record, "Order").product) for record in filled(ctx, ORDERS)]
    if given != there:
        raise Unmet(f"You read orders with {given} products. {ORDERS} holds {counted(len(there), 'order')} that don't fit.")
