"""aiocflib, an implementation of CRTP independent of cflib, through a bridge to the simulated drone.

It knows radio and USB only, so that the test brings its UDP driver along.
"""

import contextlib
from urllib.parse import urlparse

import anyio
from aiocflib.crazyflie import Crazyflie
from aiocflib.crtp.crtpstack import CRTPPacket
from aiocflib.crtp.drivers.base import CRTPDriver
from aiocflib.crtp.drivers.registry import register
from aiocflib.utils.concurrency import ObservableValue
from conftest import PATIENCE_S, Process, answers_scan, free_udp_port, wait_until
from test_links import summary
from test_simulator import HEIGHT_M, check_flight


@register('udp')
class UdpDriver(CRTPDriver):
    """One packet a datagram."""

    is_safe = True
    link_quality = ObservableValue.constant(1.0)
    name = 'UDP'

    @contextlib.asynccontextmanager
    async def _connected_to(self, uri):
        where = urlparse(uri)
        async with await anyio.create_connected_udp_socket(where.hostname, where.port) as self._socket:
            yield self

    async def receive_packet(self):
        return CRTPPacket.from_bytes(await self._socket.receive())

    async def send_packet(self, packet):
        await self._socket.send(bytes(packet.to_bytes()))


class Height:
    """The newest height in the log."""

    def __init__(self):
        self.value = None

    def handle(self, message):
        self.value = message.items[0]

    async def until(self, done):
        while self.value is None or not done(self.value):
            await anyio.sleep(0.01)


async def fly(uri):
    with anyio.fail_after(PATIENCE_S):
        async with Crazyflie(uri) as drone:
            assert await drone.platform.get_protocol_version() == 12
            await drone.parameters.validate()
            await drone.parameters.set('stabilizer.estimator', 1)
            assert await drone.parameters.get('stabilizer.estimator', fetch=True) == 1
            await drone.log.validate()
            height, session = Height(), drone.log.create_session()
            session.create_block('stateEstimate.z', frequency=50, handler=height.handle)
            async with session, anyio.create_task_group() as tasks:
                tasks.start_soon(session.process_messages)
                await drone.high_level_commander.takeoff(HEIGHT_M, duration=1.5)
                await height.until(lambda value: value > HEIGHT_M - 0.05)
                await drone.high_level_commander.land(0.0, duration=1.5)
                await height.until(lambda value: value <= 0)
                tasks.cancel_scope.cancel()


def test_connects_sets_a_parameter_logs_and_flies(start_drone):
    drone, port = start_drone(), free_udp_port()
    bridge = Process('bridge', '--from', f'udp://127.0.0.1:{port}', '--to', f'uart://{drone.tty}', '--json')
    try:
        wait_until(lambda: answers_scan(bridge, port), 'the bridge to listen')
        anyio.run(fly, f'udp://127.0.0.1:{port}')
        result = summary(bridge)
    finally:
        bridge.kill()
    assert (result['uplink']['refused'], result['client']['strangers']) == (0, 0)
    check_flight(drone.report())
