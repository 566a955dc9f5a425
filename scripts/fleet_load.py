#!/usr/bin/env python3
"""Publishes `cmd_position` to many robots at 100 Hz each, as one autonomy process would, and counts the poses of the first.

Each message says in `x` when it was published: seconds of the monotonic clock modulo 64, which a 32-bit float holds to 4 us.
"""
from __future__ import annotations

import argparse
import json
import threading
import time

import rclpy
from crazyflie_openlink.msg import Position
from geometry_msgs.msg import PoseStamped
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data

RATE_HZ = 100.0
WRAP_S = 64.0


def spin(node: Node) -> None:
    """Serves the subscription until the context ends."""
    try:
        rclpy.spin(node)
    except ExternalShutdownException:
        pass


def main() -> None:
    """Publishes for a while on a fixed schedule; a late turn is not made up for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--robots", type=int, required=True)
    parser.add_argument("--domain", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    args = parser.parse_args()
    rclpy.init(domain_id=args.domain)
    node = rclpy.create_node("fleet_load")
    publishers = [node.create_publisher(Position, f"cf{k}/cmd_position", 1) for k in range(1, args.robots + 1)]
    poses = [0]

    def count(_message: PoseStamped) -> None:
        poses[0] += 1

    node.create_subscription(PoseStamped, "cf1/pose", count, qos_profile_sensor_data)
    spinner = threading.Thread(target=spin, args=(node,))
    spinner.start()
    while any(publisher.get_subscription_count() == 0 for publisher in publishers):
        time.sleep(0.05)
    message, turns, late = Position(z=0.0), 0, 0
    start = time.monotonic()
    poses[0] = 0
    while (begun := time.monotonic()) < start + args.seconds:
        for publisher in publishers:
            message.x = time.monotonic() % WRAP_S
            publisher.publish(message)
        turns += 1
        due = start + int((begun - start) * RATE_HZ + 1) / RATE_HZ
        rest = due - time.monotonic()
        late += rest <= 0
        time.sleep(max(rest, 0))
    print(json.dumps({"turns": turns, "late": late, "seconds": time.monotonic() - start, "poses": poses[0],
                      "start_ns": int(start * 1e9)}), flush=True)
    rclpy.try_shutdown()
    spinner.join()


if __name__ == "__main__":
    main()
