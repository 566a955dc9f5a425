"""Flies the simulated drone with the real, unmodified cflib over `udp://` and over `serial://`."""

import threading
import time

import pytest
from cflib.crazyflie.log import LogConfig
from cflib.crazyflie.mem import MemoryElement
from cflib.crazyflie.mem.trajectory_memory import Poly4D
from conftest import PATIENCE_S, wait_until

HEIGHT_M = 0.6


class Log:
    """The newest value of each variable of one log block."""

    def __init__(self, client, *variables):
        self.values, self.count, self.errors = {}, 0, []
        block = LogConfig('test', period_in_ms=50)
        for variable in variables:
            block.add_variable(variable)
        client.log.add_config(block)
        block.data_received_cb.add_callback(self._keep)
        block.error_cb.add_callback(lambda _, text: self.errors.append(text))
        block.start()

    def _keep(self, _stamp, values, _block):
        self.values = values
        self.count += 1

    def wait(self, condition, what):
        wait_until(lambda: self.count > 0 and condition(self.values), what)
        assert not self.errors, self.errors


def fly(client):
    """Takes off, hovers and lands with the high-level commander; the highest point seen in the log."""
    log = Log(client, 'stateEstimate.x', 'stateEstimate.y', 'stateEstimate.z', 'supervisor.info')
    client.high_level_commander.takeoff(HEIGHT_M, 1.5)
    log.wait(lambda v: v['stateEstimate.z'] > HEIGHT_M - 0.05, 'the drone to climb')
    highest = log.values['stateEstimate.z']
    client.high_level_commander.go_to(0.5, 0.0, HEIGHT_M, 0.0, 1.5)
    log.wait(lambda v: v['stateEstimate.x'] > 0.45, 'the drone to go to x = 0.5 m')
    client.high_level_commander.land(0.0, 1.5)
    log.wait(lambda v: v['stateEstimate.z'] <= 0, 'the drone to land')
    return highest


def check_flight(report):
    assert report['would_crash'] == {'count': 0, 'by_reason': {}, 'records': []}
    flight = report['flight']
    assert (flight['flights'], flight['touchdowns'], flight['locks']) == (1, 1, 0)
    assert HEIGHT_M - 0.05 < flight['highest_m'] < HEIGHT_M + 0.2
    assert flight['hardest_touchdown_m_s'] < 0.6


def uri_of(drone, scheme, serial_port):
    return drone.udp_uri if scheme == 'udp' else serial_port(drone.tty)


@pytest.mark.parametrize('scheme', ['udp', 'serial'])
def test_connects_takes_off_logs_and_lands(scheme, start_drone, serial_port, connect):
    drone = start_drone()
    client = connect(uri_of(drone, scheme, serial_port))
    assert client.platform.get_protocol_version() == 12
    assert fly(client) > HEIGHT_M - 0.05
    client.close_link()
    check_flight(drone.report())


def sizes(client):
    return [sum(len(names) for names in toc.toc.values()) for toc in (client.log.toc, client.param.toc)]


def test_tables_of_real_size_are_read_over_serial(start_drone, serial_port, connect):
    drone = start_drone('--log-variables', 380, '--parameters', 245)
    client = connect(serial_port(drone.tty))
    assert sizes(client) == [380, 245]
    client.close_link()
    assert drone.report()['would_crash']['count'] == 0


def test_tables_are_read_once_and_then_cached(start_drone, connect, tmp_path):
    """Over UDP only: cflib waits for a token when it opens a port, and a drone that runs offers none."""
    drone = start_drone('--log-variables', 380, '--parameters', 245)
    for _ in range(2):
        client = connect(drone.udp_uri, tmp_path / 'tables')
        assert sizes(client) == [380, 245]
        client.close_link()
    items = drone.report()['traffic']['by_port']['5']['received']
    assert 380 < items < 400, 'the second connection reads no items'


def test_the_link_statistics_echo_comes_back(start_drone, connect):
    drone = start_drone()
    client = connect(drone.udp_uri)
    latencies = []
    client.link_statistics.latency.latency_updated.add_callback(latencies.append)
    wait_until(lambda: latencies, 'a latency figure')
    assert 0 <= latencies[0] < 1000 * PATIENCE_S
    assert drone.report()['traffic']['by_port']['15']['sent'] > 0


