"""Compares the bytes of our packets with those the real cflib sends for the same calls.

The environment variable OPENLINK_CRTP_VECTORS names the built example `crtp_vectors`, which prints `name hex` lines.
"""

import math
import os
import struct
import subprocess

import pytest
from cflib.crazyflie import Crazyflie
from cflib.crazyflie.log import LogConfig, LogTocElement
from cflib.crazyflie.mem import CHAN_INFO, CMD_INFO_DETAILS, CMD_INFO_NBR, _ReadRequest, _WriteRequest
from cflib.crazyflie.mem.trajectory_memory import CompressedSegment, CompressedStart, Poly4D
from cflib.crazyflie.param import ParamTocElement
from cflib.crazyflie.toc import TocFetcher
from cflib.crtp.crtpstack import CRTPPacket, CRTPPort

SQRT_HALF = math.sqrt(0.5)


class CapturingLink:
    """A link that keeps what it is given, header first."""

    needs_resending = False

    def __init__(self):
        self.sent = []

    def send_packet(self, packet):
        self.sent.append(bytes([packet.get_header()]) + bytes(packet.data))

    def close(self):
        pass


class Memory:
    def __init__(self, ident):
        self.id = ident


class Drone:
    """A Crazyflie object of cflib on a capturing link, as if connected to a drone of one protocol version."""

    def __init__(self, version):
        self.cf = Crazyflie()
        self.cf.link = CapturingLink()
        self.cf.platform._protocolVersion = version

    def add_log_variable(self, ident):
        element = LogTocElement(ident, bytes([7]) + b'g\0v%d\0' % ident)
        self.cf.log.toc.add_element(element)
        return 'g.v%d' % ident

    def log_block(self, idents):
        from cflib.crazyflie.toc import Toc
        self.cf.log.toc = Toc()
        config = LogConfig('block', 100)
        for ident in idents:
            config.add_variable(self.add_log_variable(ident), 'float')
        config.cf, config.id, config.useV2 = self.cf, 1, True
        return config

    def add_param(self, ident, kind, name):
        group, name = name.split('.')
        data = bytes([kind]) + group.encode() + b'\0' + name.encode() + b'\0'
        element = ParamTocElement(ident, data)
        element.mark_persistent()
        self.cf.param.toc.add_element(element)

    def queued_param(self, call):
        """Runs a call that puts its packet on the parameter thread's queue, and takes it from there."""
        queue = []
        self.cf.param.param_updater = type('Queue', (), {
            'request_param_setvalue': staticmethod(queue.append),
            'send_param_misc': staticmethod(queue.append),
        })
        self.cf.param._initialized.set()
        self.cf.param._useV2 = True
        call()
        return self.cf.link.send_packet(queue[0])


def takeoff(drone, **more):
    drone.cf.high_level_commander.takeoff(**more)


def toc_fetcher(drone, port):
    fetcher = TocFetcher(drone.cf, LogTocElement, port, None, None, None)
    fetcher._useV2 = True
    return fetcher


def toc_info(drone, port):
    toc_fetcher(drone, port).start()


def set_param(drone, kind, value):
    drone.add_param(0x26, kind, 'g.p')
    drone.queued_param(lambda: drone.cf.param.set_value('g.p', value))


def param_misc(drone, call):
    drone.add_param(15, 0x18, 'g.p')
    drone.queued_param(lambda: call(drone.cf.param))


def raw(drone, port, channel, data):
    """Packets that cflib builds in the middle of longer procedures."""
    packet = CRTPPacket()
    packet.set_header(port, channel)
    packet.data = data
    drone.cf.send_packet(packet)


def full_state(drone, pos, vel, acc, orientation, rates):
    drone.cf.commander.send_full_state_setpoint(pos, vel, acc, orientation, *rates)


NEW, OLD = 12, 8
MOVING = dict(pos=[1, -2, 0.5], vel=[0.1, 0.2, -0.3], acc=[0, 0, 9.81], rates=[0.1, 0.2, -0.3])
STILL = dict(pos=[0, 0, 1], vel=[0, 0, 0], acc=[0, 0, 0], rates=[0, 0, 0])

