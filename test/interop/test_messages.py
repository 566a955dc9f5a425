"""A real rclpy process and a Rust process exchange every message type, both ways, equal field by field."""
from __future__ import annotations

import inspect

import crazyflie_openlink.msg
import pytest
import test_msgs.msg
from fields import Values, differences
from known import MESSAGES

SEEDS = (1, 2, 3, 4, 5)


def types(module) -> list[type]:
    """The message classes of a package."""
    return [kind for _, kind in inspect.getmembers(module, inspect.isclass)]


ALL = types(test_msgs.msg) + types(crazyflie_openlink.msg)


def test_both_packages_are_covered():
    assert len(types(test_msgs.msg)) >= 12
    assert len(types(crazyflie_openlink.msg)) >= 13


@pytest.mark.parametrize("lane", ["owned", "borrowed", "rmw"])
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: f"{kind.__module__.split('.')[0]}-{kind.__name__}")
def test_message_comes_back_equal(partner, kind, lane):
    sent = [kind(), Values(None).message(kind), *(Values(seed).message(kind) for seed in SEEDS)]
    got = partner.exchange(lane, kind, sent)
    assert [differences(*pair) for pair in zip(sent, got, strict=True)] == [[]] * len(sent)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_rust_reads_and_writes_the_same_literal(partner, message):
    got = partner.exchange("known", type(message), [message])
    assert differences(message, got[0]) == []


def test_a_difference_is_seen():
    first, second = Values(1).message(test_msgs.msg.MultiNested), Values(1).message(test_msgs.msg.MultiNested)
    assert differences(first, second) == []
    second.array_of_arrays[2].defaults_values[1].int16_value += 1
    assert [line.split(":")[0] for line in differences(first, second)] == [
        ".array_of_arrays[2].defaults_values[1].int16_value"]
