"""The rest of crazyswarm2's interface: parameters, topics and robots at run time, `all/*`, trajectories, poses."""
import math
import time

import pytest
from builtin_interfaces.msg import Duration
from conftest import wait_until
from crazyflie_openlink.msg import (ConnectionStatisticsArray, CrtpPacket, LogDataGeneric, NamedPose, NamedPoseArray, Position,
                                    Status, TrajectoryPolynomialPiece)
from crazyflie_openlink.srv import (AddLogging, AddRobot, Land, RemoveLogging, RemoveRobot, StartTrajectory, Takeoff,
                                    UploadTrajectory)
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String
from std_srvs.srv import Empty
from test_bridge import free_port, rig  # noqa: F401  (a fixture)

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def call(node, service, kind, **fields):
    """Calls a service by its full name."""
    client = node.create_client(kind, service)
    wait_until(client.service_is_ready, what=f"service {service}")
    future = client.call_async(kind.Request(**fields))
    wait_until(future.done, what=f"an answer of {service}")
    return future.result()


def set_parameter(node, name, value):
    """Sets a parameter of the bridge; the result."""
    kinds = {bool: (ParameterType.PARAMETER_BOOL, "bool_value"), int: (ParameterType.PARAMETER_INTEGER, "integer_value"),
             float: (ParameterType.PARAMETER_DOUBLE, "double_value"), str: (ParameterType.PARAMETER_STRING, "string_value")}
    kind, field = kinds[type(value)]
    parameter = Parameter(name=name, value=ParameterValue(type=kind, **{field: value}))
    return call(node, "/bridge/set_parameters", SetParameters, parameters=[parameter]).results[0]


def get_parameter(node, name):
    """The value of a parameter, None if it is not set."""
    values = call(node, "/bridge/get_parameters", GetParameters, names=[name]).values
    value = values[0] if values else ParameterValue()
    return {ParameterType.PARAMETER_INTEGER: value.integer_value,
            ParameterType.PARAMETER_DOUBLE: value.double_value}.get(value.type)


def flying(pilot):
    """Waits until the robot is connected and speaks."""
    wait_until(lambda: pilot.got["pose"], 30, what="the first pose")


def test_firmware_parameters_are_ros_parameters_both_ways(rig):  # noqa: F811
    pilot = rig.bridge(**{"firmware_params.query_all_values_on_connect": True})
    flying(pilot)
    node = pilot.node
    wait_until(lambda: get_parameter(node, "cf1.params.ring.effect") == 6, 20, what="the drone's own value")
    assert get_parameter(node, "cf1.params.pid_rate.roll_kp") == 250.0
    assert set_parameter(node, "cf1.params.ring.effect", 7).successful
    assert set_parameter(node, "cf1.params.pid_rate.roll_kp", 200).successful
    # A trigger: the drone sets it back and says so.
    wait_until(lambda: get_parameter(node, "cf1.params.kalman.resetEstimation") == 0, 20, what="the trigger at rest")
    assert set_parameter(node, "cf1.params.kalman.resetEstimation", 1).successful
    wait_until(lambda: get_parameter(node, "cf1.params.kalman.resetEstimation") == 0, 20, what="the drone's answer")
    assert set_parameter(node, "all.params.ring.effect", 3).successful
    wait_until(lambda: get_parameter(node, "cf1.params.ring.effect") == 3, 20, what="the value for all")
    rig.finish()


def test_parameters_of_the_drone_take_effect_within_1_s_and_those_of_the_node_refuse(rig):  # noqa: F811
    pilot = rig.bridge(**{"firmware_params.query_all_values_on_connect": True})
    flying(pilot)
    node = pilot.node
    wait_until(lambda: get_parameter(node, "cf1.params.ring.effect") == 6, 20, what="the drone's own value")
    asking = node.create_client(SetParameters, "/bridge/set_parameters")
    wait_until(asking.service_is_ready, what="the parameter service")
    # The new value counts once the drone has said it, unasked: the trigger that it sets back to 0.
    told = []
    node.create_subscription(CrtpPacket, "cf1/crtp/rx", lambda packet: told.append(bytes(packet.data)), 50)
    wait_until(lambda: told, what="packets of the drone")
    value = ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=1)
    del told[:]
    started = time.monotonic()
    future = asking.call_async(SetParameters.Request(parameters=[Parameter(name="cf1.params.kalman.resetEstimation", value=value)]))
    wait_until(lambda: any(len(data) == 4 and data[0] == 1 and data[3] == 0 for data in told), what="the drone to act")
    assert time.monotonic() - started < 1.0
    wait_until(future.done, what="the answer")
    assert future.result().results[0].successful
    for name, new in (("robots_file", "/other.yaml"), ("domain_id", 7)):
        result = set_parameter(node, name, new)
        assert not result.successful and result.reason, name
    rig.finish()


