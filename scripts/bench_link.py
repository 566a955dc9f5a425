#!/usr/bin/env python3
"""DDS against the paced transport on one emulated link: `out/bench/link.json`, a table and a page.

`openlink emulate` joins two network namespaces; the relay runs in one, the prober in the other, and every contender
sends the same payloads at the same open-loop rate over the same scenario and seed, in turns. DDS finds its peer by
unicast. The last row of each scenario is a CRTP echo from a simulated drone behind a bridge at the far end. Needs root.
"""
from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from stage import Stage, StageError

ROOT = Path(__file__).resolve().parent.parent
INSTALL = Path(os.environ.get("OPENLINK_INSTALL", ROOT / "install"))
NODES = INSTALL / "lib/crazyflie_openlink"
OPENLINK = INSTALL / "bin/openlink"
NEAR, FAR = "10.77.0.1", "10.77.0.2"
DOMAIN = 47
# Payload, probes a second, deadline of one way in ms. The larger ones leave room on the narrowest link they run on.
LOADS = [(64, 100.0, 20.0), (1024, 100.0, 20.0), (16384, 10.0, 50.0), (145000, 2.0, 200.0)]
SCENARIOS = ["S0", "S1", "S2", "outage"]
OUTAGE = """\
outage:
  about: quiet Wi-Fi without loss, and an outage of 0.5 s every 10 s
  both: {delay_ms: 3.25, jitter_ms: 0.4, rate_mbps: 20, queue_ms: 100, outages: [{at_s: 5, for_s: 0.5, every_s: 10}]}
"""


