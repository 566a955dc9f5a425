"""QoS and domains as configuration, seen from real peers."""
import os
import socket

import pytest
from conftest import NODES, Program, wait_until
from geometry_msgs.msg import PoseStamped, Twist
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data

FLEET = ("fileversion: 3\nrobots:\n  cf1:\n    enabled: true\n    uri: udp://127.0.0.1:{port}\n    type: cf21\n"
         "robot_types: {{cf21: {{}}}}\n")


@pytest.fixture
def fleet(tmp_path):
    """A fleet file whose only drone never answers: topics are there all the same."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        path = tmp_path / "fleet.yaml"
        path.write_text(FLEET.format(port=probe.getsockname()[1]), encoding="utf-8")
        yield path


def test_override_parameters_reach_one_end_of_one_topic(node_program, fleet, peer, domain, tmp_path):
    parameters = tmp_path / "parameters.yaml"
    parameters.write_text("bridge:\n  ros__parameters:\n    qos_overrides:\n      /cf1/pose:\n        publisher:\n"
                          "          reliability: best_effort\n          deadline: 2000000000\n", encoding="utf-8")
    program = node_program("bridge", "--params-file", parameters, "-p",
                           "qos_overrides./cf1/odom.publisher.durability:=transient_local",
                           "-p", "qos_overrides./cf1/nothing.publisher.depth:=3",
                           robots_file=fleet, domain_id=domain)
    program.wait_for("bridge is up")
    node = peer(domain).node

    def offered(topic):
        return wait_until(lambda: node.get_publishers_info_by_topic(topic), what=topic)[0].qos_profile
    pose, odom = offered("/cf1/pose"), offered("/cf1/odom")
    assert pose.reliability == ReliabilityPolicy.BEST_EFFORT and pose.deadline.nanoseconds == 2_000_000_000
    assert odom.reliability == ReliabilityPolicy.RELIABLE and odom.durability == DurabilityPolicy.TRANSIENT_LOCAL
    program.wait_for("qos_overrides for what this node does not open")
    assert "/cf1/nothing" in program.log


@pytest.mark.parametrize("override, part", [
    ("/cf1/pose.publisher.reliability:=relaible", "reliable, best_effort, system_default"),
    ("/cf1/pose.publisher.depth:=0", "from 1 to 100000"),
    ("/cf1/pose.publisher.colour:=red", "a policy: reliability"),
    ("/cf1/pose.depth:=3", "/topic.publisher.policy"),
])
def test_a_slip_in_an_override_starts_nothing(node_program, fleet, domain, override, part):
    program = node_program("bridge", "-p", f"qos_overrides.{override}", robots_file=fleet, domain_id=domain)
    assert program.wait(20) == 1
    assert f"qos_overrides.{override.split(':=')[0]}" in program.log and part in program.log


def test_reliable_reader_on_a_best_effort_writer_is_warned_of(node_program, fleet, peer, domain):
    program = node_program("bridge", robots_file=fleet, domain_id=domain, qos__telemetry__profile="sensor_data")
    program.wait_for("bridge is up")
    peer(domain, "picky").node.create_subscription(PoseStamped, "/cf1/pose", lambda _: None, 10)
    program.wait_for("incompatible QoS")
    line = next(line for line in program.log.splitlines() if "incompatible QoS" in line)
    assert "/cf1/pose" in line and "reliability" in line and "/picky" in line
    peer(domain, "easy").node.create_subscription(PoseStamped, "/cf1/pose", lambda _: None, qos_profile_sensor_data)
    program.wait_for("peer=\"/easy\"")
    assert "matched" in next(line for line in program.log.splitlines() if "/easy" in line)


@pytest.mark.parametrize("kind", [qos_profile_sensor_data, QoSProfile(depth=10)], ids=["best_effort", "reliable"])
def test_setpoints_of_either_kind_are_heard(node_program, fleet, peer, domain, kind):
    program = node_program("bridge", robots_file=fleet, domain_id=domain)
    program.wait_for("bridge is up")
    publisher = peer(domain, "joystick").node.create_publisher(Twist, "/cf1/cmd_vel", kind)
    wait_until(lambda: publisher.get_subscription_count() == 1, what="a match")
    program.wait_for("peer=\"/joystick\"")
    assert "incompatible" not in program.log


@pytest.mark.parametrize("variable, parameter, effective", [
    ("abc", 5, 5), ("3", None, 3), (None, None, 0), ("3", 5, 5), ("", None, 0),
])
def test_the_domain_comes_from_parameter_then_environment_then_zero(monkeypatch, tmp_path, variable, parameter, effective):
    flags = [] if parameter is None else ["--ros-args", "-p", f"domain_id:={parameter}"]
    env = {key: value for key, value in os.environ.items() if key != "ROS_DOMAIN_ID"}
    if variable is not None:
        env["ROS_DOMAIN_ID"] = variable
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)
    program = Program(tmp_path / "relay.log", NODES / "relay", *flags, **env)
    try:
        program.wait_for("relay is up")
        assert f"domain={effective} " in program.log
    finally:
        assert program.stop() == 0


def test_a_domain_whose_ports_others_may_have_is_explained(node_program):
    program = node_program("relay", domain_id=150)
    program.wait_for("relay is up")
    assert "44900" in program.log and "0 to 101 and 215 to 232 are safe" in program.log
