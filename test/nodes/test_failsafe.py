"""What becomes of a flying drone when a stream of setpoints ends, whatever ends it: real nodes, a bridge beside the drone,
a link between them that can be cut. docs/failsafe.md states the outcomes."""
import json
import signal
import sys
import time
from pathlib import Path

import pytest
from builtin_interfaces.msg import Duration
from conftest import Program, wait_until
from crazyflie_openlink.msg import Hover
from crazyflie_openlink.srv import Takeoff
from test_bridge import FLEET, ROBOT, Pilot, free_port


class Rig:
    """A drone on a serial port, the bridge beside it, a link that can be cut, the ROS bridge and a pilot."""

    def __init__(self, openlink, node_program, peer, folder: Path, domain: int):
        self.openlink, self.node_program, self.peer = openlink, node_program, peer
        self.folder, self.domain, self.report = folder, domain, folder / "drone.json"

    def fly(self, *options: object, low_level: bool = True) -> Pilot:
        """Takes off, and leaves the drone to a stream of hover setpoints unless told not to."""
        near, far = free_port(), free_port()
        uart = self.folder / "uart"
        self.sim = self.openlink("sim", "--uart", uart, "--report", self.report)
        self.sim.wait_for("simulated drone on uart")
        self.guard = self.openlink("bridge", "--from", f"prrt://127.0.0.1:{far}?listen=1", "--to", f"uart://{uart}", *options)
        self.guard.wait_for("bridging")
        self.link = self.openlink("emulate", "S0", "--udp", f"127.0.0.1:{near}", "--to", f"127.0.0.1:{far}")
        self.link.wait_for("127.0.0.1")
        fleet = self.folder / "crazyflies.yaml"
        fleet.write_text(FLEET.format(robots=ROBOT.format(name="cf1", uri=f"prrt://127.0.0.1:{near}")), encoding="utf-8")
        self.ground = self.node_program("bridge", domain_id=self.domain, robots_file=fleet)
        self.ground.wait_for("bridge is up")
        self.pilot = Pilot(self.peer(self.domain, "pilot"))
        wait_until(lambda: self.pilot.got["pose"], 30, what="the first pose")
        self.pilot.call("takeoff", Takeoff, height=0.5, duration=Duration(sec=1))
        wait_until(lambda: abs(self.pilot.place[2] - 0.5) < 0.1, what="the take-off")
        if low_level:
            self.publisher = self.pilot.node.create_publisher(Hover, "cf1/cmd_hover", 10)
            self.timer = self.pilot.node.create_timer(0.02, lambda: self.publisher.publish(Hover(z_distance=0.5)))
            time.sleep(1)
        return self.pilot

    def end(self, what: str) -> None:
        """Ends the stream."""
        if what == "publisher":
            self.pilot.node.destroy_timer(self.timer)
        elif what == "network":
            self.link.process.kill()
        else:
            self.ground.process.send_signal(getattr(signal, what))

    def outcome(self, wait_s: float = 4.0) -> dict:
        """The drone's own record some time later. Nothing may have been dangerous."""
        time.sleep(wait_s)
        assert self.sim.stop() == 0
        record = json.loads(self.report.read_text(encoding="utf-8"))
        assert record["would_crash"]["count"] == 0, record["would_crash"]
        return record


@pytest.fixture
def rig(openlink, node_program, peer, tmp_path, domain):
    """One for each test."""
    return Rig(openlink, node_program, peer, tmp_path, domain)


def landed_gently(record: dict) -> None:
    """It came down by a landing that began before the firmware would have acted."""
    assert record["now"]["position_m"][2] < 0.05, record["now"]
    assert record["flight"]["level_outs"] == 0 and record["flight"]["locks"] == 0, record["flight"]
    assert record["flight"]["hardest_touchdown_m_s"] < 0.8, record["flight"]


@pytest.mark.parametrize("what", ["publisher", "network", "SIGINT", "SIGTERM", "SIGKILL"])
def test_a_stream_that_ends_makes_the_drone_land_whatever_ended_it(rig, what):
    rig.fly()
    rig.end(what)
    rig.guard.wait_for("setpoints broke off in flight: landing", 10)
    landed_gently(rig.outcome())


