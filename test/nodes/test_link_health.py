"""link_health, the ladder, the gate before arming and the thread settings, with real nodes and a simulated drone."""
import math
import re
import signal

from builtin_interfaces.msg import Duration
from conftest import wait_until
from crazyflie_openlink.msg import LinkHealth
from crazyflie_openlink.srv import Arm, Takeoff
from diagnostic_msgs.msg import DiagnosticArray
from test_bridge import FLEET, ROBOT, Pilot, rig  # noqa: F401


def levels(got):
    """The levels in the order in which they came, repeats left out."""
    seen = [message.level for message in got]
    return [level for number, level in enumerate(seen) if number == 0 or seen[number - 1] != level]


def listen(pilot):
    """What comes on link_health from now on."""
    got = []
    pilot.node.create_subscription(LinkHealth, "cf1/link_health", got.append, 50)
    return got


def test_a_link_is_ok_then_lost_while_the_drone_is_silent_then_ok_again(rig):  # noqa: F811
    pilot = rig.bridge()
    got, words = listen(pilot), []

    def note(message):
        words.extend(pair.value for status in message.status for pair in status.values if pair.key == "link health")

    pilot.node.create_subscription(DiagnosticArray, "/diagnostics", note, 10)
    wait_until(lambda: got and got[-1].level == LinkHealth.OK and got[-1].exchanges >= 20, 30, what="a link that is ok")
    healthy = got[-1]
    assert healthy.success_rate > 0.5 and healthy.round_trips > 0
    assert 0 < healthy.round_trip_min <= healthy.round_trip_p50 <= healthy.round_trip_max
    assert 0 <= healthy.received_age and 0 <= healthy.sent_age
    assert math.isnan(healthy.raw_loss) and math.isnan(healthy.residual_loss), "a plain UDP link knows of no loss"
    losses = healthy.losses
    del got[:]
    rig.sim.process.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: got and got[-1].level == LinkHealth.LOST, 20, what="the loss")
        wait_until(lambda: got[-1].received_age > 1.5, 20, what="an age that grows")
    finally:
        rig.sim.process.send_signal(signal.SIGCONT)
    lost = got[-1]
    assert lost.losses == losses + 1 and lost.worst_miss_streak >= 2 and lost.reason
    assert [level for level in levels(got) if level != LinkHealth.OK] == [LinkHealth.DEGRADED, LinkHealth.FAILING, LinkHealth.LOST]
    wait_until(lambda: any(word.startswith("lost: ") for word in words), what="the loss in the diagnostics")
    wait_until(lambda: got[-1].level == LinkHealth.OK, 30, what="the recovery")
    rig.finish()


def test_a_required_preflight_refuses_until_the_self_test_is_done_and_an_override_is_logged(rig):  # noqa: F811
    pilot = rig.bridge(preflight="require", preflight_profile="ci")
    got = listen(pilot)
    wait_until(lambda: pilot.got["pose"], 30, what="the first pose")
    assert got == [] or got[-1].exchanges < 100
    pilot.call("arm", Arm, arm=True)
    wait_until(lambda: "the self-test of the link is not complete" in rig.program.log, what="the refusal")
    assert "preflight:=warn overrides this" in rig.program.log
    pilot.call("takeoff", Takeoff, height=0.5, duration=Duration(sec=1))
    assert pilot.place[2] < 0.05
    wait_until(lambda: got and got[-1].exchanges == 100 and got[-1].level == LinkHealth.OK, 40, what="the self-test")
    pilot.take_off()
    pilot.land()
    rig.finish()


def test_by_default_what_speaks_against_a_flight_is_one_warning(rig):  # noqa: F811
    pilot = rig.bridge()
    pilot.take_off()
    assert "preflight overridden: " in rig.program.log
    pilot.land()
    rig.finish()


def test_thread_settings_are_read_back(rig):  # noqa: F811
    rig.bridge(**{"threads.policy": "other", "threads.affinity": "0", "threads.timer_slack_us": 1, "threads.lock_memory": True})
    rig.program.wait_for("the links' thread runs as")
    assert re.search(r"runs as other on CPUs 0, timer slack 1000 ns, memory (not )?locked", rig.program.log), rig.program.log
    rig.finish()


def test_a_thread_setting_that_is_refused_is_a_warning_and_with_strict_the_end(node_program, rig, tmp_path, domain):  # noqa: F811
    rig.bridge(**{"threads.affinity": "1000"})
    rig.program.wait_for("threads: ")
    assert "refused" in rig.program.log
    fleet = tmp_path / "crazyflies.yaml"
    rig.finish()
    strict = node_program("bridge", domain_id=domain, robots_file=fleet, **{"threads.affinity": "1000", "threads.strict": True})
    assert strict.wait() != 0
    assert "threads: " in strict.log and "refused" in strict.log


def test_bad_thread_settings_name_parameter_value_and_what_is_allowed(node_program, tmp_path, domain):
    for key, value, words in [("threads.policy", "fifo:100", "fifo:1 to fifo:99"), ("threads.affinity", "x", "a list of CPUs"),
                              ("preflight", "maybe", "require, warn, off")]:
        program = node_program("bridge", domain_id=domain, robots_file=tmp_path / "none.yaml", **{key: value})
        assert program.wait() != 0
        assert key in program.log and value in program.log and words in program.log, program.log


def test_a_link_that_fails_lands_the_drone_where_the_fleet_file_says_so(node_program, peer, rig, tmp_path, domain):  # noqa: F811
    fleet = tmp_path / "crazyflies.yaml"
    robot = ROBOT.format(name="cf1", uri=f"udp://127.0.0.1:{rig.port}") + "    link_health: {on_failing: land}\n"
    fleet.write_text(FLEET.format(robots=robot), encoding="utf-8")
    rig.program = node_program("bridge", domain_id=domain, robots_file=fleet)
    rig.program.wait_for("bridge is up")
    pilot = Pilot(peer(domain, "pilot"))
    got = listen(pilot)
    wait_until(lambda: got and got[-1].level == LinkHealth.OK, 30, what="a link that is ok")
    pilot.take_off()
    rig.sim.process.send_signal(signal.SIGSTOP)
    try:
        rig.program.wait_for("landing because the link is failing")
    finally:
        rig.sim.process.send_signal(signal.SIGCONT)
    wait_until(lambda: pilot.place[2] < 0.05, 30, what="the landing")
    rig.finish()
