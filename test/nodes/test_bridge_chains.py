"""Several bridges, and more than forwarding: circles, caches, QoS that follows, demand, routes that come later."""
import signal
import subprocess
import sys
import time

import pytest
from conftest import wait_until
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String, UInt8MultiArray

LATE = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture
def bridge(node_program, tmp_path):
    """Starts a bridge of a name with the text of its rules."""
    def start(text: str, name: str = "domain_bridge", **parameters):
        rules = tmp_path / f"{name}.yaml"
        rules.write_text(f"name: {name}\n{text}", encoding="utf-8")
        return node_program("domain_bridge", config=rules, **parameters)
    return start


def one_way(near: int, far: int, topic: str = "chatter", more: str = "") -> str:
    """Rules for one String topic."""
    return f"from_domain: {near}\nto_domain: {far}\ntopics:\n  {topic}: {{type: std_msgs/msg/String{more}}}\n"


def reader(peer, topic: str = "chatter", qos=10) -> list:
    """Collects the texts of a topic."""
    got = []
    peer.node.create_subscription(String, topic, lambda message: got.append(message.data), qos)
    return got


def say_until(publisher, text: str, done, what: str) -> None:
    """Publishes until something is true."""
    wait_until(lambda: (publisher.publish(String(data=text)), time.sleep(0.1), done())[-1], 30, what)


def say_five(publisher, prefix: str) -> list[str]:
    """Publishes five numbered texts."""
    texts = [f"{prefix}{index}" for index in range(5)]
    for text in texts:
        publisher.publish(String(data=text))
        time.sleep(0.05)
    return texts


def settle(*lists: list) -> None:
    """Waits until nothing more comes, for a while, then empties the lists. Circling messages never stop."""
    end = time.monotonic() + 20
    while True:
        before = [len(one) for one in lists]
        time.sleep(1.0)
        if before == [len(one) for one in lists]:
            break
        assert time.monotonic() < end, f"messages keep coming: {[one[-3:] for one in lists]}"
    for one in lists:
        one.clear()


def test_two_one_way_bridges_in_opposite_directions_do_not_circle(bridge, peer, domain, other_domain):
    there, back = bridge(one_way(domain, other_domain), "there"), bridge(one_way(other_domain, domain), "back")
    near, far = peer(domain), peer(other_domain)
    at_near, at_far = reader(near), reader(far)
    from_near = near.node.create_publisher(String, "chatter", 10)
    from_far = far.node.create_publisher(String, "chatter", 10)
    there.wait_for("route is up"), back.wait_for("route is up")
    say_until(from_near, "first", lambda: "first" in at_far, "a message there")
    say_until(from_far, "back", lambda: "back" in at_near, "a message back")
    settle(at_near, at_far)
    texts = say_five(from_near, "n") + say_five(from_far, "f")
    wait_until(lambda: len(at_near) >= 10 and len(at_far) >= 10, what="all ten at both")
    time.sleep(1.0)
    assert sorted(at_near) == sorted(texts) and sorted(at_far) == sorted(texts)


def test_a_ring_of_three_bridges_brings_each_message_everywhere_once(bridge, peer, domain, other_domain, third_domain):
    ring = [domain, other_domain, third_domain]
    programs = [bridge(one_way(ring[i], ring[(i + 1) % 3]), f"hop{i}") for i in range(3)]
    peers = [peer(one) for one in ring]
    got = [reader(one) for one in peers]
    publishers = [one.node.create_publisher(String, "chatter", 10) for one in peers]
    for program in programs:
        program.wait_for("route is up")
    for index, publisher in enumerate(publishers):
        say_until(publisher, f"first{index}", lambda i=index: all(f"first{i}" in one for one in got), "all three")
    settle(*got)
    texts = [text for index, publisher in enumerate(publishers) for text in say_five(publisher, f"p{index}-")]
    wait_until(lambda: all(len(one) >= 15 for one in got), what="all fifteen at all three")
    time.sleep(1.0)
    assert all(sorted(one) == sorted(texts) for one in got)


def test_a_chain_in_one_process_goes_on(bridge, peer, domain, other_domain, third_domain):
    program = bridge(f"topics:\n  a: {{type: std_msgs/msg/String, from_domain: {domain}, to_domain: {other_domain}}}\n"
                     f"  a: {{type: std_msgs/msg/String, from_domain: {other_domain}, to_domain: {third_domain}}}\n")
    publisher = peer(domain).node.create_publisher(String, "a", 10)
    got = reader(peer(third_domain), "a")
    program.wait_for("domain bridge is ready")
    say_until(publisher, "far", lambda: "far" in got, "a message through both routes")


