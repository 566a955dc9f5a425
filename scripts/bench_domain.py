#!/usr/bin/env python3
"""Measures the domain bridge: what a second domain costs a round trip, and what many routes cost the host.

`ratios` runs the prober and the relay in one domain and, through the bridge, in two, in turns and for each payload;
every turn is a new set of processes. `routes` sends on many topics at once and reads CPU, memory and losses of the
bridge; a second bridge behind it is the reader, and its counters say what arrived. Fast DDS over UDP with 4 MB socket
buffers unless --transport says otherwise. Runs in the ROS environment: `bash scripts/with_ros.sh python3
scripts/bench_domain.py`.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NODES = Path(os.environ.get("OPENLINK_INSTALL", ROOT / "install/kilted")) / "lib/crazyflie_openlink"
UDP = """<?xml version="1.0" encoding="UTF-8" ?>
<dds><profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">
  <transport_descriptors><transport_descriptor>
    <transport_id>udp</transport_id><type>UDPv4</type>
    <sendBufferSize>4194304</sendBufferSize><receiveBufferSize>4194304</receiveBufferSize>
  </transport_descriptor></transport_descriptors>
  <participant profile_name="udp" is_default_profile="true"><rtps>
    <userTransports><transport_id>udp</transport_id></userTransports>
    <useBuiltinTransports>false</useBuiltinTransports>
    <sendSocketBufferSize>4194304</sendSocketBufferSize><listenSocketBufferSize>4194304</listenSocketBufferSize>
  </rtps></participant>
</profiles></dds>
"""
PROBE = "{type: crazyflie_openlink/msg/RttProbe"


class Stage:
    """Processes of one turn; all end with it."""

    def __init__(self, folder: Path, env: dict[str, str]):
        self.folder, self.env, self.running = folder, env, []

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_) -> None:
        for process in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def start(self, name: str, *command: object) -> subprocess.Popen:
        """Starts a process that logs to <name>.log."""
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([str(part) for part in command], env=self.env, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
        self.running.append(process)
        return process

    def node(self, name: str, executable: str, **parameters: object) -> subprocess.Popen:
        """Starts one of our nodes."""
        flags = [part for key, value in parameters.items() for part in ("-p", f"{key}:={value}")]
        return self.start(name, NODES / executable, "--ros-args", *flags)

    def wait_for(self, name: str, text: str, limit_s: float = 60) -> None:
        """Waits until a log has a text."""
        end = time.monotonic() + limit_s
        while text not in self.log(name):
            if time.monotonic() > end or any(process.poll() not in (None, 0) for process in self.running):
                raise SystemExit(f"{name} never said {text!r}:\n{self.log(name)}")
            time.sleep(0.05)

    def log(self, name: str) -> str:
        """What a process printed."""
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")


def environment(transport: str, folder: Path) -> dict[str, str]:
    """The environment that selects a Fast DDS transport."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("FASTDDS_")}
    if transport == "udp":
        profile = folder / "udp.xml"
        profile.write_text(UDP, encoding="utf-8")
        env.update(FASTRTPS_DEFAULT_PROFILES_FILE=str(profile), FASTDDS_DEFAULT_PROFILES_FILE=str(profile))
    elif transport != "default":
        env["FASTDDS_BUILTIN_TRANSPORTS"] = transport
    return env


def one_turn(stage: Stage, path: str, domains: tuple[int, int], size: int, count: int) -> float:
    """Median round trip of one payload, us."""
    near, far = domains if path == "cross" else (domains[0], domains[0])
    stage.node("relay", "relay", domain_id=far)
    if path == "cross":
        rules = stage.folder / "rules.yaml"
        rules.write_text(f"from_domain: {near}\nto_domain: {far}\ntopics:\n  rtt/probe: {PROBE}}}\n"
                         f"  rtt/echo: {PROBE}, reversed: true}}\n", encoding="utf-8")
        stage.node("bridge", "domain_bridge", config=rules, diagnostics="false")
    output = stage.folder / "results.json"
    relay = {"relay_domain_id": far} if path == "cross" else {}
    prober = stage.node("rtt", "rtt", domain_id=near, sizes=f"[{size}]", count=count, output=output, wait_s=60, **relay)
    if prober.wait(600) != 0:
        raise SystemExit(stage.log("rtt"))
    row, = json.loads(output.read_text(encoding="utf-8"))["rows"]
    if row["received"] < count * 0.99:
        print(f"  {path} {size} B: {row['received']} of {row['sent']} came back", flush=True)
    return row["rtt_us"]["p50"]


def ratios(args: argparse.Namespace) -> dict:
    """Cross-domain over same-domain medians, by payload."""
    found: dict[int, dict[str, list[float]]] = {size: {"same": [], "cross": []} for size in args.sizes}
    for turn in range(args.rounds):
        for size in args.sizes:
            for path in ("same", "cross") if turn % 2 == 0 else ("cross", "same"):
                with tempfile.TemporaryDirectory() as folder:
                    with Stage(Path(folder), environment(args.transport, Path(folder))) as stage:
                        found[size][path].append(one_turn(stage, path, tuple(args.domains), size, args.count))
    print(f"\n{'bytes':>9} {'same us':>9} {'cross us':>9} {'ratio':>6}  range of the turns' ratios")
    rows = []
    for size, times in found.items():
        same, cross = statistics.median(times["same"]), statistics.median(times["cross"])
        each = sorted(c / s for s, c in zip(times["same"], times["cross"]))
        print(f"{size:>9} {same:>9.1f} {cross:>9.1f} {cross / same:>6.2f}  {each[0]:.2f} to {each[-1]:.2f}")
        rows.append({"bytes": size, "same_us": times["same"], "cross_us": times["cross"], "ratio": cross / same})
    return {"transport": args.transport, "count": args.count, "rows": rows}


