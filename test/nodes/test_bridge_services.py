"""Services and actions across domains, of types that the bridge knows by name only."""
import threading
import time

import pytest
from conftest import wait_until
from rclpy.action import ActionClient, ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import MultiThreadedExecutor
from std_srvs.srv import SetBool
from test_msgs.action import Fibonacci
from test_msgs.srv import BasicTypes


@pytest.fixture
def bridge(node_program, tmp_path):
    """Starts a bridge with the text of its rules."""
    def start(text: str, name: str = "domain_bridge"):
        rules = tmp_path / f"{name}.yaml"
        rules.write_text(f"name: {name}\n{text}", encoding="utf-8")
        return node_program("domain_bridge", config=rules)
    return start


def result_of(future, limit_s: float = 20):
    """The result of a call that another thread spins."""
    wait_until(future.done, limit_s, "an answer")
    return future.result()


def answer(request, response):
    """A server that tells what it was asked."""
    response.success, response.message = request.data, f"asked for {request.data}"
    return response


def test_a_service_answers_across_domains_and_is_gone_with_its_server(bridge, peer, domain, other_domain):
    program = bridge(f"from_domain: {domain}\nto_domain: {other_domain}\n"
                     "services:\n  arm: {type: std_srvs/srv/SetBool, remap: far/arm}\n")
    near, far = peer(domain), peer(other_domain)
    client = far.node.create_client(SetBool, "far/arm")
    assert not client.service_is_ready()
    server = near.node.create_service(SetBool, "arm", answer)
    program.wait_for("domain bridge is ready")
    wait_until(client.service_is_ready, what="the service")
    for asked in (True, False, True):
        got = result_of(client.call_async(SetBool.Request(data=asked)))
        assert (got.success, got.message) == (asked, f"asked for {asked}")
    near.node.destroy_service(server)
    wait_until(lambda: not client.service_is_ready(), what="the end of the service")
    assert program.stop() == 0


def test_every_field_and_every_caller_gets_its_own_answer(bridge, peer, domain, other_domain):
    bridge(f"from_domain: {domain}\nto_domain: {other_domain}\nservices:\n  echo: {{type: test_msgs/srv/BasicTypes}}\n")

    def echo(request, response):
        for name in request.get_fields_and_field_types():
            setattr(response, name, getattr(request, name))
        return response
    peer(domain).node.create_service(BasicTypes, "echo", echo)
    clients = [peer(other_domain).node.create_client(BasicTypes, "echo") for _ in range(3)]
    for client in clients:
        wait_until(client.service_is_ready, what="the service")
    for start in range(0, 60, 9):  # fewer at a time than the 10 that the server's own queue holds
        asked = {n: BasicTypes.Request(int32_value=n, string_value="x" * n, float64_value=n / 7)
                 for n in range(start, start + 9)}
        futures = {n: clients[n % 3].call_async(request) for n, request in asked.items()}
        for n, future in futures.items():
            got = result_of(future)
            assert (got.int32_value, got.string_value, got.float64_value) == (n, "x" * n, n / 7)


def test_two_opposite_service_bridges_do_not_serve_each_other(bridge, peer, domain, other_domain):
    rules = "from_domain: {}\nto_domain: {}\nservices:\n  arm: {{type: std_srvs/srv/SetBool}}\n"
    there = bridge(rules.format(domain, other_domain), "there")
    back = bridge(rules.format(other_domain, domain), "back")
    near, far = peer(domain), peer(other_domain)
    server = near.node.create_service(SetBool, "arm", answer)
    client = far.node.create_client(SetBool, "arm")
    wait_until(client.service_is_ready, what="the service")
    assert result_of(client.call_async(SetBool.Request(data=True))).success
    near.node.destroy_service(server)
    wait_until(lambda: not client.service_is_ready(), what="the end of the service")
    assert "service is up" in there.log and "service is up" not in back.log


@pytest.fixture
def counting(peer, domain):
    """An action server that counts up to the order and can be cancelled."""
    node, canceled = peer(domain, "counting"), threading.Event()

    def run(goal):
        feedback = Fibonacci.Feedback(sequence=[0])
        for index in range(1, goal.request.order):
            if goal.is_cancel_requested:
                canceled.set()
                goal.canceled()
                return Fibonacci.Result(sequence=feedback.sequence)
            feedback.sequence = [*feedback.sequence, index]
            goal.publish_feedback(feedback)
            time.sleep(0.05)
        goal.succeed()
        return Fibonacci.Result(sequence=feedback.sequence)
    executor = MultiThreadedExecutor(num_threads=4, context=node.context)
    node.executor.remove_node(node.node)
    executor.add_node(node.node)
    server = ActionServer(node.node, Fibonacci, "count", run, callback_group=ReentrantCallbackGroup(),
                          cancel_callback=lambda _: CancelResponse.ACCEPT)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    yield canceled
    executor.shutdown(timeout_sec=5)
    server.destroy()


def test_an_action_crosses_as_a_whole(bridge, peer, counting, domain, other_domain):
    program = bridge(f"from_domain: {domain}\nto_domain: {other_domain}\n"
                     "actions:\n  count: {type: test_msgs/action/Fibonacci}\n")
    far, feedback = peer(other_domain), []
    client = ActionClient(far.node, Fibonacci, "count")
    program.wait_for("domain bridge is ready", 30)
    wait_until(client.server_is_ready, what="all parts of the action")
    goal = result_of(client.send_goal_async(Fibonacci.Goal(order=30), lambda m: feedback.append(m.feedback.sequence)))
    assert goal.accepted
    result = result_of(goal.get_result_async(), 30)
    assert list(result.result.sequence) == list(range(30)) and result.status == 4
    assert feedback and list(feedback[-1]) == list(range(len(feedback[-1])))
    long = result_of(client.send_goal_async(Fibonacci.Goal(order=2000)))
    time.sleep(0.3)
    assert result_of(long.cancel_goal_async()).goals_canceling
    assert result_of(long.get_result_async(), 30).status == 5 and counting.is_set()
