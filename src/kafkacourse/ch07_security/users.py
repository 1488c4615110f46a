"""Users with passwords: by PLAIN, and by SCRAM while the cluster runs."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, cast

from kafkalab.checks.access import CONNECTED, REJECTED, servers, try_connect
from kafkalab.checks.context import CheckContext, Unmet
from kafkalab.checks.groups import has_read_everything
from kafkalab.checks.lab import Lab
from kafkalab.checks.probes import parametrized
from kafkalab.checks.topics import holds
from kafkalab.cluster.asking import ask

__all__ = ["lab"]

LISTENER = "SASL_SSL"
TOPIC = "stock-prices"
PLAIN, SCRAM = "PLAIN", "SCRAM-SHA-256"
USERS = ("admin", "stocks_consumer", "stocks_producer")
ITERATIONS = {"SCRAM_SHA_256": 8192, "SCRAM_SHA_512": 4096}

lab = Lab("07_users")


def _try_login(ctx: CheckContext, user: str, password: str, mechanism: str) -> str:
    return try_connect(
        {
            "bootstrap.servers": servers(ctx, LISTENER),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(ctx.cluster.security.authority.certificate),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
        }
    )


@parametrized
def _can_log_in(ctx: CheckContext, mechanism: str) -> None:
    passwords = ctx.answer("users", dict[str, str], "user → password, for the three users", keys=USERS)
    for user in USERS:
        if (result := _try_login(ctx, user, passwords[user], mechanism)) != CONNECTED:
            raise Unmet(
                f"{user} can't log in by {mechanism} with its password: {result}. Does the listener accept the "
                "mechanism, and do the brokers know the user?"
            )


@parametrized
def _needs_the_password(ctx: CheckContext, mechanism: str) -> None:
    for user in USERS:
        if (result := _try_login(ctx, user, "a wrong one", mechanism)) != REJECTED:
            raise Unmet(f"{user} logs in by {mechanism} with a wrong password, and the answer is: {result}.")


plain = lab.add_check(
    "07_plain",
    "Add users by PLAIN",
    hints=(
        'A JAAS line has a module, the word required, options as name="value", and one semicolon at the very end.',
        'user_admin="…" adds a user admin. username="admin" is the name with which the broker itself logs in.',
        "sasl.enabled.mechanisms is a list with commas. The listener rejects any mechanism that isn't in it, whatever the line "
        "says.",
    ),
)

users_log_in = plain.requires("The three users log in with their passwords")(_can_log_in(PLAIN))
plain.requires("They can't log in with another password", after=users_log_in)(_needs_the_password(PLAIN))
prices_are_there = plain.requires("stock-prices holds the 60 prices")(holds(TOPIC, 60))
plain.requires("The group stocks has read and committed them", after=prices_are_there)(has_read_everything("stocks", TOPIC))

scram = lab.add_check(
    "07_scram",
    "Add users by SCRAM while the cluster runs",
    hints=(
        "kafka-configs.sh … --describe --entity-type users lists the users and their iterations.",
        "The file for --add-config-file has one line, for one mechanism: SCRAM-SHA-256=iterations=8192,password=…. Without "
        "iterations, Kafka uses its default.",
        "Each user has another password here than with PLAIN. They are in SCRAM_USERS.",
    ),
)


@scram.requires("The cluster keeps each user for both mechanisms, with 8192 and 4096 iterations")
def credentials_are_kept(ctx: CheckContext) -> None:
    kept = ask(ctx.cluster, lambda admin: cast(Future[Any], admin.describe_user_scram_credentials()))
    for user in USERS:
        if user not in kept:
            raise Unmet(f"The cluster knows no SCRAM user {user}.")
        credentials = {info.mechanism.name: info.iterations for info in kept[user].scram_credential_infos}
        for mechanism, iterations in ITERATIONS.items():
            name = mechanism.replace("_", "-")
            if mechanism not in credentials:
                raise Unmet(f"{user} has no credential for {name}.")
            if credentials[mechanism] != iterations:
                raise Unmet(f"{user}'s credential for {name} has {credentials[mechanism]} iterations, not {iterations}.")


scram_users_log_in = scram.requires("The three log in by SCRAM-SHA-256", after=credentials_are_kept)(_can_log_in(SCRAM))
scram.requires("They can't log in with another password", after=scram_users_log_in)(_needs_the_password(SCRAM))
more_prices = scram.requires("stock-prices holds all 120 prices")(holds(TOPIC, 120))
scram.requires("The group stocks-again has read and committed them", after=more_prices)(
    has_read_everything("stocks-again", TOPIC)
)