def test_a_bridge_that_announces_nothing_is_recognised_by_its_nodes(bridge, peer, domain, other_domain):
    # As ros2/domain_bridge: a node in each domain, called <name>_<domain>, without parameters.
    other = {one: peer(one, "unused") for one in (domain, other_domain)}
    nodes = {one: Node(f"stock_{one}", context=p.context, start_parameter_services=False) for one, p in other.items()}
    passed = nodes[other_domain].create_publisher(String, "chatter", 10)
    nodes[domain].create_subscription(String, "chatter", passed.publish, 10)
    other[domain].executor.add_node(nodes[domain])
    back = bridge(one_way(other_domain, domain), "back")
    near, far = peer(domain), peer(other_domain)
    at_near, at_far = reader(near), reader(far)
    from_near = near.node.create_publisher(String, "chatter", 10)
    from_far = far.node.create_publisher(String, "chatter", 10)
    say_until(from_near, "first", lambda: "first" in at_far, "a message through the other bridge")
    say_until(from_far, "back", lambda: "back" in at_near, "a message through ours")
    settle(at_near, at_far)
    texts = say_five(from_near, "n")
    wait_until(lambda: len(at_far) >= 5, what="all five")
    time.sleep(1.0)
    assert at_far == texts and at_near == texts, back.log


def test_late_readers_get_the_last_sample_of_every_latching_publisher(bridge, peer, domain, other_domain):
    program = bridge(one_way(domain, other_domain, more=", qos: {depth: 1}"))
    quiet, chatty = peer(domain), peer(domain)
    first = quiet.node.create_publisher(String, "chatter", LATCHED)
    second = chatty.node.create_publisher(String, "chatter", LATCHED)
    first.publish(String(data="quiet"))
    early = reader(peer(other_domain), qos=LATE)
    program.wait_for("transient_local")
    for index in range(30):
        second.publish(String(data=f"chatty{index}"))
    wait_until(lambda: "chatty29" in early and "quiet" in early, what="both at the early reader")
    late = reader(peer(other_domain), qos=LATE)
    wait_until(lambda: {"chatty29", "quiet"} <= set(late), what="both at the late reader")
    assert sorted(late) == ["chatty29", "quiet"]


def test_deadline_lifespan_and_lease_follow_the_publisher(bridge, peer, domain, other_domain):
    bridge(one_way(domain, other_domain))
    qos = QoSProfile(depth=5, deadline=Duration(seconds=2), lifespan=Duration(seconds=1),
                     liveliness=LivelinessPolicy.AUTOMATIC, liveliness_lease_duration=Duration(seconds=3))
    publisher = peer(domain).node.create_publisher(String, "chatter", qos)
    far = peer(other_domain)
    found = wait_until(lambda: far.node.get_publishers_info_by_topic("chatter"), what="the bridge's publisher")
    seen = found[0].qos_profile
    assert seen.deadline == Duration(seconds=2, nanoseconds=10_000_000)
    assert seen.lifespan == Duration(nanoseconds=990_000_000)
    assert seen.liveliness_lease_duration == Duration(seconds=3, nanoseconds=10_000_000)
    strict = QoSProfile(depth=5, deadline=Duration(seconds=3), liveliness_lease_duration=Duration(seconds=4))
    got = reader(far, qos=strict)
    say_until(publisher, "in time", lambda: "in time" in got, "a message at a reader that asks for a deadline")


def test_lost_liveliness_is_mirrored(bridge, peer, domain, other_domain):
    bridge(one_way(domain, other_domain))
    qos = QoSProfile(depth=5, liveliness=LivelinessPolicy.MANUAL_BY_TOPIC,
                     liveliness_lease_duration=Duration(nanoseconds=500_000_000))
    publisher, far = peer(domain).node.create_publisher(String, "chatter", qos), peer(other_domain)
    got = reader(far, qos=QoSProfile(depth=5))
    say_until(publisher, "alive", lambda: "alive" in got, "a message")
    wait_until(lambda: far.node.count_publishers("chatter") == 0, what="the end of the bridge's publisher")
    say_until(publisher, "again", lambda: "again" in got, "a message after the publisher came back to life")
    wait_until(lambda: far.node.count_publishers("chatter") == 0, what="its end after a second loss")
    say_until(publisher, "once more", lambda: "once more" in got, "a message after the second loss")


