"""Literals that both halves of the test spell out on their own; `src/bin/interop_echo/known.rs` has the same."""
from __future__ import annotations

import sys

from builtin_interfaces.msg import Time
from crazyflie_openlink.msg import (
    ConnectionStatistics, ConnectionStatisticsArray, CrtpPacket, FullState, LogBlock, RttProbe)
from geometry_msgs.msg import Point, Pose, Quaternion, Twist, Vector3
from std_msgs.msg import Header
from test_msgs.msg import BasicTypes, BoundedSequences, Nested, Strings, UnboundedSequences, WStrings

INT64_MIN, INT64_MAX, UINT64_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
HEADER = Header(stamp=Time(sec=-7, nanosec=999_999_999), frame_id="wörld")
BASIC = BasicTypes(
    bool_value=True, byte_value=bytes([50]), char_value=100, float32_value=1.125, float64_value=1.125, int8_value=-50,
    uint8_value=200, int16_value=-1000, uint16_value=2000, int32_value=-30000, uint32_value=60000,
    int64_value=-40000000, uint64_value=50000000)


def statistics(uri: str, sent: int) -> ConnectionStatistics:
    """One drone's counters."""
    return ConnectionStatistics(uri=uri, sent_count=sent, sent_ping_count=2, receive_count=3, enqueued_count=4,
                                ack_count=5)


MESSAGES = [
    CrtpPacket(header=HEADER, port=3, channel=1, data=list(range(30))),
    FullState(
        header=HEADER,
        pose=Pose(position=Point(x=1.5, y=-2.5, z=0.25), orientation=Quaternion(x=0.5, y=-0.5, z=0.5, w=-0.5)),
        twist=Twist(linear=Vector3(x=1.0, y=2.0, z=3.0), angular=Vector3(x=-1.0, y=-2.0, z=-3.0)),
        acc=Vector3(x=sys.float_info.min, y=sys.float_info.max, z=float("-inf"))),
    LogBlock(topic_name="state", frequency=-100, variables=["", "stateEstimate.x", "ψ"]),
    RttProbe(run_id=UINT64_MAX, sequence=(1 << 53) + 1, intended_ns=INT64_MIN, sent_ns=-1, relay_received_ns=0,
             relay_sent_ns=INT64_MAX, data=[index % 256 for index in range(1000)]),
    ConnectionStatisticsArray(header=HEADER, stats=[statistics("radio://0/80/2M", 1), statistics("", UINT64_MAX)]),
    BASIC,
    Nested(basic_types_value=BASIC),
    Strings(string_value="Hello world!", bounded_string_value="exactly 22 characters."),
    WStrings(wstring_value="\U0001F681 ψ", array_of_wstrings=["a", "", "ハ"], bounded_sequence_of_wstrings=["x", "ö"],
             unbounded_sequence_of_wstrings=["1", "22", "333"]),
    BoundedSequences(bool_values=[True, False, True], float64_values=[1.0], string_values=["one", "two"],
                     alignment_check=-3),
    UnboundedSequences(bool_values=[True] * 5, char_values=list(b"text"), int64_values=[INT64_MIN, 0, INT64_MAX],
                       string_values=["one", ""], basic_types_values=[BASIC, BasicTypes()], alignment_check=4),
]
