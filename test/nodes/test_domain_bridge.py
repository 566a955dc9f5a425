"""The domain bridge between real rclpy nodes in two domains."""
import time
from pathlib import Path

import pytest
from conftest import wait_until
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String, UInt8MultiArray

RULES = """
from_domain: {near}
to_domain: {far}
topics:
  {topic}:
    type: {type}
{more}
"""


@pytest.fixture
def bridge(node_program, tmp_path, domain, other_domain):
    """Starts a bridge with one topic between two fresh domains."""
    def start(topic="chatter", kind="std_msgs/msg/String", more=""):
        rules = tmp_path / "rules.yaml"
        rules.write_text(RULES.format(near=domain, far=other_domain, topic=topic, type=kind, more=more),
                         encoding="utf-8")
        return node_program("domain_bridge", config=rules)
    return start


def test_forwards_every_byte_of_a_large_message(bridge, peer, domain, other_domain):
    program = bridge("big", "std_msgs/msg/UInt8MultiArray")
    source, sink, got = peer(domain), peer(other_domain), []
    publisher = source.node.create_publisher(UInt8MultiArray, "big", 10)
    sink.node.create_subscription(UInt8MultiArray, "big", got.append, 10)
    program.wait_for("domain bridge is ready")
    wait_until(lambda: sink.node.count_publishers("big"), what="the bridge's publisher")
    message = UInt8MultiArray(data=bytes(range(256)) * 4000)
    for _ in range(40):
        publisher.publish(message)
        time.sleep(0.25)
        if got:
            break
    assert got and got[0].data == message.data
    assert program.stop() == 0
    assert "route ends" in program.log


def test_a_topic_bridged_both_ways_does_not_circle(bridge, peer, domain, other_domain):
    program = bridge(more="    bidirectional: true")
    source, sink, near, far = peer(domain), peer(other_domain), [], []
    source.node.create_subscription(String, "chatter", near.append, 10)
    sink.node.create_subscription(String, "chatter", far.append, 10)
    publisher = source.node.create_publisher(String, "chatter", 10)
    back = sink.node.create_publisher(String, "chatter", 10)
    program.wait_for("domain bridge is ready")
    # A bridge that circles would multiply the probes of this loop without end.
    wait_until(lambda: (publisher.publish(String(data="first")), time.sleep(0.2)) and far, what="the first message")
    wait_until(lambda: (back.publish(String(data="back")), time.sleep(0.2)) and
               any(m.data == "back" for m in near), what="a message on the way back")
    time.sleep(0.5)
    near.clear(), far.clear()
    for index in range(5):
        publisher.publish(String(data=f"n{index}"))
        time.sleep(0.1)
    time.sleep(1.0)
    assert [m.data for m in far] == [f"n{index}" for index in range(5)]
    assert [m.data for m in near] == [f"n{index}" for index in range(5)]


def test_follows_the_publishers_durability(bridge, peer, domain, other_domain):
    program = bridge()
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = peer(domain).node.create_publisher(String, "chatter", latched)
    publisher.publish(String(data="kept"))
    program.wait_for("transient_local")
    time.sleep(1.0)
    late = []
    peer(other_domain, "late").node.create_subscription(String, "chatter", late.append, latched)
    wait_until(lambda: late, what="the kept message")
    assert late[0].data == "kept"


def test_best_effort_first_then_reliable_both_are_heard(bridge, peer, domain, other_domain):
    program = bridge()
    got = []
    source, sink = peer(domain), peer(other_domain)
    sink.node.create_subscription(String, "chatter", got.append, QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT))
    reliable = source.node.create_publisher(String, "chatter", 10)
    program.wait_for("reliable, volatile")
    loose = source.node.create_publisher(String, "chatter", QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT))
    program.wait_for("best_effort, volatile")

    def both():
        reliable.publish(String(data="reliable"))
        loose.publish(String(data="loose"))
        time.sleep(0.2)
        return {"reliable", "loose"} <= {m.data for m in got}
    wait_until(both, what="a message of each")


@pytest.mark.parametrize("bad, part", [("9999", "9999"), ("233", "233"), ("-1", "-1"), ("5.0", "5.0"), ("five", "five"),
                                       ("true", "true")])
@pytest.mark.parametrize("side", ["from_domain", "to_domain"])
def test_illegal_domains_are_refused_on_both_sides(node_program, tmp_path, side, bad, part):
    rules = tmp_path / "rules.yaml"
    rules.write_text("from_domain: 1\nto_domain: 2\n".replace(f"{side}: {1 if side == 'from_domain' else 2}",
                     f"{side}: {bad}") + "topics: {a: {type: std_msgs/msg/String}}", encoding="utf-8")
    program = node_program("domain_bridge", config=rules)
    assert program.wait(20) == 1
    assert side in program.log and part in program.log and "0 to 232" in program.log and str(rules) in program.log


BAD = sorted((Path(__file__).parent / "bad_rules").glob("*.yaml"))


@pytest.mark.parametrize("rules", BAD, ids=lambda path: path.stem)
def test_each_bad_rule_file_ends_the_program_with_its_reason(node_program, rules):
    expected = rules.read_text(encoding="utf-8").splitlines()[0].removeprefix("# expect: ")
    program = node_program("domain_bridge", config=rules)
    assert program.wait(20) == 1
    assert expected in program.log and "route is up" not in program.log
    assert str(rules) in program.log or "missing_" in rules.stem


def test_a_missing_rule_file_is_named(node_program):
    program = node_program("domain_bridge", config="/nonexistent/rules.yaml")
    assert program.wait(20) == 1 and "/nonexistent/rules.yaml" in program.log
