"""Chapter 00: a node started by hand, and the first record."""

from __future__ import annotations

from kafkalab.checks.lab import Lab, Requirement, Unmet
from kafkalab.checks.sight import Sight
from kafkalab.distribution import java_command, java_version

__all__ = ["LABS"]

_OLDEST_JAVA = 17
_NODE = 7
_TOPIC = "greetings"
_VALUE = b"My first record"


# -- 00_environment -------------------------------------------------------------------------------------------------


def _java_is_known(sight: Sight) -> None:
    given = sight.answers.get("java")
    if given is None:
        raise Unmet("Give check() the major version of the Java that runs Kafka, as java=…")
    if str(given) != str(java_version(java_command())):
        raise Unmet(f"It is not {given}. In what `java -version` prints, the number before the first dot counts.")
    if int(str(given)) < _OLDEST_JAVA:
        raise Unmet(f"Java {given} is too old for Kafka 4. `kafkalab doctor` says how to mend that.")


def _one_node_answers(sight: Sight) -> None:
    if not sight.cluster.running:
        raise Unmet("Nobody was reached. Is the folder formatted, does the process run, and did node.start() return?")
    brokers = sight.view().brokers
    if len(brokers) != 1:
        raise Unmet(
            f"Here answers a cluster of {len(brokers)} brokers. This lab is about one node, started by your own "
            "command."
        )


def _node_is_both(sight: Sight) -> None:
    _one_node_answers(sight)
    view = sight.view()
    [node] = view.brokers
    if node != _NODE:
        raise Unmet(f"The node calls itself {node}. Which setting gives a node its number?")
    if view.controller != node:
        raise Unmet("It is a broker, but no controller answers. Which setting names a node's roles?")


def _cluster_id_is_known(sight: Sight) -> None:
    _one_node_answers(sight)
    given = sight.answers.get("cluster_id")
    if given is None:
        raise Unmet("Give check() the id with which you formatted, as cluster_id=…")
    if not isinstance(given, str):
        raise Unmet(f"cluster_id is of type {type(given).__name__}, not a text. (What `!command` returns is a list of lines.)")
    if given.strip() != sight.view().cluster_id:
        raise Unmet("The node belongs to a cluster with another id. With which id was its data folder formatted?")


# -- 00_first_record ------------------------------------------------------------------------------------------------


def _record_is_there(sight: Sight) -> None:
    if _VALUE not in [m.value() for m in sight.records(_TOPIC)]:
        raise Unmet(
            f"No record in {_TOPIC} has exactly the value {_VALUE.decode()!r}. produce() only puts it into the producer's "
            "own queue: did you wait until it was sent?"
        )


def _coordinates(sight: Sight) -> tuple[str, int, int]:
    given = sight.answers.get("coordinates")
    if given is None:
        raise Unmet("Give check() the record's address, as coordinates=(…). Three things make it up.")
    match given:
        case (str(topic), int(partition), int(offset)):
            return topic, partition, offset
    raise Unmet(f"An address has three parts in this order: the topic's name, and two numbers. Yours is {given!r}.")


def _coordinates_are_right(sight: Sight) -> None:
    _record_is_there(sight)
    topic, partition, offset = _coordinates(sight)
    if topic != _TOPIC:
        raise Unmet(f"The record was to be written to {_TOPIC}, not to {topic}.")
    ends = sight.end_offsets(topic)
    if partition not in ends:
        raise Unmet(f"{topic} has no partition {partition}; they are numbered from 0 to {len(ends) - 1}.")
    if offset == ends[partition]:
        raise Unmet(f"Nothing stands at offset {offset} yet: it is the next one to be written in partition {partition}.")
    there = {(m.partition(), m.offset()): m.value() for m in sight.records(topic)}.get((partition, offset))
    if there is None:
        raise Unmet(f"Partition {partition} has no offset {offset}.")
    if there != _VALUE:
        raise Unmet(f"At this address stands {there.decode()!r}. Who knows where yours is? The delivery report does.")


def _bytes_were_read(sight: Sight) -> None:
    given = sight.answers.get("read_back")
    if given is None:
        raise Unmet("Give check() what you read at that address, as read_back=…: the value as the consumer returned it.")
    if isinstance(given, str):
        raise Unmet("This is text. What does a record's value() return?")
    if given != _VALUE:
        raise Unmet(
            f"What was read is {given!r}. A consumer that is assigned a partition begins where its TopicPartition "
            "says."
        )


LABS = (
    Lab(
        "00_environment",
        "Start a Kafka node by hand",
        (
            Requirement("Kafka runs on Java 17 or newer, and you know on which", _java_is_known),
            Requirement("One node answers, started by your own command", _one_node_answers),
            Requirement("It is node 7, and both broker and controller", _node_is_both),
            Requirement("Its cluster has the id with which you formatted its folder", _cluster_id_is_known),
        ),
        (
            "The steps cannot change places: a node that finds its folder unformatted does not start. What it says then "
            "stands in broker.log: print((folder / 'broker.log').read_text()).",
            "A node with both roles has process.roles=broker,controller, and a listener for each: PLAINTEXT for clients, "
            "CONTROLLER for controllers, each as NAME://127.0.0.1:port, separated by a comma.",
            "kafka-storage.sh random-uuid prints an id; kafka-storage.sh format wants --standalone (the first and only "
            "controller), --cluster-id and --config.",
            'subprocess.Popen(["kafka-server-start.sh", str(properties)], env=…, stdout=…, stderr=subprocess.STDOUT) runs '
            "it beside the notebook; describe_cluster(request_timeout=60).result() waits until it answers.",
        ),
    ),
    Lab(
        "00_first_record",
        "Find your first record",
        (
            Requirement("greetings holds a record with the value 'My first record'", _record_is_there),
            Requirement("You can say where it stands", _coordinates_are_right),
            Requirement("You read its bytes from there", _bytes_were_read),
        ),
        (
            "The producer does not wait for the broker unless it is told to, and it tells what became of a record through "
            "a function that you give it.",
            "produce(…, on_delivery=function) calls function(error, record) during flush(); record has topic(), "
            "partition() and offset().",
            "consumer.assign([TopicPartition(topic, partition, offset)]) begins at that very record; poll(30) returns it.",
        ),
    ),
)
