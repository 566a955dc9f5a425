#!/usr/bin/env python3
"""Side-by-side benchmarks: `out/bench/*.json` and a table of ratios.

Each contender carries the same CRTP echo from a UART over UDP to a UART, in the same run, in turns; the far end
is the simulated drone. What the bare UART costs is measured in the same turns and subtracted, so the figure is
what the two bridges add to a round trip.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPENLINK = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/openlink"
PYTHON = os.environ.get("OPENLINK_TEST_PYTHON", str(ROOT / ".venv/bin/python"))
QUANTILES = ("p50", "p90", "p99")


def free_ports(count: int) -> list[int]:
    """UDP ports nobody uses now."""
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Bench:
    """One run in a scratch folder."""

    def __init__(self, folder: Path, count: int, rate: float):
        self.folder, self.count, self.rate = folder, count, rate
        self.started: list[subprocess.Popen] = []
        self.drone = folder / "drone"

    def start(self, *command: object) -> subprocess.Popen:
        """Starts a program; its output is kept for error messages."""
        with open(self.folder / f"{len(os.listdir(self.folder))}.log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([str(part) for part in command], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def wait_for(self, path: Path) -> None:
        """Waits for a pseudo-terminal to appear."""
        end = time.monotonic() + 10
        while not path.exists():
            if time.monotonic() > end:
                raise SystemExit(f"{path} did not appear")
            time.sleep(0.02)

    def stop(self) -> None:
        """Ends what was started, last first."""
        while self.started:
            process = self.started.pop()
            process.send_signal(signal.SIGINT)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def ping(self, uri: str) -> dict:
        """One row of CRTP echoes."""
        command = [OPENLINK, "ping", uri, "--bytes", "16", "--rate", str(self.rate), "--count", str(self.count), "--json"]
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=120)
        if result.returncode != 0:
            raise SystemExit(f"openlink ping {uri} failed: {result.stderr.strip()}")
        return json.loads(result.stdout)["rows"][0]

    def start_drone(self) -> None:
        """A fresh simulated drone."""
        self.start(OPENLINK, "sim", "--uart", self.drone)
        self.wait_for(self.drone)

    def direct(self) -> dict:
        """The UART alone."""
        return self.ping(f"uart://{self.drone}")

    def openlink(self) -> dict:
        """Our bridges, over the paced transport."""
        client, (port,) = self.folder / "client", free_ports(1)
        far = self.start(OPENLINK, "bridge", "--from", f"uart://{self.drone}", "--to", f"prrt://127.0.0.1:{port}?listen=1")
        self.start(OPENLINK, "bridge", "--from", f"pty://{client}", "--to", f"prrt://127.0.0.1:{port}")
        self.wait_for(client)
        row = self.ping(f"uart://{client}")
        row["bridge_rss_mb"] = resident_mb(far.pid)
        return row

    def socat(self) -> dict:
        """A raw byte pump."""
        client, (port,) = self.folder / "client", free_ports(1)
        self.start("socat", f"udp-listen:{port},bind=127.0.0.1", f"file:{self.drone},raw,echo=0")
        self.start("socat", f"pty,raw,echo=0,link={client}", f"udp:127.0.0.1:{port}")
        self.wait_for(client)
        return self.ping(f"uart://{client}")

    def python(self) -> dict:
        """Two Python bridges."""
        client, (near, far) = self.folder / "client", free_ports(2)
        script = ROOT / "benches/python_bridge.py"
        self.start(PYTHON, script, self.drone, "--local", far, "--remote", near)
        self.start(PYTHON, script, client, "--serve", "--local", near, "--remote", far)
        self.wait_for(client)
        return self.ping(f"uart://{client}")

    def cflib(self) -> dict:
        """A bridge around cflib's serial driver at the drone, the other Python bridge at the client."""
        client, (near, far) = self.folder / "client", free_ports(2)
        self.start(PYTHON, ROOT / "benches/cflib_bridge.py", self.drone, "--local", far, "--remote", near)
        self.start(PYTHON, ROOT / "benches/python_bridge.py", client, "--serve", "--local", near, "--remote", far)
        self.wait_for(client)
        return self.ping(f"uart://{client}")

    def turn(self, name: str) -> dict:
        """One contender with a fresh drone."""
        self.start_drone()
        try:
            return getattr(self, name)()
        finally:
            self.stop()


def resident_mb(pid: int) -> float:
    """Memory of a process, MB."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return float("nan")


def medians(rows: list[dict]) -> dict:
    """The median over the turns of each quantile, us; None where the sample count resolves none."""
    found = {q: [row["rtt_us"][q] for row in rows if row["rtt_us"][q] is not None] for q in QUANTILES}
    return {q: statistics.median(values) if values else None for q, values in found.items()}


def main() -> int:
    """Runs every contender in turns and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="echoes in each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=200.0, help="echoes a second")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench")
    args = parser.parse_args()
    contenders = ["direct", "openlink", "socat", "python", "cflib"]
    subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "openlink"], cwd=ROOT, check=True)
    missing = [name for name in ("socat",) if shutil.which(name) is None]
    if missing:
        raise SystemExit(f"missing: {', '.join(missing)}; apt-get install {' '.join(missing)}")
    rows: dict[str, list[dict]] = {name: [] for name in contenders}
    for index in range(args.rounds):
        for name in contenders if index % 2 == 0 else reversed(contenders):
            with tempfile.TemporaryDirectory() as folder:
                row = Bench(Path(folder), args.count, args.rate).turn(name)
            rows[name].append(row)
            print(f"round {index + 1}/{args.rounds} {name:<9} p50 {row['rtt_us']['p50']:.1f} us", flush=True)
    summary = {name: medians(rows[name]) for name in contenders}
    added = {name: summary[name]["p50"] - summary["direct"]["p50"] for name in contenders[1:]}
    memory = max(row["bridge_rss_mb"] for row in rows["openlink"])
    args.out.mkdir(parents=True, exist_ok=True)
    result = {"schema": 1, "host": {"machine": platform.machine(), "kernel": platform.release(), "cpus": os.cpu_count()},
              "command": " ".join(sys.argv), "samples": args.count * args.rounds, "rtt_us": summary, "added_p50_us": added,
              "ratio_to_socat": added["openlink"] / added["socat"], "python_to_openlink": added["python"] / added["openlink"],
              "cflib_to_openlink": added["cflib"] / added["openlink"],
              "bridge_rss_mb": memory, "rows": rows}
    (args.out / "uart.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(f"\n{args.count * args.rounds} echoes of 16 B at {args.rate:.0f} Hz each, medians over {args.rounds} turns, us")
    print(f"{'':<10}{'p50':>9}{'p90':>9}{'p99':>9}{'added p50':>11}")
    for name in contenders:
        cells = "".join(f"{summary[name][q]:>9.1f}" if summary[name][q] is not None else f"{'-':>9}" for q in QUANTILES)
        print(f"{name:<10}{cells}{added.get(name, 0.0):>11.1f}")
    print(f"openlink over socat: {result['ratio_to_socat']:.2f} (aim: at most 1.3)")
    print(f"python over openlink: {result['python_to_openlink']:.1f} (aim: at least 20)")
    print(f"cflib over openlink: {result['cflib_to_openlink']:.1f}")
    print(f"memory of openlink bridge: {memory:.1f} MB (aim: under 20)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