@pytest.mark.parametrize("name, value, said", [
    ("cf1.params.pid_rate.roll_kp", "50", "a text"), ("cf1.params.ring.effect", 256, "255"),
    ("cf1.params.ring.effect", 1.5, "ring.effect"), ("cf1.params.deck.bcFlow2", 0, "read-only")])
def test_parameters_that_do_not_fit_are_refused_by_name(rig, name, value, said):  # noqa: F811
    pilot = rig.bridge()
    flying(pilot)
    wait_until(lambda: "connected, protocol" in rig.program.log, what="the connection")
    wait_until(lambda: set_parameter(pilot.node, "cf1.params.ring.effect", 1).successful, 20, what="the parameters")
    result = set_parameter(pilot.node, name, value)
    assert not result.successful and said in result.reason and name.split(".params.")[1] in result.reason, result.reason
    rig.finish()


def test_topics_come_and_go_by_service(rig):  # noqa: F811
    pilot = rig.bridge()
    flying(pilot)
    assert pilot.call("add_logging", AddLogging, topic_name="extra", frequency=20,
                      vars=["stateEstimate.x", "stateEstimate.z"]).success
    heard = []
    pilot.node.create_subscription(LogDataGeneric, "cf1/extra", heard.append, 10)
    wait_until(lambda: len(heard) > 5, 15, what="the new topic")
    assert len(heard[-1].values) == 2 and heard[-1].timestamp > heard[0].timestamp
    assert pilot.call("remove_logging", RemoveLogging, topic_name="extra").success
    wait_until(lambda: pilot.node.count_publishers("cf1/extra") == 0, 15, what="the topic to go")
    assert not pilot.call("remove_logging", RemoveLogging, topic_name="extra").success
    rig.finish()


@pytest.mark.parametrize("topic, variables, said", [
    ("extra", ["stateEstimate.nothing"], "stateEstimate.nothing"), ("1st", ["stateEstimate.x"], "1st"),
    ("extra", ["stateEstimate x"], "stateEstimate x"), ("extra", [], "var")])
def test_topics_that_cannot_be_are_refused_by_name(rig, topic, variables, said):  # noqa: F811
    pilot = rig.bridge()
    flying(pilot)
    assert not pilot.call("add_logging", AddLogging, topic_name=topic, frequency=10, vars=variables).success
    wait_until(lambda: said in rig.program.log, what=f"{said} in the log")
    count = len(pilot.got["pose"])
    wait_until(lambda: len(pilot.got["pose"]) > count + 10, what="all else to go on")
    rig.finish()


def test_all_robots_take_off_and_land_together(rig, openlink, tmp_path):  # noqa: F811
    port = free_port()
    other = openlink("sim", "--udp", f"127.0.0.1:{port}", "--report", tmp_path / "other.json")
    other.wait_for("simulated drone on udp")
    pilot = rig.bridge(("cf2", f"udp://127.0.0.1:{port}"))
    flying(pilot)
    heights = {"cf1": 0.0, "cf2": 0.0}
    from geometry_msgs.msg import PoseStamped
    for name in heights:
        pilot.node.create_subscription(PoseStamped, f"{name}/pose",
                                       lambda m, name=name: heights.__setitem__(name, m.pose.position.z), 10)
    wait_until(lambda: rig.program.log.count("connected, protocol") == 2, 30, what="both robots")
    call(pilot.node, "all/takeoff", Takeoff, height=0.4, duration=Duration(sec=1, nanosec=500_000_000))
    wait_until(lambda: min(heights.values()) > 0.3, 20, what="both to fly")
    call(pilot.node, "all/land", Land, height=0.0, duration=Duration(sec=1, nanosec=500_000_000))
    wait_until(lambda: max(heights.values()) < 0.05, 20, what="both to land")
    rig.finish()
    assert other.stop() == 0


def test_emergency_for_all_locks(rig):  # noqa: F811
    pilot = rig.bridge()
    pilot.take_off()
    call(pilot.node, "all/emergency", Empty)
    wait_until(lambda: pilot.last("status").supervisor_info & Status.SUPERVISOR_INFO_IS_LOCKED, what="the locked bit")
    rig.finish()


def test_robots_come_and_go_by_service(rig, openlink, tmp_path):  # noqa: F811
    port = free_port()
    other = openlink("sim", "--udp", f"127.0.0.1:{port}", "--report", tmp_path / "other.json")
    other.wait_for("simulated drone on udp")
    pilot = rig.bridge()
    flying(pilot)
    heard = []
    from geometry_msgs.msg import PoseStamped
    pilot.node.create_subscription(PoseStamped, "cf2/pose", heard.append, 10)
    settings = f"{{enabled: true, uri: 'udp://127.0.0.1:{port}', type: cf21}}"
    added = call(pilot.node, "add_robot", AddRobot, name="cf2", settings=settings)
    assert added.success, added.message
    wait_until(lambda: len(heard) > 10, 30, what="the new robot's poses")
    again = call(pilot.node, "add_robot", AddRobot, name="cf2", settings=settings)
    assert not again.success and "cf2" in again.message
    for name in ("1", "cf-2", "ä", "", "192_168_0_5"):
        refused = call(pilot.node, "add_robot", AddRobot, name=name, settings=settings)
        assert not refused.success and "allowed" in refused.message, (name, refused.message)
    assert call(pilot.node, "remove_robot", RemoveRobot, name="cf2").success
    wait_until(lambda: pilot.node.count_publishers("cf2/pose") == 0, 15, what="the robot's topics to go")
    assert not call(pilot.node, "remove_robot", RemoveRobot, name="cf2").success
    count = len(pilot.got["pose"])
    wait_until(lambda: len(pilot.got["pose"]) > count + 10, what="the first robot to go on")
    rig.finish()
    assert other.stop() == 0


