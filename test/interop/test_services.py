"""Services and actions between rclpy and Rust: each side serves once and calls once."""
from __future__ import annotations

import subprocess

import pytest
from fields import Values, differences, fields
from rclpy.action import ActionClient, ActionServer
from test_msgs.action import Fibonacci
from test_msgs.srv import Arrays, BasicTypes, Empty

NUMBERS = [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]


def answer(request, response):
    """The response with the fields of the request."""
    for name, _ in fields(request):
        setattr(response, name, getattr(request, name))
    return response


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("kind,name", [(BasicTypes, "basic_types"), (Arrays, "arrays"), (Empty, "empty")])
def test_rust_serves(partner, kind, name, seed):
    client = partner.node.create_client(kind, f"interop/rust/{name}")
    try:
        partner.spin_until(client.service_is_ready, f"service {name}")
        request = Values(seed).message(kind.Request)
        future = client.call_async(request)
        partner.spin_until(future.done, f"answer of {name}")
        assert differences(request, future.result()) == []
    finally:
        partner.node.destroy_client(client)


def reach(partner, client, order: int):
    """The handle and the result of a goal."""
    accepted = client.send_goal_async(Fibonacci.Goal(order=order))
    partner.spin_until(accepted.done, "answer to the goal")
    result = accepted.result().get_result_async()
    partner.spin_until(result.done, "result")
    return accepted.result(), result.result().result


def test_rust_serves_an_action(partner):
    # The client drops the feedback of a goal that has ended, so a subscription of our own listens.
    client, feedback = ActionClient(partner.node, Fibonacci, "interop/rust/fibonacci"), []
    listener = partner.node.create_subscription(
        Fibonacci.Impl.FeedbackMessage, "interop/rust/fibonacci/_action/feedback", feedback.append, 100)
    try:
        partner.spin_until(client.server_is_ready, "action server")
        partner.spin_until(lambda: reach(partner, client, 1) and feedback, "first feedback")
        goal, result = reach(partner, client, 10)
        assert list(result.sequence) == NUMBERS

        def mine():
            return [list(item.feedback.sequence) for item in feedback if item.goal_id == goal.goal_id]

        partner.spin_until(lambda: len(mine()) == len(NUMBERS), "feedback for each number")
        assert mine() == [NUMBERS[:end] for end in range(1, 11)]
    finally:
        partner.node.destroy_subscription(listener)
        client.destroy()


def test_rust_rejects_a_goal_that_it_cannot_reach(partner):
    client = ActionClient(partner.node, Fibonacci, "interop/rust/fibonacci")
    try:
        partner.spin_until(client.server_is_ready, "action server")
        refused = client.send_goal_async(Fibonacci.Goal(order=-1))
        partner.spin_until(refused.done, "answer to the goal")
        assert not refused.result().accepted
    finally:
        client.destroy()


def count(goal):
    """An action callback that succeeds with the first numbers."""
    goal.succeed()
    return Fibonacci.Result(sequence=NUMBERS[:goal.request.order])


def test_rust_calls(partner):
    requests = []

    def keep(request, response):
        requests.append(request)
        return answer(request, response)

    servers = [partner.node.create_service(kind, f"interop/python/{name}", keep)
               for kind, name in ((BasicTypes, "basic_types"), (Arrays, "arrays"), (Empty, "empty"))]
    action = ActionServer(partner.node, Fibonacci, "interop/python/fibonacci", count)
    caller = partner.rust.start("call")
    try:
        partner.spin_until(lambda: caller.poll() is not None, "end of the calls")
        assert caller.returncode == 0, partner.rust.said()
    finally:
        caller.kill()
        caller.wait(10)
        action.destroy()
        for server in servers:
            partner.node.destroy_service(server)
    basic, arrays, _ = requests
    assert (basic.float64_value, basic.int64_value, basic.string_value) == (1e300, -(1 << 63), "ψ from Rust")
    assert list(arrays.string_values) == ["a", "", "ψ"] and list(arrays.int64_values_default)[1] == (1 << 63) - 1


def test_wrong_usage_is_one_line(rust):
    result = subprocess.run([rust.path, "sing"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, "interop_echo: usage: interop_echo serve|call\n")
