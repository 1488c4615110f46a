"""A node that the learner starts with Kafka's own commands."""

from __future__ import annotations

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.lab import Lab
from kafkalab.distribution import java_command, java_version

__all__ = ["lab"]

OLDEST_JAVA = 17
NODE = 7

lab = Lab("00_environment")

check = lab.add_check(
    "00_environment",
    "Start a Kafka node by hand",
    hints=(
        "The order of the steps matters: a node whose folder isn't formatted doesn't start. Its log says so: "
        "print((folder / 'broker.log').read_text()).",
        "A node with both roles has process.roles=broker,controller and a listener for each role: PLAINTEXT for clients, "
        "CONTROLLER for controllers. Write each one as NAME://127.0.0.1:port and separate them with a comma.",
        "kafka-storage.sh random-uuid prints an id. kafka-storage.sh format takes --standalone (the first and only "
        "controller), --cluster-id and --config.",
        'subprocess.Popen(["kafka-server-start.sh", str(properties)], env=…, stdout=…, stderr=subprocess.STDOUT) runs '
        "the node beside the notebook.",
    ),
)


@check.requires("Kafka runs on Java 17 or newer, and you know on which")
def java_is_known(ctx: CheckContext) -> None:
    given = str(ctx.answer("java", object, "the major version of the Java that runs Kafka"))  # a number, or it as text
    actual = java_version(java_command())
    if given.strip().removesuffix(".0") != str(actual):  # 21.0 as a number
        raise Unmet(f"It isn't {given}. Look at the number before the first dot in what `java -version` prints.")
    if actual < OLDEST_JAVA:
        raise Unmet(f"Java {given} is too old for Kafka 4. `kafkalab doctor` tells you how to fix that.")


@check.requires("One node answers, started by your own command")
def one_node_answers(ctx: CheckContext) -> None:
    if not ctx.cluster.running:
        raise Unmet(
            "No broker answered. Is the folder formatted, is the process running, and what does the end of its log say?"
        )
    brokers = ctx.view().brokers
    if len(brokers) != 1:
        raise Unmet(f"This is a cluster of {len(brokers)} brokers. The lab asks for one node, started by your own command.")


@check.requires("It is node 7, and both broker and controller", after=one_node_answers)
def node_is_both(ctx: CheckContext) -> None:
    view = ctx.view()
    [node] = view.brokers
    if node != NODE:
        raise Unmet(f"The node's id is {node}. Which setting gives a node its id?")
    if view.controller != node:
        raise Unmet("It's a broker, but no controller answers. Which setting names a node's roles?")


@check.requires("Its cluster has the id with which you formatted its folder", after=one_node_answers)
def cluster_id_is_known(ctx: CheckContext) -> None:
    given = ctx.answer("cluster_id", str, "the id with which you formatted the folder (`!command` returns a list of lines)")
    if given.strip() != ctx.view().cluster_id:
        raise Unmet("The node belongs to a cluster with another id. Which id did you format its data folder with?")