TALKERS = """
import sys, time
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from std_msgs.msg import UInt8MultiArray
from rclpy.serialization import serialize_message
domain, first, count, rate, seconds, size = map(int, sys.argv[1:])
context = Context()
rclpy.init(context=context, domain_id=domain)
node = Node(f"talkers_{first}", context=context)
talkers = [node.create_publisher(UInt8MultiArray, f"bench/t{first + n}", 10) for n in range(count)]
message = serialize_message(UInt8MultiArray(data=bytes(size)))
while any(one.get_subscription_count() == 0 for one in talkers):
    time.sleep(0.1)
time.sleep(3)
start, sent = time.monotonic(), 0
for beat in range(rate * seconds):
    for n, one in enumerate(talkers):
        due = start + (beat + n / count) / rate
        left = due - time.monotonic()
        if left > 0.0005:
            time.sleep(left)
        one.publish(message)
        sent += 1
print(f"sent {sent} in {time.monotonic() - start:.2f} s", flush=True)
time.sleep(3)
"""


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Resident memory of a process now."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def forwarded(log: str) -> int:
    """Messages that a bridge says it forwarded, over all routes."""
    return sum(int(count) for count in re.findall(r"forwarded (\d+)", log))


def many(stage: Stage, args: argparse.Namespace, routes: int) -> dict:
    """One bridge with so many routes, and one behind it that counts."""
    near, middle = args.domains
    far = middle + 1
    topics = "".join(f"  bench/t{n}: {{type: std_msgs/msg/UInt8MultiArray}}\n" for n in range(routes))
    for name, start, end in (("first", near, middle), ("second", middle, far)):
        rules = stage.folder / f"{name}.yaml"
        rules.write_text(f"name: {name}\nfrom_domain: {start}\nto_domain: {end}\ntopics:\n{topics}", encoding="utf-8")
    second = stage.node("second", "domain_bridge", config=stage.folder / "second.yaml", diagnostics="false")
    first = stage.node("first", "domain_bridge", config=stage.folder / "first.yaml", diagnostics="false")
    talkers, each = [], 30
    for begin in range(0, routes, each):
        count = min(each, routes - begin)
        talkers.append(stage.start(f"talkers{begin}", sys.executable, "-c", TALKERS, near, begin, count, args.rate,
                                   args.seconds, args.bytes))
    stage.wait_for("first", "domain bridge is ready")
    stage.wait_for("second", "domain bridge is ready")
    time.sleep(5)
    begin, started = cpu_seconds(first.pid), time.monotonic()
    time.sleep(max(1.0, args.seconds - 5))
    share = (cpu_seconds(first.pid) - begin) / (time.monotonic() - started)
    memory = resident_mb(first.pid)
    for talker in talkers:
        talker.wait(args.seconds + 120)
    sent = sum(int(re.search(r"sent (\d+)", stage.log(f"talkers{b}"))[1]) for b in range(0, routes, each))
    for bridge in (first, second):
        bridge.send_signal(signal.SIGINT)
        bridge.wait(30)
    return {"routes": routes, "sent": sent, "first": forwarded(stage.log("first")),
            "second": forwarded(stage.log("second")), "cpu_share": share, "resident_mb": memory}


def routes(args: argparse.Namespace) -> dict:
    """CPU, memory and losses over the number of routes."""
    rows = []
    print(f"{'routes':>7} {'sent':>9} {'through 1':>9} {'through 2':>9} {'cpu %':>6} {'us/msg':>7} {'MB':>6}")
    for count in args.routes:
        with tempfile.TemporaryDirectory() as folder:
            with Stage(Path(folder), environment(args.transport, Path(folder))) as stage:
                row = many(stage, args, count)
        rows.append(row)
        each = row["cpu_share"] / (count * args.rate) * 1e6
        print(f"{count:>7} {row['sent']:>9} {row['first']:>9} {row['second']:>9} {row['cpu_share'] * 100:>6.1f} "
              f"{each:>7.1f} {row['resident_mb']:>6.1f}", flush=True)
    return {"transport": args.transport, "rate_hz": args.rate, "bytes": args.bytes, "rows": rows}


def main() -> int:
    """Runs one part and writes its figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=("ratios", "routes"))
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench")
    parser.add_argument("--domains", type=int, nargs=2, default=(60, 61), metavar=("NEAR", "FAR"))
    parser.add_argument("--transport", default="udp", help="udp, default, LARGE_DATA, ... (default: udp, 4 MB buffers)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 33_000, 502_000, 1_000_000, 4_000_000])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each payload")
    parser.add_argument("--count", type=int, default=200, help="round trips of a turn")
    parser.add_argument("--routes", type=int, nargs="+", default=[30, 60, 120])
    parser.add_argument("--rate", type=int, default=100, help="messages a second on each route")
    parser.add_argument("--seconds", type=int, default=15, help="how long to send")
    parser.add_argument("--bytes", type=int, default=64, help="payload on each route")
    args = parser.parse_args()
    found = ratios(args) if args.part == "ratios" else routes(args)
    found["host"] = {"kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"domain-{args.part}-{args.transport}.json"
    path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
