#!/usr/bin/env python3
"""Many drones on one ROS bridge: its CPU and the age of setpoints at the drones, for 1 to 50 of them. `out/bench/fleet.json`.

Every drone is a simulated one in a process of its own that records what arrives, with 100 setpoints and 100 poses a second. The age runs from
the publisher's call in another process to the drone's receiver, over DDS, the bridge and UDP. Drones and load need CPU as well: what is
told of the bridge is its own share.
"""
from __future__ import annotations

import argparse
import csv
import io
import json
import os
import platform
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stage import Stage, StageError

ROOT = Path(__file__).resolve().parent.parent
INSTALL = Path(os.environ["OPENLINK_INSTALL"])
OPENLINK, BRIDGE = INSTALL / "bin/openlink", INSTALL / "lib/crazyflie_openlink/bridge"
PYTHON = os.environ["OPENLINK_ROS_PYTHON"]
WRAP_S = 64.0
DOMAIN = 77
POSITION = "7c07"


def free_ports(count: int) -> list[int]:
    """UDP ports nobody uses now, below those that the kernel gives to sockets without one of their own."""
    found = []
    for port in range(21_000, 32_000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise StageError(f"only {len(found)} UDP ports are free, {count} are needed")


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, s."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def arrivals(record: Path) -> list[tuple[int, float]]:
    """When each position setpoint reached a drone, ns, and how old it was, s."""
    text = subprocess.run([OPENLINK, "trace", "export", "--to", "csv", record], check=True, capture_output=True, text=True).stdout
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        if row["direction"] == "up" and row["data"].startswith(POSITION):
            sent, = struct.unpack("<f", bytes.fromhex(row["data"][4:12]))
            at = int(row["mono_ns"])
            found.append((at, (at / 1e9 - sent + WRAP_S / 2) % WRAP_S - WRAP_S / 2))
    return found


def quantile(values: list[float], q: float) -> float:
    """The smallest value that a share `q` does not exceed."""
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)]


def fleet_file(ports: list[int]) -> str:
    """A fleet of these drones, each with 100 poses a second."""
    robots = "".join(f"  cf{k}: {{enabled: true, uri: 'udp://127.0.0.1:{port}', type: cf21}}\n" for k, port in enumerate(ports, 1))
    return ("fileversion: 3\nrobots:\n" + robots + "robot_types: {cf21: {}}\nall:\n  firmware_logging:\n    enabled: true\n"
            "    default_topics:\n      pose: {frequency: 100}\n")


def cell(folder: Path, count: int, seconds: float, silent: bool) -> dict:
    """One bridge with so many drones; with `silent` one of them stops half-way."""
    (folder / "logs").mkdir()
    stage = Stage(folder)
    try:
        ports = free_ports(count)
        drones = [stage.start(f"drone{k}", OPENLINK, "sim", "--udp", f"127.0.0.1:{port}", "--record", folder / f"{k}.mcap")
                  for k, port in enumerate(ports, 1)]
        for k in range(1, count + 1):
            stage.wait_for(f"drone{k}", "simulated drone", 20)
        fleet = folder / "crazyflies.yaml"
        fleet.write_text(fleet_file(ports), encoding="utf-8")
        bridge = stage.start("bridge", BRIDGE, "--ros-args", "-p", f"domain_id:={DOMAIN}", "-p", f"robots_file:={fleet}")
        end = time.monotonic() + 60
        while stage.log("bridge").read_text(encoding="utf-8").count("connected, protocol") < count:
            stage.check_alive()
            if time.monotonic() > end:
                raise StageError(f"not every drone was connected within 60 s; {stage.tail('bridge')}")
            time.sleep(0.2)
        load = subprocess.Popen([PYTHON, ROOT / "scripts/fleet_load.py", "--robots", str(count), "--domain", str(DOMAIN),
                                 "--seconds", str(seconds)], stdout=subprocess.PIPE, text=True)
        time.sleep(2)
        before, begun = cpu_s(bridge.pid), time.monotonic()
        time.sleep(seconds / 2)
        if silent:
            drones[-1].send_signal(signal.SIGSTOP)
        cut = time.monotonic_ns()
        time.sleep(seconds / 2 - 2)
        share = (cpu_s(bridge.pid) - before) / (time.monotonic() - begun)
        told = json.loads(load.communicate(timeout=60)[0])
        if silent:
            drones[-1].send_signal(signal.SIGCONT)
    finally:
        stage.close()
    got = [arrivals(folder / f"{k}.mcap") for k in range(1, count + 1 - silent)]
    # The first second is discovery's.
    since = told["start_ns"] + 1_000_000_000
    ages = [age for drone in got for at, age in drone if at >= since]
    row = {"drones": count, "silent": int(silent), "cpu_share": share, "setpoints": told["turns"] * len(got), "turns_late": told["late"],
           "arrived": sum(len(drone) for drone in got), "poses_hz": told["poses"] / told["seconds"],
           "age_ms": {name: 1e3 * quantile(ages, q) for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))},
           "age_samples": len(ages)}
    if silent:
        last = told["start_ns"] + int(told["seconds"] * 1e9)
        rates = [(sum(since <= at < cut for at, _ in drone) / (cut - since), sum(cut <= at < last for at, _ in drone) / (last - cut))
                 for drone in got]
        row["rate_after_over_before"] = {"lowest": min(after / before for before, after in rates),
                                         "median": statistics.median(after / before for before, after in rates)}
    return row


def main() -> int:
    """Measures each number of drones and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--drones", type=int, nargs="+", default=[1, 5, 10, 25, 50])
    parser.add_argument("--seconds", type=float, default=15.0, help="load for each number of drones, at least 6")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench")
    args = parser.parse_args()
    if args.seconds < 6 or min(args.drones) < 1:
        parser.error("--seconds must be at least 6 and --drones at least 1")
    rows = []
    print(f"{'drones':>6} {'bridge CPU':>11} {'us/message':>11} {'age p50':>8} {'p90':>7} {'p99':>7} ms {'arrived':>9} {'poses Hz':>9}")
    for count, silent in [*((count, False) for count in args.drones), (10, True)]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = cell(Path(folder), count, args.seconds, silent)
            except StageError as error:
                print(f"{count} drones: {error}", file=sys.stderr)
                return 1
        rows.append(row)
        age = row["age_ms"]
        cost = row["cpu_share"] * 1e6 / (200 * count)
        print(f"{count:>6} {row['cpu_share']:>10.0%} {cost:>11.1f} {age['p50']:>8.2f} {age['p90']:>7.2f} {age['p99']:>7.2f}    "
              f"{row['arrived'] / row['setpoints']:>8.1%} {row['poses_hz']:>9.1f}", flush=True)
        if silent:
            rate = row["rate_after_over_before"]
            print(f"       one of 10 fell silent half-way: the others' rate of setpoints after over before: median {rate['median']:.3f}, "
                  f"lowest {rate['lowest']:.3f} (aim: at least 0.9)")
    args.out.mkdir(parents=True, exist_ok=True)
    host = {"machine": platform.machine(), "kernel": platform.release(), "cpus": os.cpu_count()}
    (args.out / "fleet.json").write_text(json.dumps({"schema": 1, "host": host, "command": " ".join(sys.argv), "rows": rows}, indent=1),
                                         encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
