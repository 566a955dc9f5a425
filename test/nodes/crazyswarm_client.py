"""Flies a robot as a client of crazyswarm2 does, with the types of `crazyflie_interfaces`; prints what it saw as JSON."""
import json
import sys
import time

import rclpy
from builtin_interfaces.msg import Duration
from crazyflie_interfaces.msg import Hover, LogDataGeneric, Status
from crazyflie_interfaces.srv import AddLogging, Land, NotifySetpointsStop, Takeoff
from geometry_msgs.msg import PoseStamped

rclpy.init(domain_id=int(sys.argv[1]))
node = rclpy.create_node("crazyswarm_client")
heights, states, samples = [], [], []
node.create_subscription(PoseStamped, "cf1/pose", lambda m: heights.append(m.pose.position.z), 10)
node.create_subscription(Status, "cf1/status", lambda m: states.append(m.supervisor_info), 10)
node.create_subscription(LogDataGeneric, "cf1/extra", lambda m: samples.append(len(m.values)), 10)


def until(done, what):
    """Spins until it is so."""
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end, f"{what} did not come true"
        rclpy.spin_once(node, timeout_sec=0.05)


def call(name, kind, **fields):
    """Calls a service of the robot."""
    client = node.create_client(kind, f"cf1/{name}")
    until(client.service_is_ready, f"service {name}")
    future = client.call_async(kind.Request(**fields))
    until(future.done, f"an answer of {name}")
    return future.result()


until(lambda: heights and states, "telemetry")
added = call("add_logging", AddLogging, topic_name="extra", frequency=20, vars=["stateEstimate.z", "stateEstimate.vz"])
call("takeoff", Takeoff, height=0.5, duration=Duration(sec=1))
until(lambda: abs(heights[-1] - 0.5) < 0.1, "the take-off")
setpoints = node.create_publisher(Hover, "cf1/cmd_hover", 10)
stream = node.create_timer(0.02, lambda: setpoints.publish(Hover(z_distance=0.85)))
until(lambda: heights[-1] > 0.75, "the height of the setpoints")
node.destroy_timer(stream)
call("notify_setpoints_stop", NotifySetpointsStop)
call("land", Land, height=0.0, duration=Duration(sec=2))
until(lambda: heights[-1] < 0.05, "the landing")
named = node.get_topic_names_and_types() + node.get_service_names_and_types()
types = {name: kinds for name, kinds in named if name.startswith(("/cf1/", "/all/"))}
print(json.dumps({"added": added.success, "samples": samples, "flew": any(state & 16 for state in states), "types": types}))
