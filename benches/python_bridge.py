#!/usr/bin/env python3
"""A straightforward bridge between a UART and UDP in Python, as a peer in benchmarks.

It does what the usual scripts do: pyserial, a reader thread per direction, frames taken apart field by field,
credit kept by a semaphore. `--serve` opens a pseudo-terminal and speaks the drone's part on it; without it the
given port is opened and the host's part is spoken.
"""
from __future__ import annotations

import argparse
import os
import pty
import signal
import socket
import threading
import tty

import serial

START = 0xFF
CRTP = 3


class Port:
    """CPX frames over a byte stream, with one frame of credit."""

    def __init__(self, read, write, host: bool):
        self.read, self.write, self.host = read, write, host
        self.credit = threading.Semaphore(0)
        self.heard = threading.Event()

    def receive(self) -> bytes:
        """The next CRTP packet; tokens are handled on the way."""
        while True:
            if self.read(1)[0] != START:
                continue
            length = self.read(1)[0]
            self.heard.set()
            if length == 0:
                self.credit.release()
                continue
            body = self.read(length)
            check = self.read(1)[0]
            expected = START ^ length
            for byte in body:
                expected ^= byte
            if check != expected:
                continue
            self.write(bytes([START, 0]))
            if body[1] & 0x3F == CRTP:
                return body[2:]

    def send(self, packet: bytes, function: int = CRTP) -> None:
        """Writes a packet once the peer is ready."""
        self.credit.acquire()
        header = bytes([0x19 if self.host else 0x0B, function])
        frame = bytes([START, len(packet) + 2]) + header + packet
        check = 0
        for byte in frame:
            check ^= byte
        self.write(frame + bytes([check]))


def open_port(path: str, serve: bool) -> Port:
    """The port, in the role that is wanted."""
    if not serve:
        device = serial.Serial(path, 576000)
        port = Port(device.read, device.write, host=True)
        # Opening the port empties it; the drone offers its token until it hears one, so the host listens first.
        while device.read(1)[0] != START or device.read(1)[0] != 0:
            pass
        port.credit.release()
        port.write(bytes([START, 0]))
        return port
    master, slave = pty.openpty()
    tty.setraw(slave)
    if os.path.islink(path):
        os.unlink(path)
    os.symlink(os.ttyname(slave), path)

    def read(count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += os.read(master, count - len(data))
        return data
    port = Port(read, lambda data: os.write(master, data), host=False)
    threading.Thread(target=offer, args=(port,), daemon=True).start()
    return port


def offer(port: Port) -> None:
    """Offers a token as the drone does, until the host has sent something."""
    while not port.heard.wait(0.1):
        port.write(bytes([START, 0]))


def main() -> None:
    """Bridges until a signal comes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path")
    parser.add_argument("--serve", action="store_true", help="be the drone on a pseudo-terminal")
    parser.add_argument("--local", type=int, required=True, help="UDP port here")
    parser.add_argument("--remote", type=int, required=True, help="UDP port of the other bridge")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", args.local))
    port = open_port(args.path, args.serve)

    def from_network() -> None:
        while True:
            port.send(udp.recv(64))
    threading.Thread(target=from_network, daemon=True).start()
    if not args.serve:
        for message in (b"\x21\x01", b"\x20\x01"):
            threading.Thread(target=port.send, args=(message, 1), daemon=True).start()
    while True:
        udp.sendto(port.receive(), ("127.0.0.1", args.remote))


if __name__ == "__main__":
    main()