def test_parameters_are_written_read_and_refused(start_drone, connect):
    drone = start_drone()
    client = connect(drone.udp_uri)
    seen = []
    client.param.add_update_callback(group='ring', name='effect', cb=lambda name, value: seen.append(value))
    client.param.set_value('ring.effect', 13)
    wait_until(lambda: '13' in seen, 'the write to be echoed')
    states = []
    client.param.persistent_store('ring.effect', lambda name, ok: states.append(ok))
    wait_until(lambda: states, 'the store to be answered')
    client.param.persistent_get_state('ring.effect', lambda name, state: states.append(state))
    wait_until(lambda: len(states) > 1, 'the state to be answered')
    assert states[0] and states[1].is_stored and states[1].stored_value == 13
    drone.report()


def test_a_brushless_drone_flies_once_it_is_armed(start_drone, connect):
    drone = start_drone('--no-auto-arm')
    client = connect(drone.udp_uri)
    client.high_level_commander.takeoff(HEIGHT_M, 1.0)
    log = Log(client, 'stateEstimate.z', 'supervisor.info')
    log.wait(lambda v: not v['supervisor.info'] & 2, 'a sample of the drone at rest')
    assert log.values['stateEstimate.z'] == 0
    client.supervisor.send_arming_request(True)
    log.wait(lambda v: v['supervisor.info'] & 2, 'the drone to arm')
    assert fly_again(client, log) > HEIGHT_M - 0.05
    check_flight(drone.report())


def fly_again(client, log):
    client.high_level_commander.takeoff(HEIGHT_M, 1.0)
    log.wait(lambda v: v['stateEstimate.z'] > HEIGHT_M - 0.05, 'the drone to climb')
    highest = log.values['stateEstimate.z']
    client.high_level_commander.land(0.0, 1.5)
    log.wait(lambda v: v['stateEstimate.z'] <= 0, 'the drone to land')
    return highest


def test_a_stream_that_breaks_off_levels_out_and_locks(start_drone, connect):
    drone = start_drone()
    client = connect(drone.udp_uri)
    log = Log(client, 'stateEstimate.z', 'supervisor.info')
    end = time.monotonic() + PATIENCE_S
    while not log.values or log.values['stateEstimate.z'] < 0.35:
        client.commander.send_hover_setpoint(0, 0, 0, 0.4)
        time.sleep(0.02)
        assert time.monotonic() < end
    log.wait(lambda v: v['supervisor.info'] & 0x40, 'the drone to lock')
    report = drone.report()
    assert (report['flight']['level_outs'], report['flight']['locks']) == (1, 1)
    lock = [t for t in report['flight']['transitions'] if t['to'] == 'free_fall']
    assert 2000 < lock[0]['setpoint_age_ms'] < 2100
    assert report['would_crash']['count'] == 0


def test_an_uploaded_trajectory_is_flown(start_drone, connect):
    drone = start_drone()
    client = connect(drone.udp_uri)
    memory = client.mem.get_mems(MemoryElement.TYPE_TRAJ)[0]
    zeros = [0.0] * 8
    memory.trajectory = [Poly4D(2.0, Poly4D.Poly([0, 0, 0.6, -0.2, 0, 0, 0, 0]), Poly4D.Poly(zeros),
                                Poly4D.Poly(zeros), Poly4D.Poly(zeros))]
    done = threading.Event()
    memory.write_data(lambda *_: done.set(), write_failed_cb=lambda *_: pytest.fail('upload failed'))
    assert done.wait(PATIENCE_S)
    commander = client.high_level_commander
    commander.define_trajectory(1, 0, 1)
    log = Log(client, 'stateEstimate.x', 'stateEstimate.z')
    commander.takeoff(HEIGHT_M, 1.0)
    log.wait(lambda v: v['stateEstimate.z'] > HEIGHT_M - 0.02, 'the drone to climb')
    commander.start_trajectory(1, 1.0, relative_position=True)
    log.wait(lambda v: v['stateEstimate.x'] > 0.75, 'the trajectory to end')
    commander.land(0.0, 1.0)
    log.wait(lambda v: v['stateEstimate.z'] <= 0, 'the drone to land')
    check_flight(drone.report())
