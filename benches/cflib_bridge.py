#!/usr/bin/env python3
"""A bridge between a UART and UDP built from cflib's own serial driver, as a peer in benchmarks.

The driver, its threads and its queues are cflib's, unmodified; this adds the UDP socket and the two loops that any
script would write around them.
"""
from __future__ import annotations

import argparse
import os
import signal
import socket
import threading

import cflib.crtp.serialdriver as serialdriver
from cflib.crtp.crtpstack import CRTPPacket


def main() -> None:
    """Bridges until a signal comes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path")
    parser.add_argument("--local", type=int, required=True, help="UDP port here")
    parser.add_argument("--remote", type=int, required=True, help="UDP port of the other bridge")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", args.local))
    driver = serialdriver.SerialDriver()
    # A pseudo-terminal is not in pyserial's list of ports.
    driver.get_devices = lambda: {"drone": args.path}
    driver.connect("serial://drone", None, print)

    def from_network() -> None:
        while True:
            data = udp.recv(64)
            driver.send_packet(CRTPPacket(data[0], data[1:]))
    threading.Thread(target=from_network, daemon=True).start()
    while True:
        packet = driver.receive_packet(-1)
        udp.sendto(bytes([packet.header]) + bytes(packet.data), ("127.0.0.1", args.remote))


if __name__ == "__main__":
    main()
