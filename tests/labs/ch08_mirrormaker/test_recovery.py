"""A lost cluster, and the way back: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import pytest

from kafkalab import LedgerProducer
from mirror_support import Named, add, fill
from support import Verdict, commit, create, delete, put

pytestmark = pytest.mark.cluster

READERS, DISASTER, FAIL_BACK = "08_readers", "08_disaster", "08_fail_back"
MESSAGES = [f"message {n}" for n in range(1, 13)]


def test_readers(named: Named, verdict: Verdict) -> None:
    [backup] = named("backup")
    passed, printed = verdict(READERS, backup, before=MESSAGES, read=MESSAGES)
    assert not passed
    assert "In backup: There is no topic 'main.orders' yet" in printed
    assert printed.count("Not looked at yet") == 2
    fill(backup, "main.orders", MESSAGES[:9])
    right = {"before": MESSAGES[:7], "read": MESSAGES[5:9], "kept": [3, 2, 2], "began": [2, 2, 1]}
    verdict.says("In backup: There is no consumer group 'billing' yet", READERS, backup, **right)
    commit(backup, "billing", "main.orders")
    verdict.passes(READERS, backup, **right)
    for sentence, wrong in {
        "`read` is empty": {"read": []},
        "billing read 'message 9' in neither cluster": {"read": MESSAGES[5:8]},
        "billing read all 9 orders again": {"read": MESSAGES[:9]},
        "`began` is still None": {"began": None},
        "main.orders has 3 partitions. `kept` and `began` hold one offset for each": {"began": [5]},
        "After the offsets [3, 3, 3] there are 0 orders to read, and billing read 4": {"began": [3, 3, 3]},
        "In partition 2 billing had committed 2 in the main cluster and began at 3": {"began": [1, 1, 3]},
    }.items():
        verdict.says(sentence, READERS, backup, **{**right, **wrong})
    commit(backup, "billing", "main.orders", {2: 1})
    verdict.says("In backup: billing has committed offset 1 in partition 2 of main.orders", READERS, backup, **right)


def test_disaster(named: Named, verdict: Verdict) -> None:
    [backup] = named("backup")
    create(backup, "orders", 1, copies=1)
    ledger = LedgerProducer(backup, "orders", rate=1000, count=len(MESSAGES))
    ledger.wait_finished()
    assert {entry.value for entry in ledger.entries} == set(MESSAGES)
    fill(backup, "main.orders", MESSAGES[:9])
    right = {
        "ledger": ledger,
        "before": MESSAGES[:7],
        "read": MESSAGES[5:9],
        "lost": {*MESSAGES[9:]},
        "twice": {*MESSAGES[5:7]},
    }
    verdict.passes(DISASTER, backup, **right)
    verdict.passes(DISASTER, backup, **{**right, "lost": MESSAGES[9:], "twice": MESSAGES[5:7]})
    for sentence, wrong in {
        "`ledger` is still None": {"ledger": None},
        "You count 0 orders as lost; 3 more": {"lost": set()},
        "You count 'message 8' and 1 more as lost": {"lost": {*MESSAGES[7:]}},  # what billing had not read
        "`lost` is still None": {"lost": None},
        "You count 0 orders as read twice; `before` and `read` show 2 more": {"twice": set()},
        "You count 'message 1' and 6 more as read twice": {"twice": {*MESSAGES[:9]}},
        "`read` is empty": {"read": []},
    }.items():
        verdict.says(sentence, DISASTER, backup, **{**right, **wrong})
    # Nothing lost, nothing twice: that is an answer as well.
    put(backup, "main.orders", [("key", value, 0) for value in MESSAGES[9:]])
    verdict.passes(DISASTER, backup, **{**right, "lost": set(), "read": MESSAGES[7:], "twice": set()})


def test_fail_back(named: Named, verdict: Verdict) -> None:
    main, backup = named("main", "backup")
    new = [f"new {n}" for n in range(6)]
    read = {"main": [*MESSAGES, *MESSAGES[3:]], "backup": new}

    def says(sentence: str, **wrong: object) -> None:
        verdict.says(sentence, FAIL_BACK, main, **{"backup": backup, "read": read, **wrong})

    fill(main, "orders", MESSAGES)
    fill(backup, "orders", [])
    passed, printed = verdict(FAIL_BACK, main, backup=backup, read=read)
    assert not passed
    assert "In backup: There is no topic 'main.orders' yet" in printed
    assert printed.count("Not looked at yet") == 3
    fill(backup, "main.orders", MESSAGES[:10])
    says("In backup: main.orders lacks 'message 11' and 1 more. Which flow copies it")
    add(backup, "main.orders", MESSAGES[10:])
    says("In backup: The topic orders is empty")
    add(backup, "orders", new)
    says("In main: There is no topic 'backup.orders' yet")
    fill(main, "backup.orders", new)
    commit(main, "billing", "orders")
    says("In main: billing has committed nothing in partition 0 of backup.orders")
    commit(main, "billing", "backup.orders")
    verdict.passes(FAIL_BACK, main, backup=backup, read=read)
    says("billing has never read 'message 10' and 2 more of the orders of main", read={**read, "main": MESSAGES[:9]})
    says("billing has never read 'new 0' and 5 more of the orders of backup", read={"main": MESSAGES})
    verdict.says("Give check() your answer as backup=", FAIL_BACK, main, read=read)
    create(main, "backup.main.orders", 3, copies=1)
    says("In main: 'backup.main.orders' is a copy of a copy")
    delete(main, "backup.main.orders")