# name: (protocol version, call)
CALLS = {
    'rpyt': (NEW, lambda d: d.cf.commander.send_setpoint(10, -5, 20, 30000)),
    'rpyt_zero': (NEW, lambda d: d.cf.commander.send_setpoint(0, 0, 0, 0)),
    'stop': (NEW, lambda d: d.cf.commander.send_stop_setpoint()),
    'velocity_world_8': (OLD, lambda d: d.cf.commander.send_velocity_world_setpoint(0.5, -0.25, 0.1, 30)),
    'velocity_world_9': (NEW, lambda d: d.cf.commander.send_velocity_world_setpoint(0.5, -0.25, 0.1, 30)),
    'z_distance_8': (OLD, lambda d: d.cf.commander.send_zdistance_setpoint(1.5, -2.5, 45, 0.4)),
    'z_distance_9': (NEW, lambda d: d.cf.commander.send_zdistance_setpoint(1.5, -2.5, 45, 0.4)),
    'hover_8': (OLD, lambda d: d.cf.commander.send_hover_setpoint(0.2, -0.1, 15, 0.5)),
    'hover_9': (NEW, lambda d: d.cf.commander.send_hover_setpoint(0.2, -0.1, 15, 0.5)),
    'position': (NEW, lambda d: d.cf.commander.send_position_setpoint(1, 2, 0.5, 90)),
    'manual_angle': (NEW, lambda d: d.cf.commander.send_setpoint_manual(5, -3, 10, 50, False)),
    'manual_rate': (NEW, lambda d: d.cf.commander.send_setpoint_manual(100, -50, 10, 50, True)),
    'notify_stop': (NEW, lambda d: d.cf.commander.send_notify_setpoint_stop()),
    'notify_stop_500': (NEW, lambda d: d.cf.commander.send_notify_setpoint_stop(500)),
    'full_state': (NEW, lambda d: full_state(d, orientation=[0, 0, 0, 1], **MOVING)),
    'full_state_half': (NEW, lambda d: full_state(d, orientation=[.5, .5, .5, .5], **STILL)),
    'full_state_turned': (NEW, lambda d: full_state(d, orientation=[0, 0, SQRT_HALF, -SQRT_HALF], **STILL)),
    'full_state_odd': (NEW, lambda d: full_state(
        d, orientation=[.1, .2, .3, .9273618], **{**MOVING, 'pos': [0.57, -0.29, 1.005]})),
    'group_mask': (NEW, lambda d: d.cf.high_level_commander.set_group_mask(3)),
    'hl_stop': (NEW, lambda d: d.cf.high_level_commander.stop()),
    'takeoff': (NEW, lambda d: d.cf.high_level_commander.takeoff(0.5, 2.0)),
    'takeoff_current_yaw': (NEW, lambda d: d.cf.high_level_commander.takeoff(1.0, 2.5, yaw=None)),
    'land': (NEW, lambda d: d.cf.high_level_commander.land(0.0, 2.0, yaw=None)),
    'go_to_7': (7, lambda d: d.cf.high_level_commander.go_to(1, 0, .5, 0, 3)),
    'go_to_8': (8, lambda d: d.cf.high_level_commander.go_to(1, 0, .5, 0, 3)),
    'go_to_all': (NEW, lambda d: d.cf.high_level_commander.go_to(
        1, 0, .5, math.pi / 2, 3, relative=True, linear=True, group_mask=1)),
    'spiral': (NEW, lambda d: d.cf.high_level_commander.spiral(math.pi / 2, .5, 1, .2, 3, clockwise=True)),
    'define_trajectory': (NEW, lambda d: d.cf.high_level_commander.define_trajectory(1, 0, 10)),
    'define_compressed': (NEW, lambda d: d.cf.high_level_commander.define_trajectory(2, 132, 3, type=1)),
    'start_trajectory_9': (9, lambda d: d.cf.high_level_commander.start_trajectory(1, 1.0, True)),
    'start_trajectory_10': (10, lambda d: d.cf.high_level_commander.start_trajectory(1, 1.0, True)),
    'ext_position': (NEW, lambda d: d.cf.loc.send_extpos([1, 2, 3])),
    'ext_pose': (NEW, lambda d: d.cf.loc.send_extpose([1, 2, 3], [0, 0, 0, 1])),
    'lpp_short': (NEW, lambda d: d.cf.loc.send_short_lpp_packet(5, bytes([1, 2]))),
    'emergency_stop_11': (11, lambda d: d.cf.loc.send_emergency_stop()),
    'watchdog_11': (11, lambda d: d.cf.loc.send_emergency_stop_watchdog()),
    'lighthouse_persist': (NEW, lambda d: d.cf.loc.send_lh_persist_data_packet([0, 1], [0])),
    'log_create': (NEW, lambda d: d.log_block([0x2f, 0x30, 0x31, 0x4e, 0x81]).create()),
    'log_start': (NEW, lambda d: started(d.log_block([]))),
    'log_stop': (NEW, lambda d: d.log_block([]).stop()),
    'log_delete': (NEW, lambda d: d.log_block([]).delete()),
    'log_toc_info': (NEW, lambda d: toc_info(d, CRTPPort.LOGGING)),
    'param_toc_info': (NEW, lambda d: toc_info(d, CRTPPort.PARAM)),
    'log_toc_item': (NEW, lambda d: toc_fetcher(d, CRTPPort.LOGGING)._request_toc_element(0)),
    'param_toc_item': (NEW, lambda d: toc_fetcher(d, CRTPPort.PARAM)._request_toc_element(0)),
    'param_write_u8': (NEW, lambda d: set_param(d, 0x08, 2)),
    'param_write_f32': (NEW, lambda d: set_param(d, 0x06, 1.5)),
    'param_write_i16': (NEW, lambda d: set_param(d, 0x01, -2)),
    'param_by_name': (NEW, lambda d: d.cf.param.set_value_raw('kalman.initialX', 0x06, 1.5)),
    'param_store': (NEW, lambda d: param_misc(d, lambda p: p.persistent_store('g.p', lambda *_: None))),
    'param_state': (NEW, lambda d: param_misc(d, lambda p: p.persistent_get_state('g.p', lambda *_: None))),
    'param_clear': (NEW, lambda d: param_misc(d, lambda p: p.persistent_clear('g.p', lambda *_: None))),
    'param_default_10': (10, lambda d: param_misc(d, lambda p: p.get_default_value('g.p', lambda *_: None))),
    'param_default_11': (11, lambda d: param_misc(d, lambda p: p.get_default_value('g.p', lambda *_: None))),
    'memory_count': (NEW, lambda d: raw(d, CRTPPort.MEM, CHAN_INFO, (CMD_INFO_NBR,))),
    'memory_details': (NEW, lambda d: raw(d, CRTPPort.MEM, CHAN_INFO, (CMD_INFO_DETAILS, 0))),
    'memory_read': (NEW, lambda d: _ReadRequest(Memory(0), 0, 100, d.cf).start()),
    'memory_write': (NEW, lambda d: _WriteRequest(Memory(1), 0x0102, bytes([1, 2, 3]), d.cf).start()),
    'arm_11': (11, lambda d: d.cf.supervisor.send_arming_request(True)),
    'recover_11': (11, lambda d: d.cf.supervisor.send_crash_recovery_request()),
    'continuous_wave': (NEW, lambda d: d.cf.platform.set_continous_wave(True)),
    'notification': (NEW, lambda d: d.cf.platform.send_user_notification(True)),
    'app': (NEW, lambda d: d.cf.appchannel.send_packet(bytes.fromhex('deadbeef'))),
    'arm': (NEW, lambda d: d.cf.supervisor.send_arming_request(True)),
    'disarm': (NEW, lambda d: d.cf.supervisor.send_arming_request(False)),
    'recover': (NEW, lambda d: d.cf.supervisor.send_crash_recovery_request()),
    'emergency_stop': (NEW, lambda d: d.cf.supervisor.send_emergency_stop()),
    'watchdog': (NEW, lambda d: d.cf.supervisor.send_emergency_stop_watchdog()),
    'supervisor_info': (NEW, lambda d: d.cf.supervisor._fetch_bitfield(timeout=0)),
    'source': (NEW, lambda d: d.cf.platform._request_protocol_version()),
}

