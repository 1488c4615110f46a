"""A cluster that moves from PLAIN to SCRAM while producers write."""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka.admin import ConfigResource, ResourceType

from kafkalab.checks.access import CONNECTED, brokers_at, try_connect
from kafkalab.checks.context import CheckContext, Unmet, text_of
from kafkalab.checks.lab import Lab
from kafkalab.checks.ledgers import require_no, verdict_of
from kafkalab.checks.topics import existing
from kafkalab.checks.wording import counted
from kafkalab.workers import LedgerProducer

__all__ = ["lab"]

LISTENER = "SASL_SSL"
TOPIC = "stock-prices"
OLD, NEW = "PLAIN", "SCRAM-SHA-256"

lab = Lab("07_rolling")

check = lab.add_check(
    "07_rolling",
    "Move from PLAIN to SCRAM while everybody works",
    hints=(
        "cluster.restart(broker, settings={…}) starts a broker with settings that it keeps from then on.",
        'Wait after each broker: cluster.wait_for(lambda view: view.in_sync("stock-prices"), "all replicas in sync", 60).',
        "A broker doesn't come back? print(cluster.nodes.logs(broker)[-3000:]) says why. Look for a mechanism without a JAAS "
        "line, and for a user that SCRAM doesn't know.",
    ),
)


@check.requires("Brokers log in to each other by SCRAM-SHA-256")
def brokers_use_scram(ctx: CheckContext) -> None:
    for broker, _ in brokers_at(ctx, LISTENER):
        resource = ConfigResource(ResourceType.BROKER, str(broker))  # one per call, because each broker answers only for itself
        settings = ctx.config(resource)
        if (mechanism := settings["sasl.mechanism.inter.broker.protocol"]) != NEW:
            raise Unmet(f"Broker {broker} logs in to other brokers by {mechanism}.")


def _answers(ctx: CheckContext, mechanism: str) -> Iterator[tuple[int, str]]:
    """Yield what each broker answers to a client that logs in with this mechanism."""
    config = ctx.cluster.client_config("stocks_producer", LISTENER, mechanism)
    for broker, address in brokers_at(ctx, LISTENER):
        yield broker, try_connect({**config, "bootstrap.servers": address})


@check.requires("Clients log in by SCRAM-SHA-256")
def clients_log_in_by_scram(ctx: CheckContext) -> None:
    for broker, result in _answers(ctx, NEW):
        if result != CONNECTED:
            raise Unmet(f"stocks_producer can't log in to broker {broker} by {NEW}: {result}.")


@check.requires("Clients can't log in by PLAIN any more", after=clients_log_in_by_scram)
def clients_cannot_log_in_by_plain(ctx: CheckContext) -> None:
    for broker, result in _answers(ctx, OLD):
        if result == CONNECTED:
            raise Unmet(f"Broker {broker} still accepts {OLD}. Which setting lists the mechanisms of its listeners?")


@check.requires("No message failed, and there is no lost write")
def no_message_is_missing(ctx: CheckContext) -> None:
    writers = ctx.answer("writers", list[LedgerProducer], "the ledger producers, the old one and the new one")
    if len(writers) < 2:
        raise Unmet("There is only one writer. Which one sends by the new mechanism?")
    existing(ctx, TOPIC)
    records = ctx.records(TOPIC)
    for writer in writers:
        if not writer.acknowledged:
            raise Unmet(f"No message of the writer {writer.name} was acknowledged.")
        if writer.failed:
            raise Unmet(f"{counted(writer.failed, 'message')} of the writer {writer.name} failed: {writer.failures}.")
        # Both writers send "message 1", so a writer's own records are those at its places.
        own = {(entry.partition, entry.offset, (entry.key or "").encode()) for entry in writer.entries}
        log = [text_of(m) for m in records if (m.partition(), m.offset(), m.key() or b"") in own]
        verdict = verdict_of(writer, log, TOPIC)
        question = "Were all replicas in sync before each restart?"
        require_no(verdict, "lost write", TOPIC, question, of=f" of the writer {writer.name}")


@check.requires("Every client that tried could log in")
def nobody_was_rejected(ctx: CheckContext) -> None:
    knocks = ctx.answer("knocks", list[tuple[str, bool]], "who tried to log in, and who could: [(mechanism, True or False), …]")
    if rejected := [mechanism for mechanism, connected in knocks if not connected]:
        raise Unmet(
            f"{counted(len(rejected), 'client')} couldn't log in, the first one by {rejected[0]}. Was the other broker back "
            "before you restarted this one?"
        )
    if {mechanism for mechanism, _ in knocks} != {OLD, NEW}:
        raise Unmet("Clients tried one mechanism only. When do they move to the new one?")
