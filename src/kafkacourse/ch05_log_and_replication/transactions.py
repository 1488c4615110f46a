"""Payments that are booked in transactions: one commits, one aborts, a zombie is fenced, and a hanging one is aborted."""

from __future__ import annotations

from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import existing_group
from kafkalab.checks.lab import Lab
from kafkalab.checks.timing import CLOCK
from kafkalab.checks.topics import existing
from kafkalab.checks.transactions import Transaction, log_of, text, transaction_with, transactions
from kafkalab.cluster.offsets import watermarks

__all__ = ["lab"]

BOOKS = ("debits", "credits")
FEES, LATE, STUCK = "fees", "late-fees", "stuck-fees"
GROUP, PAYMENTS = "bank", "payments"
COMMITTED, ABORTED = "100", "500"
OFFSETS, STATES = "__consumer_offsets", "__transaction_state"
PREPARED = (2, 3)  # to commit, to abort: TransactionState.java
TIMEOUT = 1.0  # seconds
SOON = 30.0  # half of the default: a coordinator on a busy machine is late
AGAIN = "Correct `book`, and run the cell that books again: it begins with new topics."
AGAIN_ZOMBIE = "Run the cells again from the one that writes fee 1 on: it begins with a new topic."
FENCED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")

lab = Lab("05_transactions")

# -- commit and abort -------------------------------------------------------------------------------------------------

booking = lab.add_check(
    "05_transactions",
    "Book two payments, or neither half of one",
    hints=(
        "begin_transaction() comes first, then produce() for both topics, then the offset, then commit or abort.",
        "send_offsets_to_transaction(positions, group) takes a list of TopicPartition and consumer.consumer_group_metadata().",
        "The offset to commit is that of the next record to read. payment.topic(), payment.partition() and payment.offset() "
        "say where this one was.",
    ),
)


def both_halves(ctx: CheckContext, amount: str) -> tuple[Transaction, Transaction]:
    """Return the debit and the credit of an amount. Raise `Unmet` unless one producer wrote both."""
    debit, credit = (transaction_with(ctx, topic, amount) for topic in BOOKS)
    if debit.producer_id != credit.producer_id:
        raise Unmet(
            f"The debit and the credit of {amount} have different producer ids, so no transaction spans both. How many "
            f"producers did you make? {AGAIN}"
        )
    return debit, credit


def _require_people(ctx: CheckContext, amount: str, debit: Transaction, credit: Transaction) -> None:
    """Raise `Unmet` unless the debit has the payer as its key, and the credit the payee."""
    payments = [value.split() for value in ctx.values(PAYMENTS)]
    for topic, half, place in (("debits", debit, 0), ("credits", credit, 1)):
        wanted = {payment[place] for payment in payments if payment[2:] == [amount]}
        keys = [text(record.key) for record in half.records if text(record.value) == amount]
        if wanted and not wanted.intersection(keys):
            key = f"the key {keys[0]!r}" if keys[0] else "no key"
            raise Unmet(f"In {topic}, {amount} has {key}. Whose account does that topic tell of? {AGAIN}")


def _coordinator_log(ctx: CheckContext, *halves: Transaction) -> list[bytes] | None:
    """Return what the coordinator noted of a producer during a transaction, or None if it has no note of it any more.

    The layout is that of TransactionLogValue.json: a version (2 bytes), the producer's id (8) and epoch (2), the timeout in
    milliseconds (4), the state (1), and what differs between versions.
    """
    partitions = (p.partition for p in ctx.cluster.describe(groups=False, internal=True).topics.get(STATES, ()))
    records = [r for p in partitions for batch in log_of(ctx, STATES, p) for r in batch.records or ()]
    own = [r for r in records if r.value and r.value[2:10] == halves[0].producer_id.to_bytes(8, "big")]
    begin = max(half.records[0].timestamp for half in halves) - CLOCK * 1000
    end = min(half.records[0].timestamp + half.seconds * 1000 for half in halves) + CLOCK * 1000
    return [r.value or b"" for r in own if begin <= r.timestamp <= end] if own else None


def _spans_both(ctx: CheckContext, debit: Transaction, credit: Transaction) -> bool:
    """Return whether the coordinator ended one transaction with partitions of both topics. It prepares that in its log."""
    notes = _coordinator_log(ctx, debit, credit)
    return notes is None or any(note[16] in PREPARED and all(topic.encode() in note for topic in BOOKS) for note in notes)


