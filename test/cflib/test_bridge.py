"""Flies with the real, unmodified cflib through two bridges: UDP, paced transport, UART, simulated drone."""

import contextlib
import json
import time

import pytest
from conftest import PATIENCE_S, Process, answers_scan, free_udp_port, wait_until
from test_simulator import Log, check_flight, fly


class Chain:
    """`openlink bridge` on the ground and on the drone."""

    def __init__(self, drone, stack):
        self.port, paced = free_udp_port(), f'prrt://127.0.0.1:{free_udp_port()}'
        self.ground = self._bridge(stack, f'udp://127.0.0.1:{self.port}', paced)
        self.air = self._bridge(stack, paced, f'uart://{drone.tty}')
        # cflib gives up at once where nobody listens yet.
        wait_until(lambda: answers_scan(self.ground, self.port), 'the bridge on the ground to listen')

    @staticmethod
    def _bridge(stack, client, drone):
        process = Process('bridge', '--from', client, '--to', drone, '--json')
        stack.callback(process.kill)
        return process

    @property
    def uri(self):
        return f'udp://127.0.0.1:{self.port}'

    def finish(self):
        """Ends both; what the one nearest the drone did."""
        return self.finish_both()[1]

    def finish_both(self):
        """Ends both; what the one on the ground and the one nearest the drone did."""
        return tuple(json.loads(next(line for line in bridge.finish().splitlines() if line.startswith('{')))
                     for bridge in (self.ground, self.air))


@pytest.fixture
def start_chain():
    with contextlib.ExitStack() as stack:
        yield lambda drone: Chain(drone, stack)


def test_connects_takes_off_logs_and_lands_through_two_bridges(start_drone, start_chain, connect):
    drone = start_drone()
    chain = start_chain(drone)
    client = connect(chain.uri)
    assert client.platform.get_protocol_version() == 12
    fly(client)
    client.close_link()
    summary = chain.finish()
    assert summary['uplink']['refused'] == 0 and summary['uplink']['full'] == 0
    check_flight(drone.report())


def test_a_table_of_real_size_is_read_through_two_bridges(start_drone, start_chain, connect):
    drone = start_drone('--log-variables', 380, '--parameters', 245)
    chain = start_chain(drone)
    client = connect(chain.uri)
    sizes = [sum(len(names) for names in toc.toc.toc.values()) for toc in (client.log, client.param)]
    assert sizes == [380, 245]
    client.close_link()
    chain.finish()
    drone.report()


def test_low_level_then_high_level_needs_no_notify(start_drone, start_chain, connect):
    drone = start_drone()
    chain = start_chain(drone)
    client = connect(chain.uri)
    log = Log(client, 'stateEstimate.z', 'supervisor.info')
    end = time.monotonic() + PATIENCE_S
    while not log.values or log.values['stateEstimate.z'] < 0.35:
        client.commander.send_hover_setpoint(0, 0, 0, 0.4)
        time.sleep(0.02)
        assert time.monotonic() < end
    client.high_level_commander.land(0.0, 1.5)
    log.wait(lambda values: values['stateEstimate.z'] < 0.02, 'the drone to land')
    client.close_link()
    assert chain.finish()['safety']['high_level_next'] == 1
    report = drone.report()
    assert (report['flight']['level_outs'], report['flight']['locks']) == (0, 0)


def test_a_stream_that_breaks_off_is_landed_before_the_firmware_acts(start_drone, start_chain, connect):
    drone = start_drone()
    chain = start_chain(drone)
    client = connect(chain.uri)
    log = Log(client, 'stateEstimate.z', 'supervisor.info')
    end = time.monotonic() + PATIENCE_S
    while not log.values or log.values['stateEstimate.z'] < 0.35:
        client.commander.send_hover_setpoint(0, 0, 0, 0.4)
        time.sleep(0.02)
        assert time.monotonic() < end
    log.wait(lambda values: values['stateEstimate.z'] < 0.02, 'the drone to land by itself')
    client.close_link()
    assert chain.finish()['safety']['link_loss'] == 1
    report = drone.report()
    assert (report['flight']['level_outs'], report['flight']['locks']) == (0, 0)


def test_setpoints_beyond_a_slow_uart_are_superseded_where_they_are_born(start_drone, start_chain, connect):
    """A drone that takes 20 ms for each frame: 50 packets a second fit, 200 setpoints a second are sent."""
    drone = start_drone('--frame-time', 20)
    chain = start_chain(drone)
    client = connect(chain.uri)
    client.commander.send_setpoint(0, 0, 0, 0)
    for number in range(1200):
        client.commander.send_position_setpoint(0.0, 0.0, 0.3 + number / 12000, 0.0)
        time.sleep(0.005)
    # What a queue would still hold back is what the parameter waits for: at 20 ms a packet, a hundred are 2 s.
    asked = time.monotonic()
    client.param.set_value('ring.effect', 9)
    wait_until(lambda: client.param.get_value('ring.effect') == '9', 'the parameter')
    waited = time.monotonic() - asked
    client.close_link()
    ground, air = chain.finish_both()
    born, beside = (bridge['drone']['superseded'] + bridge['drone']['expired'] + bridge['uplink']['superseded']
                    + bridge['uplink']['expired'] for bridge in (ground, air))
    assert born > 500 and beside < born / 10, (ground, air)
    assert ground['uplink']['full'] == 0 and air['uplink']['full'] == 0, (ground, air)
    assert waited < 1.5, waited
