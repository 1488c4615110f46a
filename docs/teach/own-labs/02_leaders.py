"""A topic with a leader on each broker."""

from kafkalab.checks import CheckContext, Lab, Unmet
from kafkalab.checks.topics import existing, has_shape

lab = Lab("02_leaders")

check = lab.add_check(
    "02_leaders",
    "Give each broker a partition to lead",
    hints=(
        "How many partitions does it take until each of three brokers leads one?",
        "NewTopic(name, num_partitions=…, replication_factor=…) has both numbers.",
    ),
)

is_shaped = check.requires("orders has 3 partitions with 3 replicas each")(has_shape("orders", 3, 3))


@check.requires("Each broker leads a partition of orders", after=is_shaped)
def each_broker_leads(ctx: CheckContext) -> None:
    """Look who leads now."""
    leading = {partition.leader for partition in existing(ctx, "orders")}
    if idle := sorted(set(ctx.view().brokers) - leading):
        raise Unmet(f"Broker {idle[0]} leads no partition of `orders`. Which broker leads two?")
