#!/usr/bin/env python3
"""The whole experiment on a simulated drone: flies it through ROS while measuring every link.

Starts the simulator behind a pseudo-terminal, `openlink bridge` (UART to paced transport), the ROS bridge,
relays and the domain bridge, flies with `pilot.py`, measures round trips over each path, and leaves
`results.json` and `report.html`. Exit code 0 only if the drone followed its setpoints and every row has answers.
"""
from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from stage import Stage, StageError, free_udp_port

ROOT = Path(__file__).resolve().parent.parent
INSTALL = Path(os.environ.get("OPENLINK_INSTALL", ROOT / "install"))
NODES = INSTALL / "lib/crazyflie_openlink"
OPENLINK = INSTALL / "bin/openlink"
SIZES = [64, 1024, 33000]


def say(text: str) -> None:
    """One line about what goes on."""
    print(f"[demo] {text}", flush=True)


class Demo:
    """The experiment, step by step."""

    def __init__(self, out: Path, count: int, domains: tuple[int, int]):
        self.out, self.count, self.domains = out, count, domains
        self.uart = out / "uart"
        self.port, self.relay_port = free_udp_port(), free_udp_port()
        self.stage = Stage(out)
        self.files: list[Path] = []

    def results(self, name: str) -> Path:
        """A results file that goes into the report."""
        path = self.out / "rows" / f"{name}.json"
        self.files.append(path)
        return path

    def ping(self, name: str, uri: str, size: int, *options: object) -> None:
        """One row measured by `openlink ping`."""
        say(f"openlink ping {uri}, {size} B")
        self.stage.run(name, OPENLINK, "ping", uri, "--bytes", size, "--rate", 100, "--count", self.count,
                       "--output", self.results(name), *options)

    def rtt(self, name: str, *parameters: str) -> None:
        """Rows measured by the `rtt` node."""
        say(f"rtt node, {name}, sizes {SIZES}")
        flags = [flag for parameter in parameters for flag in ("-p", parameter)]
        self.stage.run(name, NODES / "rtt", "--ros-args", "-p", f"sizes:={json.dumps(SIZES)}", "-p", "rate_hz:=100",
                       "-p", f"count:={self.count}", "-p", f"output:={self.results(name)}", *flags)

    def start_drone(self) -> None:
        """The simulated drone, then CRTP echo over its bare UART, then the bridge in front of it."""
        say("simulated Crazyflie behind a pseudo-terminal")
        self.stage.start("sim", OPENLINK, "sim", "--uart", self.uart, "--report", self.out / "drone.json")
        end = time.monotonic() + 20
        while not self.uart.exists():
            self.stage.check_alive()
            if time.monotonic() > end:
                raise StageError(f"the simulator made no pseudo-terminal; {self.stage.tail('sim')}")
            time.sleep(0.02)
        self.ping("crtp-uart", f"uart://{self.uart}", 16)
        say("openlink bridge: UART to paced transport")
        self.stage.start("bridge-uart", OPENLINK, "bridge", "--from", f"uart://{self.uart}",
                         "--to", f"prrt://127.0.0.1:{self.port}?listen=1")

    def start_ros(self) -> None:
        """The ROS bridge and a fleet file for it."""
        say(f"ROS bridge in domain {self.domains[0]}")
        fleet = self.out / "crazyflies.yaml"
        fleet.write_text("fileversion: 3\nrobots:\n  cf1:\n    enabled: true\n"
                         f"    uri: prrt://127.0.0.1:{self.port}\n    type: simulated\n"
                         "robot_types:\n  simulated: {}\n"
                         "all:\n  firmware_logging:\n    enabled: true\n    default_topics:\n"
                         "      pose: {frequency: 50}\n      odom: {frequency: 50}\n      status: {frequency: 5}\n",
                         encoding="utf-8")
        self.stage.start("bridge-ros", NODES / "bridge", "--ros-args", "-p", f"domain_id:={self.domains[0]}",
                         "-p", f"robots_file:={fleet}")

    def take_off(self) -> subprocess.Popen:
        """Starts the pilot and waits until the drone hovers."""
        say("take-off through ROS")
        pilot = self.stage.start("pilot", os.environ.get("OPENLINK_ROS_PYTHON", sys.executable),
                                 ROOT / "scripts/pilot.py", "--robot", "cf1", "--output", self.out / "flight.json",
                                 ROS_DOMAIN_ID=str(self.domains[0]))
        self.stage.wait_for("pilot", "hovering", 120)
        return pilot

    def measure(self) -> None:
        """Every path, while the drone flies."""
        near, far = self.domains
        self.ping("crtp-prrt", f"prrt://127.0.0.1:{self.port}", 16)
        self.stage.start("relay-near", NODES / "relay", "--ros-args", "-p", f"domain_id:={near}")
        self.rtt("same-domain", f"domain_id:={near}")
        self.stage.stop("relay-near")
        rules = self.out / "cross_domain.yaml"
        text = (ROOT / "config/cross_domain.yaml").read_text(encoding="utf-8")
        rules.write_text(text.replace("from_domain: 5", f"from_domain: {near}")
                         .replace("to_domain: 10", f"to_domain: {far}"), encoding="utf-8")
        self.stage.start("relay-far", NODES / "relay", "--ros-args", "-p", f"domain_id:={far}")
        self.stage.start("domain-bridge", NODES / "domain_bridge", "--ros-args", "-p", f"config:={rules}")
        self.rtt("cross-domain", f"domain_id:={near}", f"relay_domain_id:={far}")
        for name in ("domain-bridge", "relay-far"):
            self.stage.stop(name)
        self.stage.start("relay-prrt", OPENLINK, "relay", f"prrt://127.0.0.1:{self.relay_port}?listen=1")
        for size in SIZES:
            self.ping(f"prrt-{size}", f"prrt://127.0.0.1:{self.relay_port}", size, "--echo", "relay")
        self.stage.stop("relay-prrt")

    def land(self, pilot: subprocess.Popen) -> dict:
        """Ends the hover; returns what the pilot saw."""
        say("landing")
        pilot.stdin.close()
        try:
            pilot.wait(60)
        except subprocess.TimeoutExpired as error:
            raise StageError(f"the pilot did not end; {self.stage.tail('pilot')}") from error
        self.stage.running = [entry for entry in self.stage.running if entry[1] is not pilot]
        return json.loads((self.out / "flight.json").read_text(encoding="utf-8"))

    def report(self) -> list[dict]:
        """Merges the rows, prints the table, writes the page."""
        results, page = self.out / "results.json", self.out / "report.html"
        command = [OPENLINK, "report", *self.files, "-o", page, "--merged", results, "--table"]
        if subprocess.run([str(part) for part in command], check=False).returncode != 0:
            raise StageError("openlink report failed")
        say(f"{results} and {page}")
        return json.loads(results.read_text(encoding="utf-8"))["rows"]

    def run(self) -> list[str]:
        """Everything; returns what is not as it must be."""
        with ExitStack() as stack:
            stack.callback(self.stage.close)
            self.start_drone()
            self.start_ros()
            pilot = self.take_off()
            self.measure()
            flight = self.land(pilot)
        wrong = [] if flight["ok"] else [f"the flight failed: {flight.get('why')}"]
        drone = json.loads((self.out / "drone.json").read_text(encoding="utf-8"))
        if drone["would_crash"]["count"]:
            wrong.append(f"{drone['would_crash']['count']} packets would have crashed a real drone")
        rows = self.report()
        wrong += [f"row {row['link']} {row['path']} {row['bytes']} B received nothing"
                  for row in rows if row["received"] == 0]
        if flight["ok"]:
            say(f"flew {flight['seconds']:.0f} s on {flight['setpoints_hz']:.0f} setpoints a second; median error "
                f"{flight['height_error_m'] * 100:.1f} cm in height, {flight['speed_error_m_s'] * 100:.1f} cm/s in speed")
        return wrong


def main() -> int:
    """Runs the demo into a fresh output folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "out/demo")
    parser.add_argument("--count", type=int, default=500, help="probes of each row")
    parser.add_argument("--domains", type=int, nargs=2, default=(5, 10), metavar=("NEAR", "FAR"))
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    for folder in ("logs", "rows"):
        (args.out / folder).mkdir(parents=True)
    started = time.monotonic()
    try:
        wrong = Demo(args.out.resolve(), args.count, tuple(args.domains)).run()
    except StageError as error:
        wrong = [str(error)]
    except KeyboardInterrupt:
        wrong = ["stopped"]
    for line in wrong:
        print(f"[demo] FAILED: {line}", flush=True)
    say(f"{'failed' if wrong else 'done'} after {time.monotonic() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
