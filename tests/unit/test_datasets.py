"""The data sets are what the course says, and the same everywhere."""

from __future__ import annotations

import csv
import hashlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kafkalab.datasets import CUSTOMERS, Customer, customers, customers_csv, customers_partition

# As made by the first version: a change of the generator would change every stored output that rests on it.
SHA256 = "22929a69b8fa8c06a187487242481bc3224b493c58bd451535068f7ee18a75ba"


def test_customers_number_as_in_class() -> None:
    everyone = customers()
    assert len(everyone) == CUSTOMERS == 12_434
    assert len({customer.customer_id for customer in everyone}) == CUSTOMERS
    assert everyone[0] == Customer("C00001", "Fatou Rossi", "Paris", "FR", "private", "2023-05-23")


def test_customers_are_the_same_in_every_process(tmp_path: Path) -> None:
    code = "import sys, kafkalab.datasets as d; d.customers_csv(sys.argv[1])"
    for seed in ("0", "1"):
        path = tmp_path / f"{seed}.csv"
        subprocess.run([sys.executable, "-c", code, path], env={"PYTHONHASHSEED": seed}, check=True)
        assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256


def test_a_list_of_ones_own() -> None:
    customers().clear()
    assert len(customers()) == CUSTOMERS


def test_partition_rule_gives_the_figures_of_the_class() -> None:
    assert Counter(customers_partition(index) for index in range(CUSTOMERS)) == {0: 4428, 1: 4004, 2: 4002}


@pytest.mark.parametrize("index", [-1, CUSTOMERS])
def test_partition_of_nobody(index: int) -> None:
    with pytest.raises(IndexError, match="customers 0 to 12433"):
        customers_partition(index)


def test_csv_has_a_line_per_record(tmp_path: Path) -> None:
    path = customers_csv(tmp_path / "customers.csv")
    with open(path, newline="", encoding="utf-8") as file:
        assert [Customer(*row) for row in csv.reader(file)] == customers()


def test_csv_with_header(tmp_path: Path) -> None:
    path = customers_csv(tmp_path / "customers.csv", header=True)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "customer_id,name,city,country,segment,since"
    assert len(lines) == CUSTOMERS + 1
