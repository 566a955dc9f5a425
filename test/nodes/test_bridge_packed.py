"""Packed messages as ros2/domain_bridge packs them, with that package's message built for the test."""
import sys
import time
from pathlib import Path

import pytest
from conftest import NODES, Program, build_interfaces, wait_until
from std_msgs.msg import String

SOURCE = Path(__file__).parent / "packed_message"
READER = """
import sys, rclpy
from domain_bridge.msg import CompressedMsg
rclpy.init(domain_id=int(sys.argv[1]))
node = rclpy.create_node("reader")
node.create_subscription(CompressedMsg, "chatter", lambda m: print(bytes(m.data).hex(), flush=True), 10)
rclpy.spin(node)
"""


@pytest.fixture(scope="session")
def with_message(tmp_path_factory):
    """The environment of processes that know the message."""
    return build_interfaces(SOURCE, tmp_path_factory.mktemp("packed_message"))


def test_packed_messages_arrive_as_they_were(with_message, tmp_path, peer, domain, other_domain, third_domain):
    programs = []
    for name, mode, near, far in (("pack", "compress", domain, other_domain),
                                  ("unpack", "decompress", other_domain, third_domain)):
        rules = tmp_path / f"{name}.yaml"
        rules.write_text(f"name: {name}\nmode: {mode}\nfrom_domain: {near}\nto_domain: {far}\n"
                         "topics: {chatter: {type: std_msgs/msg/String}}\n", encoding="utf-8")
        programs.append(Program(tmp_path / f"{name}.log", NODES / "domain_bridge", "--ros-args", "-p",
                                f"config:={rules}", **with_message))
    programs.append(Program(tmp_path / "reader.log", sys.executable, "-c", READER, other_domain, **with_message))
    try:
        publisher, far, got = peer(domain).node.create_publisher(String, "chatter", 10), peer(third_domain), []
        far.node.create_subscription(String, "chatter", lambda message: got.append(message.data), 10)
        text = "the same over and over " * 1000
        wait_until(lambda: (publisher.publish(String(data=text)), time.sleep(0.1), got and programs[2].log)[-1], 40,
                   "a message through both, and one at the reader between")
        assert got[0] == text
        # zstd's magic number, then a frame that is far shorter than the text.
        frame = wait_until(lambda: next((line for line in programs[2].log.splitlines() if line.startswith("28b52ffd")), ""))
        assert len(frame) / 2 < len(text) / 20
        node = peer(other_domain).node
        types = wait_until(lambda: dict(node.get_topic_names_and_types()).get("/chatter"), what="the topic between")
        assert types == ["domain_bridge/msg/CompressedMsg"]
    finally:
        codes = [program.stop() for program in programs[:2]]
        programs[2].process.kill()
        programs[2].process.wait()
    assert codes == [0, 0], programs[0].log + programs[1].log