def test_a_publisher_that_hangs_is_one_that_has_gone(rig, tmp_path):
    """Neither its deadline nor its liveliness is waited for: the clock of the setpoints decides."""
    pilot = rig.fly(low_level=False)
    script = Path(__file__).with_name("hover_publisher.py")
    autonomy = Program(tmp_path / "autonomy.log", sys.executable, script, rig.domain, "cf1")
    try:
        wait_until(lambda: abs(pilot.place[2] - 0.7) < 0.05, what="the height it asks for")
        assert "broke off" not in rig.guard.log, rig.guard.log
        autonomy.process.send_signal(signal.SIGSTOP)
        rig.guard.wait_for("setpoints broke off in flight: landing", 10)
        landed_gently(rig.outcome())
    finally:
        autonomy.process.kill()
        autonomy.process.wait()


def test_stop_lets_it_fall_at_once(rig):
    rig.fly("--link-loss", "stop")
    rig.end("network")
    rig.guard.wait_for("setpoints broke off in flight: motors stopped", 10)
    record = rig.outcome(2)
    assert record["now"]["position_m"][2] < 0.05 and record["flight"]["level_outs"] == 0, record
    assert record["flight"]["hardest_touchdown_m_s"] > 1.5, "from half a metre"


def test_hold_holds_and_then_lands(rig):
    rig.fly("--link-loss", "hold", "--hold-ms", 1500)
    rig.end("network")
    rig.guard.wait_for("setpoints broke off in flight: holding position", 10)
    assert "landing" not in rig.guard.log
    rig.guard.wait_for("held position to the limit: landing", 10)
    landed_gently(rig.outcome())


def test_handover_leaves_it_to_the_commander(rig):
    rig.fly("--link-loss", "handover", "--high-level-ms", 0)
    rig.end("network")
    rig.guard.wait_for("left to the high-level commander", 10)
    record = rig.outcome(3)
    assert abs(record["now"]["position_m"][2] - 0.5) < 0.1, record["now"]
    assert record["flight"]["level_outs"] == 0 and record["flight"]["locks"] == 0, record["flight"]


@pytest.mark.parametrize("what", ["network", "SIGKILL"])
def test_high_level_flight_without_a_client_lands_at_its_limit(rig, what):
    rig.fly("--high-level-ms", 1000, low_level=False)
    rig.end(what)
    rig.guard.wait_for("no client came back during high-level flight: landing", 15)
    landed_gently(rig.outcome())


def test_a_client_that_comes_back_in_time_finds_the_drone_flying(rig):
    pilot = rig.fly("--high-level-ms", 20000, low_level=False)
    rig.link.process.send_signal(signal.SIGSTOP)
    rig.guard.wait_for("client side down", 10)
    rig.link.process.send_signal(signal.SIGCONT)
    wait_until(lambda: rig.guard.log.count("client side up") > 1, 15, what="the client's return")
    seen = len(pilot.got["pose"])
    wait_until(lambda: len(pilot.got["pose"]) > seen + 10, 20, what="telemetry again")
    assert abs(pilot.place[2] - 0.5) < 0.1
    pilot.land()
    landed_gently(rig.outcome(0.5))


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_the_bridge_beside_the_drone_lands_it_before_it_ends(rig, number):
    rig.fly()
    assert rig.guard.stop(getattr(signal, number)) == 0
    assert "the bridge ends during flight" in rig.guard.log
    landed_gently(rig.outcome())


def test_without_the_bridge_beside_it_the_firmware_levels_out_and_locks(rig):
    """Nobody is left to act: that is what the watchdog below is for."""
    rig.fly()
    rig.guard.process.kill()
    record = rig.outcome(5)
    assert record["flight"]["level_outs"] == 1 and record["flight"]["locks"] == 1, record["flight"]


def test_the_watchdog_stops_the_motors_when_the_bridge_beside_the_drone_dies(rig):
    rig.fly("--watchdog")
    rig.guard.process.kill()
    record = rig.outcome(3)
    assert record["commands"]["watchdog_feeds"] > 3
    assert record["now"]["position_m"][2] < 0.05 and record["flight"]["locks"] == 1, record
