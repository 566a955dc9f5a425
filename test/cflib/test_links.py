"""Unmodified cflib over the other links: `tcp://` (CPX over TCP), and a drone of 2020 that speaks syslink."""

import contextlib
import json
import socket

import pytest
from conftest import Process, answers_scan, free_udp_port, wait_until
from test_simulator import check_flight, fly


@pytest.fixture
def start_bridge():
    """Starts `openlink bridge`; each has to end well."""
    with contextlib.ExitStack() as stack:

        def start(client, drone):
            process = Process('bridge', '--from', client, '--to', drone, '--json')
            stack.callback(process.kill)
            return process

        yield start


def free_tcp_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def listens(process, port):
    """Whether somebody takes calls on TCP `port`; a call that says nothing is no client."""
    assert process.popen.poll() is None, process.popen.stdout.read()
    try:
        socket.create_connection(('127.0.0.1', port), timeout=1).close()
        return True
    except OSError:
        return False


def summary(process):
    lines = process.finish().splitlines()
    return json.loads(next(line for line in lines if line.startswith('{')))


def test_tcp_server_takes_cflib_for_what_it_is(start_drone, start_bridge, connect):
    drone, port = start_drone(), free_tcp_port()
    bridge = start_bridge(f'tcp://127.0.0.1:{port}', f'uart://{drone.tty}')
    wait_until(lambda: listens(bridge, port), 'the bridge to listen')
    client = connect(f'tcp://127.0.0.1:{port}')
    assert client.platform.get_protocol_version() == 12
    fly(client)
    client.close_link()
    assert summary(bridge)['uplink']['refused'] == 0
    check_flight(drone.report())


def test_tcp_client_calls_a_deck(start_drone, start_bridge, connect):
    drone, port, udp = start_drone(), free_tcp_port(), free_udp_port()
    deck = start_bridge(f'tcp://127.0.0.1:{port}', f'uart://{drone.tty}')
    ground = start_bridge(f'udp://127.0.0.1:{udp}', f'tcp://127.0.0.1:{port}')
    wait_until(lambda: answers_scan(ground, udp), 'the bridge to listen')
    client = connect(f'udp://127.0.0.1:{udp}')
    assert client.platform.get_protocol_version() == 12
    client.close_link()
    assert summary(ground)['drone']['bad_frames'] == 0
    assert summary(deck)['drone']['bad_frames'] == 0
    assert drone.report()['would_crash']['count'] == 0


def test_a_drone_of_2020_flies_over_syslink(start_drone, start_bridge, connect):
    drone, udp = start_drone('--framing', 'syslink'), free_udp_port()
    bridge = start_bridge(f'udp://127.0.0.1:{udp}', f'uart://{drone.tty}?framing=syslink')
    wait_until(lambda: answers_scan(bridge, udp), 'the bridge to listen')
    client = connect(f'udp://127.0.0.1:{udp}')
    fly(client)
    client.close_link()
    result = summary(bridge)
    assert (result['downlink']['null'], result['drone']['bad_frames']) == (0, 0)
    report = drone.report()
    check_flight(report)
    # The downlink is asked for packet by packet.
    assert report['traffic']['nulls'] > 1000


def test_a_script_that_is_started_again_at_once_is_served(start_drone, start_bridge, connect):
    """The former run keeps the seat until it is silent; the new one's first request is kept, not lost."""
    drone, udp = start_drone(), free_udp_port()
    bridge = start_bridge(f'udp://127.0.0.1:{udp}', f'uart://{drone.tty}')
    wait_until(lambda: answers_scan(bridge, udp), 'the bridge to listen')
    for _ in range(3):
        connect(f'udp://127.0.0.1:{udp}').close_link()
    assert bridge.finish().count('client side up') == 3
    assert drone.report()['would_crash']['count'] == 0


def test_two_clients_on_consecutive_ports(start_drone, start_bridge, connect, tmp_path):
    drone = start_drone()
    udp = next(port for port in range(21000, 22000, 2) if both_free(port))
    bridge = start_bridge(f'udp://127.0.0.1:{udp}?listen=1&clients=2', f'uart://{drone.tty}')
    wait_until(lambda: answers_scan(bridge, udp), 'the bridge to listen')
    clients = [connect(f'udp://127.0.0.1:{port}', tmp_path / str(port)) for port in (udp, udp + 1)]
    for client in clients:
        assert client.platform.get_protocol_version() == 12
        client.close_link()
    assert summary(bridge)['uplink']['refused'] == 0
    drone.report()


def both_free(port):
    """Whether nobody listens on this UDP port and the next."""
    with contextlib.ExitStack() as stack:
        try:
            for step in range(2):
                probe = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                probe.bind(('127.0.0.1', port + step))
        except OSError:
            return False
    return True
