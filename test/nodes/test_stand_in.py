"""Clients of crazyswarm2 keep their types: where `crazyflie_interfaces` is installed, topics and services carry it."""
import json
import sys
from pathlib import Path

import pytest
from conftest import NODES, Program, build_interfaces
from test_bridge import FLEET, ROBOT, free_port

ROOT = Path(__file__).resolve().parents[2]
FILES = ["ConnectionStatistics.msg", "ConnectionStatisticsArray.msg", "FullState.msg", "Hover.msg", "LogDataGeneric.msg", "Position.msg",
         "Status.msg", "TrajectoryPolynomialPiece.msg", "VelocityWorld.msg", "AddLogging.srv", "Arm.srv", "GoTo.srv", "Land.srv",
         "NotifySetpointsStop.srv", "RemoveLogging.srv", "StartTrajectory.srv", "Takeoff.srv", "UploadTrajectory.srv"]
FOR_ALL = {"arm": "srv/Arm", "takeoff": "srv/Takeoff", "land": "srv/Land", "go_to": "srv/GoTo",
           "cmd_full_state": "msg/FullState", "start_trajectory": "srv/StartTrajectory",
           "notify_setpoints_stop": "srv/NotifySetpointsStop"}
FOR_ONE = {**FOR_ALL, "upload_trajectory": "srv/UploadTrajectory", "add_logging": "srv/AddLogging",
           "remove_logging": "srv/RemoveLogging", "cmd_hover": "msg/Hover", "cmd_position": "msg/Position",
           "cmd_velocity_world": "msg/VelocityWorld", "status": "msg/Status", "extra": "msg/LogDataGeneric"}
# Some middleware connects types of different names, so that a flight alone does not tell which are in use.
TYPES = {f"/{robot}/{name}": kind for robot, kinds in (("all", FOR_ALL), ("cf1", FOR_ONE))
         for name, kind in kinds.items()}


@pytest.fixture(scope="module")
def with_interfaces(tmp_path_factory):
    """The environment of processes that know `crazyflie_interfaces`, built here from our own definitions."""
    files = ";".join(f"{name.split('.')[1]}/{name}" for name in FILES)
    return build_interfaces(Path(__file__).with_name("crazyflie_interfaces"), tmp_path_factory.mktemp("crazyflie_interfaces"),
                            f"-DSOURCE={ROOT}", f"-DFILES={files}")


def test_a_client_with_crazyswarm2s_types_flies(with_interfaces, openlink, tmp_path, domain):
    port = free_port()
    openlink("sim", "--udp", f"127.0.0.1:{port}").wait_for("simulated drone on udp")
    fleet = tmp_path / "crazyflies.yaml"
    fleet.write_text(FLEET.format(robots=ROBOT.format(name="cf1", uri=f"udp://127.0.0.1:{port}")), encoding="utf-8")
    bridge = Program(tmp_path / "bridge.log", NODES / "bridge", "--ros-args", "-p", f"domain_id:={domain}", "-p",
                     f"robots_file:={fleet}", **with_interfaces)
    try:
        bridge.wait_for("bridge is up")
        assert "is not used" not in bridge.log, bridge.log
        client = Program(tmp_path / "client.log", sys.executable, Path(__file__).with_name("crazyswarm_client.py"), domain,
                         **with_interfaces)
        assert client.wait(100) == 0, client.log + bridge.log
        assert "[ERROR]" not in bridge.log and "broke off" not in bridge.log, bridge.log
        seen = json.loads(client.log.splitlines()[-1])
        assert seen["added"] and seen["flew"] and set(seen["samples"]) == {2}, seen
        for name, kind in TYPES.items():
            assert seen["types"].get(name) == [f"crazyflie_interfaces/{kind}"], (name, kind, seen["types"])
    finally:
        assert bridge.stop() == 0, bridge.log
