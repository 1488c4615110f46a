"""Two cities that mirror each other, and a loop: each wrong answer gets its sentence, and the right one passes."""

from __future__ import annotations

import pytest

from mirror_support import Named, add, fill
from support import Verdict, commit, create, delete, put

pytestmark = pytest.mark.cluster

BOTH_WAYS, LOOP = "08_both_ways", "08_loop"
ORDERS = {city: [f"{city} order {n}" for n in range(6)] for city in ("berlin", "tokyo")}


def test_both_ways(named: Named, verdict: Verdict) -> None:
    berlin, tokyo = named("berlin", "tokyo")
    cities = {"berlin": berlin, "tokyo": tokyo}
    read = {name: [*ORDERS["berlin"], *ORDERS["tokyo"]] for name in cities}

    def says(sentence: str, **wrong: object) -> None:
        verdict.says(sentence, BOTH_WAYS, berlin, **{"tokyo": tokyo, "read": read, **wrong})

    fill(berlin, "orders", ORDERS["berlin"])
    fill(tokyo, "orders", [])
    says("In tokyo: The topic orders is empty")
    add(tokyo, "orders", ORDERS["tokyo"])
    passed, printed = verdict(BOTH_WAYS, berlin, tokyo=tokyo, read=read)
    assert not passed
    assert "In berlin: There is no topic 'tokyo.orders' yet" in printed
    assert printed.count("Not looked at yet") == 2
    fill(berlin, "tokyo.orders", ORDERS["tokyo"])
    fill(tokyo, "berlin.orders", ORDERS["berlin"][:5])
    says("In tokyo: berlin.orders lacks 'berlin order 5'.")
    put(tokyo, "berlin.orders", [("key 2", ORDERS["berlin"][5], 2)])
    for name, topics in (("berlin", ("orders", "tokyo.orders")), ("tokyo", ("orders", "berlin.orders"))):
        says(f"In {name}: There is no consumer group 'all-orders' yet")
        for topic in topics:
            commit(cities[name], "all-orders", topic)
    verdict.passes(BOTH_WAYS, berlin, tokyo=tokyo, read=read)
    says("`read` is empty", read={})
    says("In berlin: all-orders didn't read 'tokyo order 0' and 5 more", read={**read, "berlin": ORDERS["berlin"]})
    says("In tokyo: all-orders read 'berlin order 0' more often", read={**read, "tokyo": [*read["tokyo"], "berlin order 0"]})
    create(berlin, "tokyo.berlin.orders", 3, copies=1)
    says("In berlin: 'tokyo.berlin.orders' is a copy of a copy")
    delete(berlin, "tokyo.berlin.orders")
    add(tokyo, "orders", ["berlin order 0"])
    add(berlin, "tokyo.orders", ["berlin order 0"])
    says("In tokyo: The topic orders holds 'berlin order 0'")


def test_loop(named: Named, verdict: Verdict) -> None:
    berlin, tokyo = named("berlin", "tokyo")
    calm = [f"calm {n}" for n in range(10)]

    def says(sentence: str) -> None:
        verdict.says(sentence, LOOP, berlin, tokyo=tokyo)

    for city in (berlin, tokyo):
        fill(city, "echo", ["hello?"], 1)
    fill(berlin, "calm", calm)
    says("In berlin: echo holds 1 record. With which policy")
    for city in (berlin, tokyo):
        add(city, "echo", ["hello?"] * 9, 1)
    says("In tokyo: There is no topic 'calm' yet")
    fill(tokyo, "calm", [*calm[:9], "calm x"])
    says("Only one of the two cities has 'calm 9' and 1 more")
    delete(tokyo, "calm")
    fill(tokyo, "calm", calm)
    verdict.passes(LOOP, berlin, tokyo=tokyo)
    add(tokyo, "calm", calm[:2])  # copied twice
    verdict.passes(LOOP, berlin, tokyo=tokyo)
    create(tokyo, "berlin.calm", 3, copies=1)
    says("In tokyo: There is a topic 'berlin.calm'")
    add(berlin, "calm", calm[:2])  # came back
    says("In berlin: calm holds 12 records, 10 of them different. 10 were sent.")
    add(berlin, "echo", ["hello again"], 1)
    says("In berlin: echo holds 2 different values")
