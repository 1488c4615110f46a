"""What a cluster is asked to be: each input that makes no sense is refused in one clear sentence, before anything runs."""

from __future__ import annotations

import pytest

from kafkalab import Cluster
from kafkalab.cluster import ClusterSpec, Listener
from kafkalab.security import Security


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"brokers": 0}, "the number of brokers is a number from 1 on, not 0"),
        ({"brokers": "3"}, "the number of brokers is a number from 1 on, not '3'"),
        ({"brokers": 2.5}, "the number of brokers is a number from 1 on, not 2.5"),
        ({"brokers": None}, "the number of brokers is a number from 1 on, not None"),
        ({"brokers": True}, "the number of brokers is a number from 1 on, not True"),
        ({"controllers": -1}, "the number of dedicated controllers is a number from 0 on, not -1"),
        ({"controllers": "1"}, "the number of dedicated controllers is a number from 0 on, not '1'"),
        ({"racks": "abc"}, "racks= is a list, not 'abc'"),
        ({"racks": [1]}, "a rack's name is text, not 1"),
        ({"ports": [9092]}, "3 brokers need 3 ports, not 1"),
        ({"ports": "9092"}, "ports= is a list, not '9092'"),
        ({"ports": 9092}, "ports= is a list, not 9092"),
        ({"brokers": 1, "ports": ["9092"]}, "a broker's port is a number from 1 to 65535, not '9092'"),
        ({"brokers": 1, "ports": [99999]}, "a broker's port is a number from 1 to 65535, not 99999"),
        ({"brokers": 1, "ports": [-1]}, "a broker's port is a number from 1 to 65535, not -1"),
        ({"brokers": 2, "ports": [9092, 9092]}, "names one twice"),
        ({"listeners": ()}, "at least one listener"),
        ({"listeners": "PLAINTEXT"}, "listeners= is a list, not 'PLAINTEXT'"),
        ({"listeners": ["PLAINTEXT"]}, r"listeners= is a list of Listener\(…\), not of 'PLAINTEXT'"),
        ({"listeners": Listener()}, "listeners= is a list, not Listener"),
        ({"listeners": [Listener("A"), Listener("a")]}, "two listeners 'A'"),
        ({"listeners": [Listener("A", port=65535)]}, "the last of 3 brokers would have its listener A at port 65537"),
        ({"heap": "abc"}, "heap= is a size .* like '96m' or '1g', not 'abc'"),
        ({"heap": 96}, "heap= is a size .*, not 96"),
        ({"java_options": "-Xint"}, "java_options= is a list, not '-Xint'"),
        ({"java_options": ["Xint"]}, "an option for Java begins with '-'; 'Xint' does not"),
        ({"settings": {"num.partitions": None}}, "the setting num.partitions has no value"),
        ({"version": "4"}, "a version of Kafka is text like '4.[0-9.]+', not '4'"),
        ({"version": 4.2}, "a version of Kafka is text like .*, not 4.2"),
        ({"version": ""}, "a version of Kafka is text like .*, not ''"),
        ({"tiered_storage": "s3"}, "tiered_storage= is True or False, not 's3'"),
        ({"tiered_storage": True, "version": "4.2.1"}, "a cluster with tiered storage runs Kafka 4.[0-9.]+, not 4.2.1"),
        ({"tiered_storage": True, "security": Security()}, "tiered_storage=True or security=…, not both"),
    ],
)
def test_a_cluster_that_makes_no_sense(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Cluster(backend="local", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "CONTROLLER"}, "the listener name 'CONTROLLER' is kafkalab's own"),
        ({"name": "internal"}, "the listener name 'internal' is kafkalab's own"),
        ({"name": ""}, "a listener's name has letters, .* unlike ''"),
        ({"name": "A,B"}, "a listener's name has letters, .* unlike 'A,B'"),
        ({"protocol": "TLS"}, "a listener speaks PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not 'TLS'"),
        ({"port": 99999}, "the port of the listener PLAINTEXT is a number from 0 to 65535, not 99999"),
        ({"port": "9092"}, "the port of the listener PLAINTEXT is a number from 0 to 65535, not '9092'"),
        ({"settings": {"ssl.client.auth": None}}, "the setting ssl.client.auth has no value"),
    ],
)
def test_a_listener_that_makes_no_sense(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Listener(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"users": "alice"}, "users= gives each user a password, .* not 'alice'"),
        ({"users": {"alice": None}}, "the password of 'alice' is text, not None"),
        ({"users": {"alice": ""}}, "the password of 'alice' is text, not ''"),
        ({"users": {"": "x"}}, "the name of a user is text"),
        ({"users": {"two words": "x"}}, "the name of a user is text .* unlike 'two words'"),
        ({"mechanisms": "PLAIN"}, "mechanisms= is a list, not 'PLAIN'"),
        ({"super_users": "admin"}, "super_users= is a list, not 'admin'"),
        ({"mechanisms": ("GSSAPI",)}, "mechanisms are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, not 'GSSAPI'"),
        ({"between_brokers": "PLAINTEXT"}, "prove who they are by SSL, PLAIN"),
        ({"users": {"broker": "x"}}, "the user name 'broker' is kafkalab's own"),
        ({"users": {"zoë": "x"}, "mechanisms": ("SCRAM-SHA-256",)}, "ASCII characters only, unlike 'zoë'"),
    ],
)
def test_security_that_makes_no_sense(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Security(**options)


def test_specs_are_equal_by_what_they_say() -> None:
    assert ClusterSpec(settings={"a": True}, racks=["x"]) == ClusterSpec(settings={"a": "true"}, racks=("x",))
    assert ClusterSpec(version="4.2.1") != ClusterSpec()
