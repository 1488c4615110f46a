"""Trucks' positions in two topics, sent with QoS 0 and QoS 1, after everything on their way has failed once."""

from __future__ import annotations

import json
from collections import Counter

from kafkalab.checks.connectors import RUN_AGAIN, SENT, config_of, runs
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.topics import filled
from kafkalab.checks.wording import counted

__all__ = ["lab"]

TOPICS = {"trucks": "truck_position", "trucks-qos0": "truck_position_qos0"}
SAFE, FAST = TOPICS
QOS = {SAFE: "1", FAST: "0"}

lab = Lab("09_mqtt")

mqtt = lab.add_check(
    "09_mqtt",
    "Bring trucks' positions from MQTT into Kafka",
    hints=(
        "In an MQTT topic to read, + stands for one level, whatever its name. Which level differs from truck to truck?",
        "Under its client id the MQTT broker knows a connector again. So each connector needs one of its own.",
        "StringConverter writes what Java prints. What does Java print of an array of bytes? Look for a converter that has "
        "bytes in its name.",
        "To count: `len(judge(sent=sent, log=values(topic))[…])`.",
    ),
)


@mqtt.requires("trucks reads with QoS 1 and trucks-qos0 with QoS 0, each under a client id of its own")
def connectors_run(ctx: CheckContext) -> None:
    for name, qos in QOS.items():
        runs(ctx, name)
        found = config_of(ctx, name).get("mqtt.qos", "1")
        if found != qos:
            raise Unmet(f"{name} reads with QoS {found}, not {qos}. Which of its settings says so?")
    if config_of(ctx, SAFE).get("mqtt.client.id") == config_of(ctx, FAST).get("mqtt.client.id"):
        raise Unmet(
            f"{SAFE} and {FAST} have the same client id, so the MQTT broker disconnects one when the other comes. How does it "
            "tell clients apart?"
        )


def is_position(value: str) -> bool:
    """Return whether a value is a position that a truck sent."""
    try:
        position = json.loads(value)
    except ValueError:
        return False
    return isinstance(position, dict) and {"truck", "number"} <= position.keys()


@mqtt.requires("Both topics hold positions alone, as the trucks sent them", after=connectors_run)
def positions_alone(ctx: CheckContext) -> None:
    for topic in TOPICS.values():
        for record in filled(ctx, topic, SENT):
            value = text_of(record)
            if value == "21":
                raise Unmet(f"{topic} has a temperature, too. Which of the MQTT topics does its connector ask for? {RUN_AGAIN}")
            if not is_position(value):
                raise Unmet(
                    f"A value in {topic} begins with {value[:12]!r}. A truck sent JSON with its position. Which converter "
                    f"leaves bytes as they are? {RUN_AGAIN}"
                )


@mqtt.requires("truck_position lacks no position that the MQTT broker acknowledged", after=positions_alone)
def nothing_is_lost(ctx: CheckContext) -> None:
    sent = ctx.answer("sent", list[str], "the positions that the MQTT broker acknowledged")
    if missing := lacking(ctx, TOPICS[SAFE], sent):
        raise Unmet(
            f"{TOPICS[SAFE]} lacks {counted(len(missing), 'position')} of {len(sent)}, the first is {missing[0]}. Did {SAFE} "
            "reach the MQTT broker before the trucks drove, and has it had the time to write them all?"
        )


@mqtt.requires("truck_position_qos0 shows what an outage costs", after=nothing_is_lost)
def qos_0_loses(ctx: CheckContext) -> None:
    sent = ctx.answer("sent", list[str], "the positions that the MQTT broker acknowledged")
    if not lacking(ctx, TOPICS[FAST], sent):
        raise Unmet(f"{TOPICS[FAST]} has all positions. Was there an outage already? Call outage(), and look again.")


@mqtt.requires("You know how many positions are lost, and how many are there twice", after=qos_0_loses)
def counts_are_known(ctx: CheckContext) -> None:
    sent = ctx.answer("sent", list[str], "the positions that the MQTT broker acknowledged")
    lost = ctx.answer("lost", int, f"the number of positions that aren't in {TOPICS[FAST]}")
    twice = ctx.answer("twice", int, f"the number of positions that are in {TOPICS[SAFE]} more than once")
    if lost != len(lacking(ctx, TOPICS[FAST], sent)):
        raise Unmet(f"`lost` is {lost}. Compare `sent` with the values in {TOPICS[FAST]}: which of them aren't there?")
    copies = Counter(ctx.values(TOPICS[SAFE]))
    if twice != sum(count > 1 for count in copies.values()):
        raise Unmet(f"`twice` is {twice}. How many different values does {TOPICS[SAFE]} hold more than once?")


def lacking(ctx: CheckContext, topic: str, sent: list[str]) -> list[str]:
    """Return those of these values that a topic doesn't hold, in order."""
    there = set(ctx.values(topic))
    return [value for value in sent if value not in there]
