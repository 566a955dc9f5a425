"""Fixtures for tests with the real cflib: a simulated drone in a process of its own, and a connected client.

The environment variable OPENLINK_BIN names the built `openlink`. All waits are bounded and generous: they end
as soon as the awaited thing happens.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

PATIENCE_S = 60


def openlink():
    """Path of the `openlink` under test."""
    path = os.environ.get('OPENLINK_BIN')
    if not path:
        pytest.fail('OPENLINK_BIN must name the built openlink')
    return path


def wait_until(condition, what, patience_s=PATIENCE_S):
    """Returns as soon as `condition()` is true, and fails the test naming `what` when it stays false."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f'waited {patience_s} s for {what}'
        time.sleep(0.02)


def free_udp_port():
    """A UDP port nobody listens on right now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def answers_scan(process, port, host='127.0.0.1'):
    """Whether somebody answers the scan byte of cflib on UDP `port` of `host`; fails when `process` has ended."""
    assert process.popen.poll() is None, process.popen.stdout.read()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as scan:
        scan.settimeout(0.5)
        scan.connect((host, port))
        try:
            scan.send(b'\xff')
            return scan.recv(64) == b'\xff'
        except OSError:
            return False


class Process:
    """An `openlink` subcommand that is ended with SIGTERM and has to end well."""

    def __init__(self, *arguments):
        self.popen = subprocess.Popen([openlink(), *map(str, arguments)], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self):
        """Ends the process; its output."""
        self.popen.send_signal(signal.SIGTERM)
        output, _ = self.popen.communicate(timeout=PATIENCE_S)
        assert self.popen.returncode == 0, output
        return output

    def kill(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.communicate()


class SimulatedDrone:
    """`openlink sim` on UDP and a pseudo-terminal; `report()` ends it and gives its report."""

    def __init__(self, folder, *arguments):
        self.port = free_udp_port()
        self.tty = folder / 'cf'
        self._report = folder / 'report.json'
        self.process = Process('sim', '--uart', self.tty, '--udp', f'127.0.0.1:{self.port}',
                               '--report', self._report, *arguments)
        wait_until(lambda: answers_scan(self.process, self.port), 'the simulated drone to answer')

    @property
    def udp_uri(self):
        return f'udp://127.0.0.1:{self.port}'

    def report(self):
        self.process.finish()
        return json.loads(self._report.read_text())


@pytest.fixture
def start_drone(tmp_path):
    """Starts simulated drones with more arguments of `openlink sim`."""
    drones = []

    def start(*arguments):
        folder = tmp_path / f'drone{len(drones)}'
        folder.mkdir()
        drones.append(SimulatedDrone(folder, *arguments))
        return drones[-1]

    yield start
    for drone in drones:
        drone.process.kill()


@pytest.fixture
def serial_port(monkeypatch):
    """Makes cflib's serial driver find a device that pyserial does not list, as a pseudo-terminal."""
    from cflib.crtp.serialdriver import SerialDriver

    def name(device):
        monkeypatch.setattr(SerialDriver, 'get_devices', lambda _: {'simulated': str(device)})
        return 'serial://simulated'

    return name


@pytest.fixture
def connect(tmp_path):
    """Connects unmodified cflib to a URI, waits for every parameter, and closes the link at the end.

    A serial link has to be closed before its drone ends: cflib's reader does not end with its device.
    """
    import cflib.crtp
    from cflib.crazyflie import Crazyflie

    cflib.crtp.init_drivers(enable_serial_driver=True)
    with contextlib.ExitStack() as links:

        def to(uri, cache=None):
            client = Crazyflie(rw_cache=str(cache or tmp_path / 'cache'))
            done, problems = threading.Event(), []
            client.fully_connected.add_callback(lambda _: done.set())
            client.connection_failed.add_callback(lambda _, text: (problems.append(text), done.set()))
            client.open_link(uri)
            links.callback(client.close_link)
            assert done.wait(PATIENCE_S), f'{uri} is not fully connected after {PATIENCE_S} s'
            assert not problems, problems
            return client

        yield to