class Bench:
    """One run."""

    def __init__(self, out: Path, probes: float):
        self.out, self.probes = out, probes
        self.scenarios = out / "outage.yaml"
        self.scenarios.write_text(OUTAGE, encoding="utf-8")
        self.keys = {name: out / f"{name}.keys" for name in ("near", "far")}
        public = {name: self.tool("keys", "new", path).split()[-1] for name, path in self.keys.items()}
        self.tool("keys", "trust", self.keys["near"], public["far"])
        self.tool("keys", "trust", self.keys["far"], public["near"])
        self.files: list[Path] = []
        self.rows: list[dict] = []

    def tool(self, *command: object) -> str:
        """Output of an `openlink` command."""
        result = subprocess.run([str(part) for part in (OPENLINK, *command)], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise StageError(f"openlink {' '.join(map(str, command))}: {result.stderr.strip()}")
        return result.stdout

    def count(self, rate: float) -> int:
        """Probes of a row: as many as fit its time, and enough for a median."""
        return max(50, round(self.probes * rate))

    def inside(self, end: str, *command: object) -> tuple[object, ...]:
        """A command in the namespace of one end."""
        return ("ip", "netns", "exec", f"openlink-{end}", *command)

    def scenario(self, name: str, stage: Stage) -> None:
        """Every contender over one link."""
        where = f"{self.scenarios}:outage" if name == "outage" else name
        with ExitStack() as stack:
            stage.start("emulate", OPENLINK, "emulate", where, "--json")
            stack.callback(stage.stop, "emulate")
            stage.wait_for("emulate", "ip netns exec", 20)
            for load in LOADS:
                self.paced(name, stage, *load)
                for reliability in ("best_effort", "reliable"):
                    self.dds(name, stage, reliability, *load)
            self.drone(name, stage)

    def paced(self, name: str, stage: Stage, size: int, rate: float, deadline: float) -> None:
        """The paced transport, encrypted."""
        stage.start("relay", *self.inside("b", OPENLINK, "relay", f"prrt://{FAR}:5000?listen=1&keys={self.keys['far']}"))
        uri = f"prrt://{FAR}:5000/{deadline:.0f}?keys={self.keys['near']}"
        self.measure(name, stage, f"prrt-{size}", deadline, *self.inside(
            "a", OPENLINK, "ping", uri, "--echo", "relay", "--bytes", size, "--rate", rate, "--count", self.count(rate),
            "--timeout-ms", 2000, "--wait-s", 30))
        stage.stop("relay")

    def dds(self, name: str, stage: Stage, reliability: str, size: int, rate: float, deadline: float) -> None:
        """The `rtt` node and the `relay` node."""
        env = {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET"}
        common = ("-p", f"domain_id:={DOMAIN}", "-p", f"qos.rtt.reliability:={reliability}")
        stage.start("relay", *self.inside("b", NODES / "relay", "--ros-args", *common), ROS_STATIC_PEERS=NEAR, **env)
        self.measure(name, stage, f"dds-{reliability}-{size}", deadline, *self.inside(
            "a", NODES / "rtt", "--ros-args", *common, "-p", f"sizes:=[{size}]", "-p", f"rate_hz:={rate}",
            "-p", f"count:={self.count(rate)}", "-p", "timeout_s:=2.0", "-p", "wait_s:=30.0"), ROS_STATIC_PEERS=FAR, **env)
        stage.stop("relay")

    def drone(self, name: str, stage: Stage) -> None:
        """CRTP echo: paced transport over the link, UART at its end."""
        uart = self.out / "uart"
        stage.start("sim", OPENLINK, "sim", "--uart", uart)
        end = time.monotonic() + 20
        while not uart.exists() and time.monotonic() < end:
            time.sleep(0.02)
        far = f"prrt://{FAR}:5001?listen=1&keys={self.keys['far']}"
        stage.start("bridge", *self.inside("b", OPENLINK, "bridge", "--from", f"uart://{uart}", "--to", far))
        uri = f"prrt://{FAR}:5001?keys={self.keys['near']}"
        self.measure(name, stage, "crtp", 20.0, *self.inside(
            "a", OPENLINK, "ping", uri, "--bytes", 16, "--rate", 100, "--count", self.count(100), "--timeout-ms", 2000,
            "--wait-s", 30))
        stage.stop("bridge")
        stage.stop("sim")

    def measure(self, scenario: str, stage: Stage, label: str, deadline: float, *command: object, **env: str) -> None:
        """Runs a prober and keeps its rows; one that gets nothing is a row that says so."""
        output = self.out / "rows" / f"{scenario}-{label}.json"
        flags = ("-p", f"output:={output}") if "--ros-args" in command else ("--output", output)
        print(f"[link] {scenario} {label}", flush=True)
        try:
            stage.run(label, *command, *flags, limit_s=self.probes + 120, **env)
        except StageError as error:
            print(f"[link] {scenario} {label}: {error}", flush=True)
            self.rows.append({"scenario": scenario, "contender": label, "failed": str(error)})
            return
        content = json.loads(output.read_text(encoding="utf-8"))
        for row in content["rows"]:
            row["path"] = f"{scenario}, {row['path']}"
            self.rows.append({"scenario": scenario, "contender": label, "deadline_ms": deadline,
                              "missed": missed(row, deadline), **row})
        output.write_text(json.dumps(content), encoding="utf-8")
        self.files.append(output)

    def finish(self) -> None:
        """The table, the file, the page."""
        (self.out / "link.json").write_text(json.dumps({"schema": 1, "rows": self.rows}, indent=1), encoding="utf-8")
        if self.files:
            self.tool("report", *self.files, "-o", self.out / "link.html")
        print(f"\n{'link':<8}{'contender':<24}{'B':>7}{'Hz':>5}{'sent':>7}{'lost':>6}{'p50 ms':>9}{'p90':>8}{'p99':>8}"
              f"{'max':>9}{'deadline':>10}{'missed':>9}")
        for row in self.rows:
            if "failed" in row:
                print(f"{row['scenario']:<8}{row['contender']:<24}  {row['failed'].splitlines()[0]}")
                continue
            rtt = row["rtt_us"]
            cells = "".join(f"{rtt[q] / 1e3:>{width}.2f}" if rtt[q] is not None else f"{'-':>{width}}"
                            for q, width in (("p50", 9), ("p90", 8), ("p99", 8), ("max", 9)))
            name = row["contender"].rsplit("-", 1)[0]
            print(f"{row['scenario']:<8}{name:<24}{row['bytes']:>7}{row['rate_hz']:>5.0f}{row['sent']:>7}{row['lost']:>6}{cells}"
                  f"{2 * row['deadline_ms']:>8.0f}ms{100 * row['missed']:>8.2f}%")
        print(f"round trips from the intended send time; missed: not back within twice the deadline of one way\n{self.out}/link.html")


def missed(row: dict, deadline_ms: float) -> float:
    """Share of the probes sent whose echo was not back within twice the deadline."""
    within = [share for us, share in row["rtt_ecdf"] if us <= 2e3 * deadline_ms]
    in_time = (max(within) if within else 0.0) * row["received"]
    return 1.0 - in_time / row["sent"] if row["sent"] else float("nan")


def main() -> int:
    """Runs every scenario."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="of each row")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only these")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench/link")
    args = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("network namespaces need root: sudo -E make bench-link")
    out = args.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    for folder in ("logs", "rows"):
        (out / folder).mkdir(parents=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bench = Bench(out, args.seconds)
    try:
        for name in args.scenario or SCENARIOS:
            with ExitStack() as stack:
                stage = Stage(out)
                stack.callback(stage.close)
                bench.scenario(name, stage)
    except KeyboardInterrupt:
        print("[link] stopped; what was measured is kept", flush=True)
    except StageError as error:
        print(f"[link] FAILED: {error}", flush=True)
        return 1
    finally:
        bench.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