# Packets cflib builds only in threads of its own or not at all; their bytes are proven by golden vectors.
NOT_IN_CFLIB = {
    'cppm', 'altitude_hold', 'console', 'ping', 'protocol', 'log_reset', 'param_read', 'param_extended_10',
    'param_extended_11', 'trajectory_piece', 'trajectory_compressed',
}


def started(config):
    config._added = True
    config.start()


@pytest.fixture(scope='module')
def ours():
    program = os.environ['OPENLINK_CRTP_VECTORS']
    lines = subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()
    return {name: bytes.fromhex(data) for name, data in map(str.split, lines)}


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', CALLS)
def test_same_bytes_as_cflib(ours, name):
    version, call = CALLS[name]
    drone = Drone(version)
    call(drone)
    assert [sent.hex() for sent in drone.cf.link.sent] == [ours[name].hex()]


def test_every_vector_is_compared_or_named(ours):
    assert set(ours) == set(CALLS) | NOT_IN_CFLIB


def test_trajectory_memory_is_the_same(ours):
    def axis(first):
        return Poly4D.Poly([first + i for i in range(8)])

    piece = Poly4D(1.75, axis(0.5), axis(-1.5), axis(2.25), axis(0.125))
    assert piece.pack().hex() == ours['trajectory_piece'].hex()
    start = CompressedStart(1.001, -2.5, 0.7, 1.5)
    segment = CompressedSegment(1.5, [], [0.57], [0.1, 0.2, -0.3], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, -0.7])
    assert (start.pack() + segment.pack()).hex() == ours['trajectory_compressed'].hex()


def test_ping_is_the_double_cflib_sends(ours):
    assert ours['ping'] == b'\xfc\x00' + struct.pack('<d', 1764.25)


def test_ten_log_variables_leave_a_stray_byte():
    """The gate has to let this pass: the firmware ignores the byte, cflib sends it."""
    drone = Drone(NEW)
    drone.log_block(range(1, 11)).create()
    sizes = [len(sent) for sent in drone.cf.link.sent]
    assert sizes == [1 + 2 + 27 + 1, 1 + 2 + 3]
