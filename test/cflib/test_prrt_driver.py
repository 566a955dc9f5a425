"""Our `prrt://` driver in the real cflib: through one bridge on the drone to the simulated Crazyflie.

The environment variable OPENLINK_LIBRARY names the built library.
"""

import contextlib
import sys
import threading
import time
from pathlib import Path

import cflib.crtp
import pytest
from conftest import PATIENCE_S, Process, free_udp_port, wait_until
from test_links import summary
from test_simulator import check_flight, fly

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'python'))
import openlink_cflib  # noqa: E402
from openlink_cflib import OpenlinkDriver  # noqa: E402


@pytest.fixture
def registered(monkeypatch):
    """Our driver in cflib for one test."""
    monkeypatch.setattr(cflib.crtp, 'CLASSES', list(cflib.crtp.CLASSES))
    monkeypatch.setattr(cflib.crtp, 'PrrtDriver', cflib.crtp.PrrtDriver)
    openlink_cflib.register()


@pytest.fixture
def start_air():
    """Starts the bridge on the drone; gives it and its URI."""
    with contextlib.ExitStack() as stack:

        def start(drone, uri=None):
            uri = uri or f'prrt://127.0.0.1:{free_udp_port()}'
            process = Process('bridge', '--from', uri, '--to', f'uart://{drone.tty}', '--json')
            stack.callback(process.kill)
            return process, uri

        yield start


def test_registering_works_before_and_after_the_drivers_are_initialised(registered, monkeypatch):
    monkeypatch.setattr(cflib.crtp, 'CLASSES', [])
    cflib.crtp.init_drivers()
    assert cflib.crtp.CLASSES.count(OpenlinkDriver) == 1
    openlink_cflib.register()
    assert cflib.crtp.CLASSES.count(OpenlinkDriver) == 1


def test_flies_over_prrt_and_reports_the_quality(registered, start_drone, start_air, connect):
    drone = start_drone()
    air, uri = start_air(drone)
    client = connect(f'{uri}/30')
    assert client.platform.get_protocol_version() == 12
    qualities = []
    client.link_statistics.link_quality_updated.add_callback(qualities.append)
    fly(client)
    wait_until(lambda: qualities, 'a link quality')
    assert all(0 <= quality <= 100 for quality in qualities) and qualities[-1] > 50
    client.close_link()
    result = summary(air)
    assert (result['uplink']['refused'], result['uplink']['full']) == (0, 0)
    check_flight(drone.report())


def test_a_table_of_real_size_and_every_parameter_of_it(registered, start_drone, start_air, connect):
    drone = start_drone('--log-variables', 380, '--parameters', 245)
    air, uri = start_air(drone)
    client = connect(uri)
    sizes = [sum(len(names) for names in toc.toc.toc.values()) for toc in (client.log, client.param)]
    assert sizes == [380, 245]
    client.close_link()
    summary(air)
    drone.report()


def test_closing_is_noticed_by_the_peer_at_once_and_ends_a_wait(start_drone, start_air):
    drone = start_drone()
    air, uri = start_air(drone)
    driver = OpenlinkDriver()
    driver.connect(uri, None, None)
    got = []
    waiting = threading.Thread(target=lambda: got.append(driver.receive_packet(-1)))
    while driver.receive_packet(0.2) is not None:
        pass
    waiting.start()
    driver.close()
    driver.close()
    waiting.join(PATIENCE_S)
    assert not waiting.is_alive() and got == [None]
    assert driver.receive_packet(0) is None
    # The driver can be used again.
    driver.connect(uri, None, None)
    driver.close()
    assert air.finish().count('client side down: peer lost: ') == 2


def test_nobody_answers_and_wrong_uris_are_told_in_words(registered):
    driver = OpenlinkDriver()
    for uri, word in [('prrt://127.0.0.1', 'host:port'), ('prrt://192.0.2.1:5000', 'insecure'),
                      ('prrt://127.0.0.1:5000/0', 'target delay')]:
        with pytest.raises(ConnectionError, match=word):
            driver.connect(uri, None, None)
    with pytest.raises(ConnectionError, match='nobody answers'):
        driver.connect(f'prrt://127.0.0.1:{free_udp_port()}', None, None)
    with pytest.raises(cflib.crtp.exceptions.WrongUriType):
        driver.connect('udp://127.0.0.1:1', None, None)


def test_a_bridge_that_dies_is_a_link_error_and_one_that_comes_back_in_time_is_none(start_drone, start_air):
    drone = start_drone()
    air, uri = start_air(drone)
    driver, errors = OpenlinkDriver(), []
    driver.connect(uri, None, errors.append)
    air.finish()
    air, _ = start_air(drone, uri)
    echo = cflib.crtp.crtpstack.CRTPPacket(0xfc, [1, 2, 3])
    end = time.monotonic() + PATIENCE_S
    while True:
        driver.send_packet(echo)
        packet = driver.receive_packet(0.1)
        if packet is not None and packet.get_header() & 0xf3 == 0xf0:
            break
        assert time.monotonic() < end and not errors
    air.kill()
    wait_until(lambda: errors, 'a link error')
    assert uri in errors[0]
    driver.close()
