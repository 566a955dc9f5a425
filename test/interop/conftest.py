"""Starts the Rust half of the interoperability test and gives the tests a node to talk to it."""
from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

# A domain of its own for each run, on this machine only; read by both halves when they start.
os.environ["ROS_DOMAIN_ID"] = str(20 + os.getpid() % 80)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

import rclpy  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402

QOS = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
LIMIT_S = 30.0


class Rust:
    """The Rust executable and what it says."""

    def __init__(self, log: Path):
        self.log = log
        self.path = Path(os.environ["OPENLINK_INSTALL"]) / "lib/crazyflie_openlink/interop_echo"

    def start(self, mode: str) -> subprocess.Popen:
        """Starts one mode; standard error goes to the log."""
        assert self.path.exists(), f"{self.path} is missing: run make build"
        with open(self.log, "a", encoding="utf-8") as log:
            return subprocess.Popen([self.path, mode], stdin=subprocess.DEVNULL, stderr=log)

    def said(self) -> str:
        """The end of the log, for an assertion's message."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:]


class Partner:
    """A node that exchanges messages with the Rust half."""

    def __init__(self, node, rust: Rust):
        self.node, self.rust = node, rust
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(node)

    def spin_until(self, done, what: str) -> None:
        """Handles callbacks until `done()`."""
        end = time.monotonic() + LIMIT_S
        while not done():
            assert time.monotonic() < end, f"no {what} within {LIMIT_S:.0f} s; Rust said: {self.rust.said()}"
            self.executor.spin_once(timeout_sec=0.05)

    def exchange(self, lane: str, kind: type, messages: list) -> list:
        """Sends messages on a lane and returns what comes back.

        One at a time: the order between the instances of a keyed topic is not kept.
        """
        package = kind.__module__.split(".")[0]
        topic = f"interop/{lane}/{package}/msg/{kind.__name__}"
        got: list = []
        subscription = self.node.create_subscription(kind, f"{topic}/out", got.append, QOS)
        publisher = self.node.create_publisher(kind, f"{topic}/in", QOS)
        try:
            for count, message in enumerate(messages, 1):
                publisher.publish(message)
                self.spin_until(lambda: len(got) >= count, f"answer to message {count} on {topic}")
        finally:
            self.node.destroy_publisher(publisher)
            self.node.destroy_subscription(subscription)
        return got


@pytest.fixture(scope="session")
def rust(tmp_path_factory) -> Rust:
    """The Rust executable, not started."""
    log = tmp_path_factory.mktemp("interop") / "rust.log"
    log.touch()
    return Rust(log)


@pytest.fixture(scope="session")
def partner(rust):
    """A node, with the Rust half serving."""
    process = rust.start("serve")
    rclpy.init()
    node = rclpy.create_node("interop_test")
    try:
        yield Partner(node, rust)
        assert process.poll() is None, f"the Rust half ended by itself: {rust.said()}"
    finally:
        process.kill()
        process.wait()
        node.destroy_node()
        rclpy.try_shutdown()