def test_a_publisher_that_is_gone_takes_the_bridges_along(bridge, peer, domain, other_domain):
    bridge(one_way(domain, other_domain))
    near, far = peer(domain), peer(other_domain)
    publisher = near.node.create_publisher(String, "chatter", 10)
    wait_until(lambda: far.node.count_publishers("chatter") == 1, what="the bridge's publisher")
    near.node.destroy_publisher(publisher)
    wait_until(lambda: far.node.count_publishers("chatter") == 0, what="its end")


def test_reliable_reader_of_a_best_effort_publisher_is_warned_of(bridge, peer, domain, other_domain):
    program = bridge(one_way(domain, other_domain))
    peer(domain).node.create_publisher(String, "chatter", BEST_EFFORT)
    reader(peer(other_domain, "picky"), qos=10)
    program.wait_for("incompatible QoS")
    line = next(line for line in program.log.splitlines() if "incompatible QoS" in line)
    assert "/chatter" in line and "reliability" in line and "picky" in line


def test_best_effort_reader_first_and_reliable_one_second_both_receive(bridge, peer, domain, other_domain):
    bridge(one_way(domain, other_domain))
    loose = reader(peer(other_domain), qos=BEST_EFFORT)
    publisher = peer(domain).node.create_publisher(String, "chatter", 10)
    say_until(publisher, "one", lambda: "one" in loose, "a message at the first reader")
    strict = reader(peer(other_domain), qos=10)
    say_until(publisher, "two", lambda: "two" in strict and "two" in loose, "a message at both")


def test_a_lazy_route_waits_for_a_reader(bridge, peer, domain, other_domain):
    program = bridge(one_way(domain, other_domain, more=", lazy: true"))
    near, far = peer(domain), peer(other_domain)
    publisher = near.node.create_publisher(String, "chatter", 10)
    program.wait_for("waiting for a reader")
    assert near.node.count_subscribers("chatter") == 0
    got = []
    subscription = far.node.create_subscription(String, "chatter", got.append, 10)
    say_until(publisher, "wanted", lambda: got, "a message")
    far.node.destroy_subscription(subscription)
    wait_until(lambda: near.node.count_subscribers("chatter") == 0, what="the end of the bridge's subscription")


def test_wildcards_admit_topics_that_come_later(bridge, peer, domain, other_domain):
    program = bridge(f"wildcards:\n  - {{allow: '/cf*/**', deny: ['/*/raw'], from_domain: {domain}, "
                     f"to_domain: {other_domain}, bidirectional: true}}\n")
    program.wait_for("domain bridge is ready")
    near, far = peer(domain), peer(other_domain)
    wanted, unwanted = reader(far, "/cf1/status"), reader(far, "/cf1/raw")
    raw = near.node.create_publisher(String, "/cf1/raw", 10)
    status = near.node.create_publisher(String, "/cf1/status", 10)
    say_until(status, "flying", lambda: (raw.publish(String(data="raw")), "flying" in wanted)[-1], "a message")
    assert unwanted == [] and "/cf1/raw" not in program.log


def test_entity_made_after_spinning_started_runs_when_the_rules_are_read_again(bridge, peer, domain, other_domain):
    program = bridge(one_way(domain, other_domain, "first"))
    near, far = peer(domain), peer(other_domain)
    first, second = (near.node.create_publisher(String, name, 10) for name in ("first", "second"))
    at_first, at_second = reader(far, "first"), reader(far, "second")
    say_until(first, "1", lambda: at_first, "a message on the first")
    rules = program.log_path.parent / "domain_bridge.yaml"
    rules.write_text("topics: [second]", encoding="utf-8")
    program.process.send_signal(signal.SIGHUP)
    program.wait_for("the rules stay as they are")
    text = one_way(domain, other_domain, "first") + "  second: {type: std_msgs/msg/String}\n"
    rules.write_text(f"name: domain_bridge\n{text}", encoding="utf-8")
    program.process.send_signal(signal.SIGHUP)
    say_until(second, "2", lambda: at_second, "a message on the second")
    settle(at_first)
    say_until(first, "3", lambda: at_first, "the first is still there")


