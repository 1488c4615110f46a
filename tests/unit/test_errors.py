"""The errors of kafkalab: each is exported, and each is a `KafkaLabError`."""

from __future__ import annotations

import inspect

from kafkalab import errors


def test_each_error_is_exported_and_has_the_common_base() -> None:
    defined = {name: found for name, found in vars(errors).items() if inspect.isclass(found)}
    assert sorted(defined) == errors.__all__
    assert all(issubclass(found, errors.KafkaLabError) for found in defined.values())
