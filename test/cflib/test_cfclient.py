"""Bitcraze's graphical client, unmodified: it finds the bridge by its scan, connects, and flies by its own buttons.

It runs in the Python that OPENLINK_CFCLIENT_PYTHON names, without a display.
"""

import json
import os
import subprocess

import pytest

from conftest import PATIENCE_S, Process, answers_scan, wait_until

# cfclient scans ports 19850 to 19859 of one address; an address of its own keeps other tests out of its sight.
SCANNED = '127.0.0.9'


def python():
    """The Python that has cfclient."""
    path = os.environ.get('OPENLINK_CFCLIENT_PYTHON')
    if not path:
        pytest.fail('OPENLINK_CFCLIENT_PYTHON must name a Python that has cfclient')
    return path


def test_cfclient_finds_connects_and_flies(start_drone, tmp_path):
    drone = start_drone('--no-auto-arm')
    uri, picture = f'udp://{SCANNED}:19850', tmp_path / 'window.png'
    bridge = Process('bridge', '--from', uri, '--to', f'uart://{drone.tty}')
    wait_until(lambda: answers_scan(bridge, 19850, SCANNED), 'the bridge to answer the scan')
    session = os.path.join(os.path.dirname(__file__), 'cfclient_session.py')
    done = subprocess.run(
        [python(), session, uri, str(picture)], capture_output=True, text=True, timeout=8 * PATIENCE_S,
        env={**os.environ, 'HOME': str(tmp_path), 'XDG_CONFIG_HOME': str(tmp_path), 'QT_QPA_PLATFORM': 'offscreen',
             'SCAN_ADDRESS': SCANNED})
    said = bridge.finish()
    assert done.returncode == 0, f'{done.stderr}\n{done.stdout}\n{said}'
    assert 'Exception while doing callback' not in done.stderr, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen['dialogs'] == []
    assert uri in seen['scanned']
    assert 3.5 < float(seen['battery']) < 4.3
    assert 'SYSLOAD: Task dump' in seen['console']
    assert (seen['controller_before'], seen['controller_after']) == ('1', '2')
    assert all(motor > 0 for motor in seen['motors'])
    assert seen['after_stop'] == 'Locked-please reboot'
    assert picture.stat().st_size > 10_000

    report = drone.report()
    assert report['would_crash']['count'] == 0, report['would_crash']
    assert report['flight']['flights'] == 1
