"""Round by round a random broker is killed, stopped, paused or restarted under load; nothing acknowledged is lost.

Ten rounds; a hundred with ``KAFKALAB_ROUNDS=100``, as ``make test-all`` has it.
"""

from __future__ import annotations

import json
import os
import random
from functools import partial

import pytest

from kafkalab import Cluster, LedgerProducer, wait_until
from kafkalab.checks import CheckContext
from support import BACKEND, PATIENCE, create

ROUNDS = int(os.environ.get("KAFKALAB_ROUNDS", "10"))
TOPIC = "soak"


@pytest.mark.cluster
@pytest.mark.timeout(1500)
def test_faults_under_load_lose_nothing() -> None:
    chance = random.Random(20)
    with Cluster(3, backend=BACKEND, settings={"min.insync.replicas": 2}) as cluster:
        create(cluster, TOPIC, 6)
        # With more than one request in flight librdkafka may double in spite of idempotence: its issue 4953.
        producer = LedgerProducer(cluster, TOPIC, rate=40, acks="all", enable_idempotence=True, max_in_flight=1)
        for number in range(ROUNDS):
            before = producer.acknowledged
            broker, verb = chance.randrange(3), chance.choice(["kill", "stop_broker", "pause", "restart"])
            getattr(cluster, verb)(broker)
            what = f"round {number}: {verb} of broker {broker}"
            if chance.random() < 0.5 and verb != "restart":  # half of the faults are mended before anybody noticed
                cluster.wait_for(lambda v, b=broker: v.moved_from(TOPIC, b), f"{what}, leaders elsewhere", PATIENCE)
            resume = partial(cluster.resume, timeout=PATIENCE)
            mend = {"kill": cluster.restart, "stop_broker": cluster.restart, "pause": resume}.get(verb)
            if mend is not None:
                mend(broker)
            cluster.wait_for(lambda v: v.in_sync(TOPIC), f"{what}, all in sync again", PATIENCE)
            wait_until(
                lambda b=before: producer.acknowledged > b,
                PATIENCE,
                f"{what}, new acknowledgements",
                last_seen=lambda: producer.lines[-3:],
            )
        producer.stop()
        acknowledged = {json.loads(line)["value"] for line in producer.ledger.read_text().splitlines()}
        found = CheckContext(cluster).values(TOPIC)
        assert len(acknowledged) >= ROUNDS
        assert acknowledged - set(found) == set()
        assert len(found) == len(set(found))  # idempotence: nothing twice, either
