"""A lab's cells can be run again from section 1 on: the first of them empties the topics, with `begin_anew`."""

from __future__ import annotations

import pytest

from kafkalab import Cluster
from kafkalab.checks.context import CheckContext
from kafkalab.checks.topics import existing
from kafkalab.spark import begin_anew
from support import create, put


@pytest.mark.cluster
def test_topics_that_an_attempt_filled_are_empty_again(clean: Cluster) -> None:
    create(clean, "full", 2)
    create(clean, "bare", 1, 1)
    put(clean, "full", [(None, "left over", 1)])
    begin_anew(clean, "full", "bare", "never created")
    ctx = CheckContext(clean)
    assert (ctx.record_count("full"), ctx.record_count("bare")) == (0, 0)
    assert [len(existing(ctx, topic)) for topic in ("full", "bare")] == [2, 1]
    assert {len(partition.replicas) for partition in existing(ctx, "full")} == {3}
    put(clean, "full", [(None, "again", 1)])
    assert ctx.values("full") == ["again"]
