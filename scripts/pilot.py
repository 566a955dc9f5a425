#!/usr/bin/env python3
"""Flies one drone through ROS 2, as a user's own program would: rclpy, topics and services, nothing of ours.

Takes off, streams `cmd_hover` at 100 Hz until told to stop, lands, and writes what it saw as JSON: whether the
telemetry followed the setpoints. Say `land` on standard input (or close it) to end the hover.
"""
from __future__ import annotations

import argparse
import json
import math
import select
import sys
import time

import rclpy
from builtin_interfaces.msg import Duration
from crazyflie_openlink.msg import Hover, Status
from crazyflie_openlink.srv import Arm, Land, NotifySetpointsStop, Takeoff
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data

HEIGHT_M = 0.5
HEIGHT_ERROR_M = 0.1
SPEED_M_S = 0.2
SPEED_ERROR_M_S = 0.1
RATE_HZ = 100.0


def duration(seconds: float) -> Duration:
    """Seconds as a ROS duration."""
    whole = int(seconds)
    return Duration(sec=whole, nanosec=int((seconds - whole) * 1e9))


class Pilot(Node):
    """The drone's topics and services, and the last telemetry seen."""

    def __init__(self, robot: str):
        super().__init__("pilot")
        self.pose: PoseStamped | None = None
        self.odom: Odometry | None = None
        self.status: Status | None = None
        self.poses = 0
        self.hover = self.create_publisher(Hover, f"{robot}/cmd_hover", 10)
        self.create_subscription(PoseStamped, f"{robot}/pose", self._on_pose, qos_profile_sensor_data)
        self.create_subscription(Odometry, f"{robot}/odom", self._on_odom, qos_profile_sensor_data)
        self.create_subscription(Status, f"{robot}/status", self._on_status, qos_profile_sensor_data)
        self.callers = {
            name: self.create_client(kind, f"{robot}/{name}")
            for name, kind in {"arm": Arm, "takeoff": Takeoff, "land": Land,
                               "notify_setpoints_stop": NotifySetpointsStop}.items()}

    def _on_pose(self, message: PoseStamped) -> None:
        self.pose, self.poses = message, self.poses + 1

    def _on_odom(self, message: Odometry) -> None:
        self.odom = message

    def _on_status(self, message: Status) -> None:
        self.status = message

    @property
    def height(self) -> float:
        """Height of the last pose, m; not a number before the first."""
        return self.pose.pose.position.z if self.pose else math.nan

    @property
    def speed(self) -> float:
        """Forward speed of the last odometry in the body frame, m/s."""
        return self.odom.twist.twist.linear.x if self.odom else math.nan


class Flight:
    """The steps of the flight; each raises RuntimeError saying what did not happen."""

    def __init__(self, pilot: Pilot):
        self.pilot = pilot
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(pilot)

    def spin_until(self, done, limit_s: float, what: str) -> None:
        """Handles callbacks until `done()`."""
        end = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > end:
                raise RuntimeError(f"{what} did not happen within {limit_s:.0f} s")
            self.executor.spin_once(timeout_sec=0.05)

    def call(self, name: str, request) -> None:
        """Calls a service and waits for its answer."""
        client = self.pilot.callers[name]
        self.spin_until(client.service_is_ready, 20, f"service {name}")
        future = client.call_async(request)
        self.spin_until(future.done, 10, f"an answer of service {name}")
        future.result()

    def take_off(self) -> None:
        """Waits for telemetry, then climbs to the hover height."""
        self.spin_until(lambda: self.pilot.pose is not None, 60, "the first pose")
        self.call("arm", Arm.Request(arm=True))
        self.call("takeoff", Takeoff.Request(height=HEIGHT_M, duration=duration(2.0)))
        self.spin_until(lambda: abs(self.pilot.height - HEIGHT_M) < HEIGHT_ERROR_M, 10,
                        f"take-off to {HEIGHT_M} m (height now {self.pilot.height:.2f} m)")

    def hover(self, told_to_land) -> dict:
        """Streams setpoints at 100 Hz until told to land, forward and back in turns of 3 s."""
        period, heights, speeds, sent = 1 / RATE_HZ, [], [], 0
        start = time.monotonic()
        while not told_to_land():
            turn, within = divmod(time.monotonic() - start, 3.0)
            wanted = SPEED_M_S if turn % 2 == 0 else -SPEED_M_S
            self.pilot.hover.publish(Hover(vx=wanted, z_distance=HEIGHT_M))
            sent += 1
            due = start + sent * period
            while (left := due - time.monotonic()) > 0:
                self.executor.spin_once(timeout_sec=left)
            if within > 1.5 and self.pilot.odom is not None:
                speeds.append(abs(self.pilot.speed - wanted))
                heights.append(abs(self.pilot.height - HEIGHT_M))
        seconds = time.monotonic() - start
        if not speeds:
            raise RuntimeError("the hover ended before its first turn of 3 s")
        return {"seconds": seconds, "setpoints": sent, "setpoints_hz": sent / seconds,
                "height_error_m": sorted(heights)[len(heights) // 2],
                "speed_error_m_s": sorted(speeds)[len(speeds) // 2]}

    def land(self) -> None:
        """Hands over to the high-level commander and comes down."""
        self.call("notify_setpoints_stop", NotifySetpointsStop.Request())
        self.call("land", Land.Request(height=0.0, duration=duration(2.0)))
        self.spin_until(lambda: self.pilot.height < 0.1, 15, "landing")


def told_to_land(limit_s: float):
    """A predicate: standard input has a line or is closed, or the time is over."""
    end = time.monotonic() + limit_s
    return lambda: time.monotonic() > end or bool(select.select([sys.stdin], [], [], 0)[0])


def main() -> int:
    """Flies and reports."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--robot", default="cf1")
    parser.add_argument("--output", required=True, help="JSON file with what was seen")
    parser.add_argument("--limit", type=float, default=600.0, help="longest hover, s")
    args = parser.parse_args()
    rclpy.init()
    pilot = Pilot(args.robot)
    flight, seen = Flight(pilot), {"ok": False}
    try:
        flight.take_off()
        print("hovering", flush=True)
        seen.update(flight.hover(told_to_land(args.limit)))
        flight.land()
        followed = seen["height_error_m"] < HEIGHT_ERROR_M and seen["speed_error_m_s"] < SPEED_ERROR_M_S
        seen.update(ok=followed, poses=pilot.poses, battery_v=pilot.status.battery_voltage if pilot.status else None)
        if not followed:
            seen["why"] = "telemetry did not follow the setpoints"
    except RuntimeError as error:
        seen["why"] = str(error)
    with open(args.output, "w", encoding="utf-8") as file:
        json.dump(seen, file, indent=2)
    print(json.dumps(seen), flush=True)
    pilot.destroy_node()
    rclpy.try_shutdown()
    return 0 if seen["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