def test_a_rate_limit_thins_out(bridge, peer, domain, other_domain):
    program = bridge(one_way(domain, other_domain, more=", rate_limit: 5"))
    publisher, got = peer(domain).node.create_publisher(String, "chatter", 10), reader(peer(other_domain))
    say_until(publisher, "first", lambda: got, "the first message")
    settle(got)
    started = time.monotonic()
    for index in range(100):
        publisher.publish(String(data=str(index)))
        time.sleep(0.01)
    wait_until(lambda: len(got) >= 4, what="some messages")
    assert len(got) <= 5 * (time.monotonic() - started) + 2
    assert program.stop() == 0 and "dropped_limited" in program.log


def test_a_topic_may_be_renamed_within_a_domain(bridge, peer, domain):
    bridge(one_way(domain, domain, "old", ", remap: new"))
    one = peer(domain)
    publisher, got = one.node.create_publisher(String, "old", 10), reader(one, "new")
    say_until(publisher, "moved", lambda: "moved" in got, "a message under the new name")


def test_diagnostics_tell_what_every_route_does(bridge, peer, domain, other_domain):
    bridge(one_way(domain, other_domain) + "  silent: {type: std_msgs/msg/String, mandatory: false}\n")
    far, statuses = peer(other_domain), {}

    def note(message):
        for status in message.status:
            statuses[status.name] = (status.message, {pair.key: pair.value for pair in status.values})
    far.node.create_subscription(DiagnosticArray, "/diagnostics", note, 10)
    publisher, got = peer(domain).node.create_publisher(String, "chatter", 10), reader(far)
    say_until(publisher, "one", lambda: got, "a message")
    route = f"domain_bridge_{other_domain}: /chatter in {domain} > /chatter in {other_domain}"
    wait_until(lambda: int(statuses.get(route, ("", {}))[1].get("forwarded", 0)) > 0, what="a count")
    message, values = statuses[route]
    assert message == "up" and values["dropped_circled"] == "0" and float(values["residence_p99_us"]) > 0
    assert "reliable" in values["qos"]
    assert any("/silent" in name and told[0] == "waiting for a publisher" for name, told in statuses.items())


READER = """
import sys, rclpy
from rclpy.qos import QoSProfile, HistoryPolicy
from std_msgs.msg import UInt8MultiArray
rclpy.init(domain_id=int(sys.argv[1]))
node = rclpy.create_node("stuck")
keep_all = QoSProfile(history=HistoryPolicy.KEEP_ALL)
node.create_subscription(UInt8MultiArray, "heavy", lambda m: print("got", flush=True), keep_all)
rclpy.spin(node)
"""


def test_a_dead_reliable_subscriber_blocks_no_other_topic(bridge, peer, domain, other_domain, tmp_path):
    program = bridge(f"from_domain: {domain}\nto_domain: {other_domain}\ntopics:\n"
                     "  heavy: {type: std_msgs/msg/UInt8MultiArray, qos: {history: keep_all}}\n"
                     "  light: {type: std_msgs/msg/String}\n")
    near = peer(domain)
    heavy = near.node.create_publisher(UInt8MultiArray, "heavy", QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=50))
    light, got = near.node.create_publisher(String, "light", 10), reader(peer(other_domain), "light")
    heard = tmp_path / "heard"
    with open(heard, "w", encoding="utf-8") as out:
        stuck = subprocess.Popen([sys.executable, "-c", READER, str(other_domain)], stdout=out)
    try:
        message = UInt8MultiArray(data=bytes(100_000))
        wait_until(lambda: (heavy.publish(message), time.sleep(0.1), heard.stat().st_size)[-1], 30, "the heavy reader")
        say_until(light, "before", lambda: "before" in got, "a light message")
        stuck.send_signal(signal.SIGSTOP)
        for _ in range(200):
            heavy.publish(message)
        settle(got)
        texts = say_five(light, "l")
        wait_until(lambda: len(got) >= 5, what="light messages while the heavy topic is stuck")
        assert got == texts
    finally:
        stuck.send_signal(signal.SIGCONT)
        stuck.kill()
        stuck.wait()
    assert program.stop(limit_s=30) == 0


def test_packed_messages_need_the_other_bridges_message(bridge, domain, other_domain):
    program = bridge("mode: compress\n" + one_way(domain, other_domain))
    if program.process.poll() is None:
        try:
            program.process.wait(20)
        except subprocess.TimeoutExpired:
            pytest.skip("domain_bridge's message is installed here")
    assert program.process.returncode == 1
    assert "domain_bridge/msg/CompressedMsg" in program.log and "topics./chatter.mode" in program.log