def ended(ctx: CheckContext, amount: str, wanted: str) -> None:
    """Raise `Unmet` unless both halves of an amount are right, in one transaction, and ended in this way."""
    debit, credit = both_halves(ctx, amount)
    _require_people(ctx, amount, debit, credit)
    if debit.end and credit.end and not _spans_both(ctx, debit, credit):
        raise Unmet(
            f"The debit and the credit of {amount} are in different transactions, so one of them may count without the other. "
            f"When does a transaction begin, and when does it end? {AGAIN}"
        )
    for topic, half in zip(BOOKS, (debit, credit), strict=True):
        if not half.end:
            raise Unmet(
                f"The transaction with {amount} in {topic} is still open: no marker follows it. Which call ends one? {AGAIN}"
            )
        if half.end != wanted:
            raise Unmet(f"In {topic}, the marker after {amount} says {half.end}. What does the text ask for? {AGAIN}")


@booking.requires("The payment of 100 is committed in both topics")
def first_is_committed(ctx: CheckContext) -> None:
    ended(ctx, COMMITTED, "commit")


@booking.requires("The payment of 500 was written to both topics, and aborted")
def second_is_aborted(ctx: CheckContext) -> None:
    ended(ctx, ABORTED, "abort")


@booking.requires("The offset of the first payment was committed in the same transaction", after=first_is_committed)
def offset_is_committed(ctx: CheckContext) -> None:
    debit, _ = both_halves(ctx, COMMITTED)
    lag = existing_group(ctx, GROUP).lag.get((PAYMENTS, 0))
    if lag is None:
        raise Unmet(
            f"The group {GROUP} has committed no offset of {PAYMENTS}. The transaction should have done that, too. {AGAIN}"
        )
    offset = ctx.end_offsets(PAYMENTS)[0] - lag
    if offset != 1:
        raise Unmet(
            f"The group {GROUP} has committed offset {offset} of {PAYMENTS}. Which payment is the first that isn't booked yet? "
            f"{AGAIN}"
        )
    partitions = (p.partition for p in ctx.cluster.describe(groups=False, internal=True).topics[OFFSETS])
    ended_so = (debit.producer_id, debit.marker_epoch)
    markers = (batch for p in partitions for batch in log_of(ctx, OFFSETS, p) if batch.control)
    if ended_so not in ((batch.producer_id, batch.producer_epoch) for batch in markers):
        raise Unmet(
            "The offset is committed, but not by the producer's transaction: a crash between the two would book the payment "
            "twice. Which call of the *producer* takes offsets? " + AGAIN
        )


# -- what a reader gets -----------------------------------------------------------------------------------------------

isolation = lab.add_check(
    "05_isolation",
    "Count what each isolation level shows",
    hints=(
        "read() takes settings of a consumer, with underscores for dots: isolation_level=….",
        "The two levels are read_committed and read_uncommitted. len() counts what read() returns.",
    ),
)


@isolation.requires("Both payments were booked: one committed, one aborted")
def both_are_booked(ctx: CheckContext) -> None:
    ended(ctx, COMMITTED, "commit")
    ended(ctx, ABORTED, "abort")


@isolation.requires("You counted what each isolation level shows, as the logs have it", after=both_are_booked)
def counts_are_right(ctx: CheckContext) -> None:
    levels = ("read_committed", "read_uncommitted")
    counts = ctx.answer("counts", dict[str, dict[str, int]], "{isolation level: {topic: records}}", keys=levels)
    for level in levels:
        for topic in BOOKS:
            wanted = sum(len(t.records) for t in transactions(ctx, topic) if t.end == "commit" or level == "read_uncommitted")
            if (count := counts[level].get(topic)) != wanted:
                raise Unmet(
                    f"`counts` says that {level} shows {count} records of {topic}. That isn't what its log says. Did the "
                    "consumer have that isolation.level, and does a marker count as a record?"
                )


# -- a zombie ---------------------------------------------------------------------------------------------------------

zombie = lab.add_check(
    "05_zombie",
    "Fence a zombie",
    hints=(
        "A successor has the same transactional.id. init_transactions() tells the coordinator.",
        "commit_transaction() of the old instance raises KafkaException; error.args[0].name() is its name.",
    ),
)


@zombie.requires("The successor's fee is committed")
def successor_commits(ctx: CheckContext) -> None:
    if not (end := transaction_with(ctx, FEES, "2").end):
        raise Unmet("The transaction with fee 2 is still open. The successor should commit it.")
    if end != "commit":
        raise Unmet(f"The transaction with fee 2 was aborted. The successor should commit it. {AGAIN_ZOMBIE}")