def test_a_trajectory_is_uploaded_and_flown(rig):  # noqa: F811
    pilot = rig.bridge()
    pilot.take_off()
    x, y, z = pilot.place
    # x(t) = 0.3 t over two seconds, the rest at rest.
    piece = TrajectoryPolynomialPiece(poly_x=[0.0, 0.3, 0, 0, 0, 0, 0, 0], poly_y=[0.0] * 8, poly_z=[0.0] * 8,
                                      poly_yaw=[0.0] * 8, duration=Duration(sec=2))
    pilot.call("upload_trajectory", UploadTrajectory, trajectory_id=1, piece_offset=0, pieces=[piece])
    pilot.call("start_trajectory", StartTrajectory, trajectory_id=1, timescale=1.0, relative=True)
    wait_until(lambda: pilot.place[0] > x + 0.5, 20, what="the end of the trajectory")
    assert abs(pilot.place[1] - y) < 0.15 and abs(pilot.place[2] - z) < 0.2
    bad = TrajectoryPolynomialPiece(poly_x=[0.0] * 7, poly_y=[0.0] * 8, poly_z=[0.0] * 8, poly_yaw=[0.0] * 8,
                                    duration=Duration(sec=1))
    pilot.call("upload_trajectory", UploadTrajectory, trajectory_id=2, piece_offset=0, pieces=[bad])
    wait_until(lambda: "poly_x" in rig.program.log, what="the refusal")
    pilot.land()
    rig.finish()


def test_poses_of_motion_capture_reach_the_drone(rig):  # noqa: F811
    pilot = rig.bridge()
    flying(pilot)
    qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    publisher = pilot.node.create_publisher(NamedPoseArray, "poses", qos)
    wait_until(lambda: publisher.get_subscription_count() > 0, what="the bridge to listen")
    message = NamedPoseArray(poses=[NamedPose(name="cf1"), NamedPose(name="somebody")])
    message.poses[0].pose.orientation.w = 1.0
    place = NamedPoseArray(poses=[NamedPose(name="cf1")])
    place.poses[0].pose.orientation.w = math.nan
    for _ in range(20):
        publisher.publish(message)
        publisher.publish(place)
        wait_until(lambda count=len(pilot.got["pose"]): len(pilot.got["pose"]) > count, what="the next pose")
    record = rig.finish()
    assert record["traffic"]["by_port"]["6"]["received"] >= 20


def test_description_diagnostics_and_statistics_are_published(rig):  # noqa: F811
    pilot = rig.bridge(**{"warnings.communication.publish_stats": True, "warnings.frequency": 5.0})
    flying(pilot)
    got = {"description": [], "diagnostics": [], "own": [], "all": []}
    node = pilot.node
    node.create_subscription(String, "cf1/robot_description", got["description"].append, LATCHED)
    node.create_subscription(DiagnosticArray, "/diagnostics", got["diagnostics"].append, 10)
    node.create_subscription(ConnectionStatisticsArray, "cf1/connection_statistics", got["own"].append, 10)
    node.create_subscription(ConnectionStatisticsArray, "all/connection_statistics", got["all"].append, 10)
    wait_until(lambda: all(got.values()), 20, what="one of each")
    assert '<robot name="cf1">' in got["description"][0].data
    assert any("cf1" in status.name for status in got["diagnostics"][-1].status)
    assert got["all"][-1].stats[0].receive_count > 0 and got["own"][-1].stats[0].uri.startswith("udp://")
    rig.finish()


@pytest.mark.parametrize("compat, yaw", [("none", 1.2), ("crazyswarm2", math.degrees(1.2))])
def test_yaw_of_cmd_position_is_radians_unless_asked_for_degrees(rig, compat, yaw):  # noqa: F811
    pilot = rig.bridge(compat=compat)
    pilot.take_off()

    def heading():
        q = pilot.last("pose").pose.orientation
        return math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y ** 2 + q.z ** 2))
    x, y, _ = pilot.place
    pilot.stream("cmd_position", Position(x=x, y=y, z=0.5, yaw=yaw), lambda: abs(heading() - 1.2) < 0.1)
    pilot.land()
    rig.finish()
