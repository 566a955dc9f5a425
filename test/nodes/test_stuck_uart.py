"""A drone whose UART nobody reads any more, while setpoints go on coming."""
import signal
import time

from conftest import wait_until
from crazyflie_openlink.msg import Hover
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.srv import GetParameters
from test_bridge import FLEET, ROBOT, Pilot

DROPS = ("setpoints superseded", "packets expired", "packets dropped, queue full", "packets dropped, not connected", "setpoints refused")


def test_nobody_reads_the_other_end_of_the_uart_for_10_s(openlink, node_program, peer, tmp_path, domain):
    uart, fleet = tmp_path / "uart", tmp_path / "crazyflies.yaml"
    sim = openlink("sim", "--uart", uart)
    sim.wait_for("simulated drone on uart")
    fleet.write_text(FLEET.format(robots=ROBOT.format(name="cf1", uri=f"uart://{uart}")), encoding="utf-8")
    bridge = node_program("bridge", domain_id=domain, robots_file=fleet)
    bridge.wait_for("bridge is up")
    pilot, dropped = Pilot(peer(domain, "pilot")), []

    def note(message):
        for status in message.status:
            if status.name.endswith("cf1"):
                dropped.append(sum(int(float(pair.value)) for pair in status.values if pair.key in DROPS))

    pilot.node.create_subscription(DiagnosticArray, "/diagnostics", note, 10)
    wait_until(lambda: pilot.got["pose"] and dropped, 30, what="the first pose and diagnostics")
    before = dropped[-1]
    publisher = pilot.node.create_publisher(Hover, "cf1/cmd_hover", 10)
    pilot.node.create_timer(0.01, lambda: publisher.publish(Hover(z_distance=0.4)))
    time.sleep(0.5)
    sim.process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(10)
        client = pilot.node.create_client(GetParameters, "/bridge/get_parameters")
        wait_until(client.service_is_ready, what="the parameter service")
        answer = client.call_async(GetParameters.Request(names=["robots_file"]))
        wait_until(answer.done, 5, what="an answer about parameters")
        assert answer.result().values[0].string_value == str(fleet)
        wait_until(lambda: dropped[-1] > before, 10, what="a counted drop")
        begun = time.monotonic()
        assert bridge.stop() == 0, bridge.log
        ended = time.monotonic() - begun
    finally:
        sim.process.send_signal(signal.SIGCONT)
    # Half a second for the last packets, half a second for the goodbye; the rest is the interpreter's and a busy machine's.
    assert ended < 2.0, f"{ended:.2f} s to end"
    print(f"ended after {ended:.2f} s, {dropped[-1] - before} dropped")