@zombie.requires("The zombie's fee is aborted, by its successor's start", after=successor_commits)
def zombie_is_fenced(ctx: CheckContext) -> None:
    old, new = (transaction_with(ctx, FEES, fee) for fee in ("1", "2"))
    if new.producer_id != old.producer_id:
        raise Unmet(
            f"Fee 1 is from producer id {old.producer_id}, and fee 2 from {new.producer_id}: the coordinator takes them for "
            f"different applications. What tells it that one replaces the other? {AGAIN_ZOMBIE}"
        )
    if not old.end:
        raise Unmet("The transaction with fee 1 is still open. What does the successor have to call first?")
    if old.end == "commit":
        raise Unmet(
            f"Fee 1 is committed: its producer came first. It should try only when its successor has started. {AGAIN_ZOMBIE}"
        )
    if old.epoch >= new.epoch:
        raise Unmet(f"The same instance wrote both fees: they have the same producer epoch. Start a second one. {AGAIN_ZOMBIE}")


@zombie.requires("You know the error that the zombie gets", after=zombie_is_fenced)
def error_is_known(ctx: CheckContext) -> None:
    error = ctx.error_name("fenced", "the name of the error that the zombie's commit raised")
    if error.upper() not in FENCED:
        raise Unmet(f"{error!r} isn't the name of the error. What did error.args[0].name() say?")


# -- a transaction that takes too long --------------------------------------------------------------------------------

timeout = lab.add_check(
    "05_timeout",
    "Let the coordinator end a transaction",
    hints=(
        "instance() takes settings of a producer, with underscores for dots: transaction_timeout_ms=…, in milliseconds.",
        "begin_transaction(), produce() and flush() are all. Nobody commits, and nobody aborts.",
    ),
)


@timeout.requires("Fee 3 is aborted, and not by its producer")
def coordinator_aborts(ctx: CheckContext) -> None:
    slow = transaction_with(ctx, LATE, "3")
    if not slow.end:
        raise Unmet("The transaction with fee 3 is still open. How long did its producer say that it may take?")
    if slow.end == "commit":
        raise Unmet("Fee 3 is committed. Its producer should begin the transaction and never end it.")
    if slow.marker_epoch == slow.epoch:
        raise Unmet("Its producer aborted the transaction with fee 3: the marker has the same epoch. Leave it open.")


@timeout.requires("It was open for a second, not for a minute", after=coordinator_aborts)
def second_is_over(ctx: CheckContext) -> None:
    slow = transaction_with(ctx, LATE, "3")
    took = slow.seconds
    if took < TIMEOUT:
        raise Unmet(
            f"The transaction with fee 3 was aborted after {took:.1f} s, before its time was over. Did a successor start, or "
            "did you give it less than a second?"
        )
    if took > SOON:
        raise Unmet(f"The transaction with fee 3 was open for {took:.0f} s. Which transaction.timeout.ms had its producer?")
    # The last note is of this transaction. Those before it may be of an attempt that a new instance ended.
    notes = _coordinator_log(ctx, slow)
    if notes and (limit := int.from_bytes(notes[-1][12:16], "big")) != TIMEOUT * 1000:
        raise Unmet(f"Its producer told the coordinator that a transaction may take {limit} ms. How many make a second?")


# -- a hanging transaction --------------------------------------------------------------------------------------------

hanging = lab.add_check(
    "05_hanging",
    "Find a hanging transaction, and abort it",
    hints=(
        "kafka-transactions.sh --bootstrap-server … find-hanging --broker-id 0 --max-transaction-timeout 0",
        "kafka-transactions.sh … abort wants the topic, the partition and the start offset. find-hanging prints all three.",
    ),
)


@hanging.requires("The transaction with fee 4 is aborted, and its record is still in the log")
def hanging_is_aborted(ctx: CheckContext) -> None:
    existing(ctx, STUCK)
    if start := watermarks(ctx.cluster, STUCK)[0][0]:
        raise Unmet(
            f"The log of {STUCK} begins at offset {start} now: you deleted records. Abort the transaction instead. Run the "
            f"cells again, from the one that calls fresh({STUCK!r}) on."
        )
    if not transaction_with(ctx, STUCK, "4").end:
        raise Unmet("The transaction with fee 4 is still open. Its producer and its coordinator are gone. Who else can end it?")


@hanging.requires(f"A read_committed consumer gets to the end of {STUCK}", after=hanging_is_aborted)
def nobody_waits(ctx: CheckContext) -> None:
    if unfinished := [t for t in transactions(ctx, STUCK) if not t.end]:
        fees = ", ".join(text(record.value) for record in unfinished[0].records)
        raise Unmet(f"The transaction with fee {fees} is open, and a read_committed consumer stops there. Who should end it?")
