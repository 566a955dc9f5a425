#!/usr/bin/env python3
"""The paced transport against its rivals on emulated links: `out/bench/transport/`, a table and a page.

For each run `openlink emulate` joins two fresh network namespaces, and both ends of one contender (`benches/transport`) send
the same bytes at the same instants over the same scenario and seed. Rounds go through the contenders in a shuffled order. Both ends of every
contender and the emulator have real-time priority, the emulator the higher one.
A message that never came counts as later than any deadline. Needs root.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from bench_transport_page import page
from stage import Stage, StageError

ROOT = Path(__file__).resolve().parent.parent
FAR = "10.77.0.2:5000"
NAMESPACE = "transport"
# Share of the time without passage, mean length of such a time in ms, delay of one way in ms (config/scenarios.yaml); floors follow from them.
LINKS = {"S0": (0, 0, 0), "S1": (0, 0, 3.25), "S2": (0.05, 5, 3.25), "S3": (0.12, 10, 4), "S4": (0.006, 30, 12.5), "S5": (0, 0, 75),
         "S6": (0, 0, 3.25), "S7": (0, 0, 3.25), "H1": (0, 0, 3.25), "H2": (0.05, 5, 3.25), "H3": (0, 0, 3.25), "H4": (0, 0, 3.25)}
# Contender, its settings. The best of a name's settings is the one that counts.
CONTENDERS = {
    "prrt": [{}, {"sparse": "0"}, {"redundancy": "1.6"}, {"stream": "latest"}],
    "udp": [{}],
    "udp twice": [{"copy_ms": "3"}, {"copy_ms": "5"}, {"copy_ms": "8"}],
    "udp riders": [{"back": "1"}, {"back": "1+2"}, {"back": "1+3+6"}],
    "tcp": [{"congestion": "cubic"}, {"congestion": "bbr"}],
    "quic": [{"congestion": "cubic"}, {"congestion": "bbr"}],
    "kcp": [{"interval_ms": "10"}, {"interval_ms": "10", "resend": "2"}],
    # SRT holds every message back for its latency: with 14 ms it can just be within 20.
    "srt": [{"latency_ms": "14"}, {"latency_ms": "8"}, {"latency_ms": "20"}, {"latency_ms": "50"}, {"latency_ms": "14", "encrypt": "0"}],
}
# From the start of the emulator to the first counted probe.
WARM_S = 3.0
# At p99.9, or p99 where there are too few packets for it.
LATE_EMULATOR_US = 1000.0


class Bench:
    """All runs."""

    def __init__(self, args: argparse.Namespace, out: Path):
        self.args, self.out = args, out
        self.keys = {end: out / f"{end}.keys" for end in ("near", "far")}
        self.public = {end: self.tool("keys", "new", path).split()[-1] for end, path in self.keys.items()}
        self.rows: list[dict] = []

    def tool(self, *command: object) -> str:
        """Output of an `openlink` command."""
        result = subprocess.run([str(part) for part in (self.args.openlink, *command)], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise StageError(f"openlink {' '.join(map(str, command))}: {result.stderr.strip()}")
        return result.stdout

    def secret(self, end: str) -> str:
        """Secret key of an end."""
        for word in self.keys[end].read_text(encoding="utf-8").split():
            if len(word) == 64:
                return word
        raise StageError(f"{self.keys[end]} has no key")

    def end(self, role: str, contender: str, settings: dict[str, str], start_ns: int, *more: object) -> list[object]:
        """Command line of one end."""
        mine, other, where = ("near", "far", "a") if role == "client" else ("far", "near", "b")
        command: list[object] = ["ip", "netns", "exec", f"{NAMESPACE}-{where}", "chrt", "-f", 40, self.args.program, role, contender.split()[0], FAR,
                                 "--start-ns", start_ns, "--output", self.out / f"{role}.json", "--deadline-ms", self.args.deadline_ms]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        if contender == "prrt":
            command += ["--secret", self.secret(mine), "--peer", self.public[other]]
        if contender == "quic":
            command += ["--set", f"cert={self.out / 'cert.der'}"]
        return command + list(more)

    def packets(self, end: str) -> int:
        """Packets that an end has put on its interface."""
        text = subprocess.run(["ip", "-n", f"{NAMESPACE}-{end}", "-s", "-j", "link"], capture_output=True, text=True, check=True).stdout
        return sum(link["stats64"]["tx"]["packets"] for link in json.loads(text) if link["ifname"] != "lo")

    def run(self, scenario: str, contender: str, settings: dict[str, str], rate: float, video: float, seed: int) -> dict:
        """One contender over one link."""
        seconds = self.args.seconds
        for name in ("client.json", "server.json", "cert.der"):
            (self.out / name).unlink(missing_ok=True)
        with ExitStack() as stack:
            stage = Stage(self.out)
            stack.callback(stage.close)
            stage.start("emulate", self.args.openlink, "emulate", scenario, "--json", "--seed", seed, "--name", NAMESPACE)
            stage.wait_for("emulate", "ip netns exec", 20)
            start_ns = time.monotonic_ns() + int(WARM_S * 1e9)
            stage.start("server", *self.end("server", contender, settings, start_ns, "--seconds", seconds))
            time.sleep(0.4)
            client = stage.start("client", *self.end("client", contender, settings, start_ns, "--rate", rate, "--count",
                                                     round(rate * seconds), "--video-bps", video))
            time.sleep(max(0.0, start_ns / 1e9 - time.monotonic()))
            before = [self.packets(end) for end in "ab"]
            client.wait(seconds + 60)
            after = [self.packets(end) for end in "ab"]
            limit = time.monotonic() + 10
            while not (self.out / "server.json").exists() and time.monotonic() < limit:
                time.sleep(0.05)
            if not all((self.out / f"{role}.json").exists() for role in ("client", "server")):
                raise StageError(f"{contender} gave no result; {stage.tail('client')}\n{stage.tail('server')}")
            stage.stop("emulate")
            link = next(json.loads(line) for line in stage.log("emulate").read_text(encoding="utf-8").splitlines() if line.startswith("{"))
        client_row, server = (json.loads((self.out / f"{role}.json").read_text(encoding="utf-8")) for role in ("client", "server"))
        return {"scenario": scenario, "contender": contender, "settings": settings, "rate_hz": rate, "video_bps": video, "seed": seed,
                "clean": link["clean"], "emulator_p999_us": max(one["p999_us"] or one["p99_us"] or 0.0 for one in link["lateness"]),
                "forward": after[0] - before[0], "back": after[1] - before[1], "client": client_row, "server": server}


def quantile(values: list[float], share: float) -> float | None:
    """Value below which `share` of the sorted values lie; None where that is a message that never came."""
    if not values:
        return None
    value = values[min(len(values) - 1, math.ceil(share * len(values)) - 1)]
    return None if math.isinf(value) else value


def longest(late: list[bool]) -> int:
    """Most misses in a row."""
    best = run = 0
    for miss in late:
        run = run + 1 if miss else 0
        best = max(best, run)
    return best


def summary(runs: list[dict], deadline_ms: float) -> dict:
    """One row of the table from the rounds of one setting."""
    ages, misses, rounds = [], [], []
    for one in runs:
        sent = one["client"]["sent"]
        got = [age / 1e3 if age >= 0 else math.inf for age in one["server"]["age_us"]]
        got += [math.inf] * (sent - len(got))
        late = [age > deadline_ms for age in got]
        ages += got
        misses += late
        rounds.append(sum(late) / sent)
    ages.sort()
    sent = len(ages)
    first = runs[0]
    video = [age / 1e3 for one in runs for age in one["server"]["frame_us"] if age >= 0]
    frames = sum(one["client"]["frames_sent"] for one in runs)
    share, burst, delay = LINKS[first["scenario"]]
    room = deadline_ms - delay
    floor = share * math.exp(-room / burst) if burst and room > 0 else 0.0
    miss = sum(misses) / sent
    return {
        **{key: first[key] for key in ("scenario", "contender", "settings", "rate_hz", "video_bps")},
        "sent": sent, "refused": sum(one["client"]["refused"] for one in runs), "lost": sum(map(math.isinf, ages)),
        "missed": miss, "missed_by_round": rounds, "missed_at_most": miss if miss else 3 / sent, "longest_run": longest(misses),
        "p50_ms": quantile(ages, 0.5), "p90_ms": quantile(ages, 0.9), "p99_ms": quantile(ages, 0.99),
        "p999_ms": quantile(ages, 0.999) if sent >= 100_000 else None, "floor_p50_ms": delay, "floor_missed": floor,
        "datagrams": sum(one["forward"] for one in runs) / sent, "feedback": sum(one["back"] for one in runs) / sent,
        "cpu_us": sum(one["client"]["cpu_us"] + one["server"]["cpu_us"] for one in runs) / sent,
        "frames_in_100_ms": sum(age <= 100 for age in video) / frames if frames else None,
        "rounds": len(runs),
    }


def label(row: dict) -> str:
    """Contender and settings."""
    return " ".join([row["contender"], *(f"{key}={value}" for key, value in row["settings"].items())])


def table(rows: list[dict], deadline_ms: float) -> str:
    """The rows as text."""
    lines = [f"{'link':<5}{'contender':<32}{'Hz':>5}{'sent':>8}{'lost':>7}{'missed':>10}{'floor':>10}{'p50 ms':>9}{'p90':>8}{'p99':>8}"
             f"{'dg':>6}{'back':>6}{'cpu us':>8}"]
    for row in sorted(rows, key=lambda row: (row["scenario"], row["rate_hz"], row["video_bps"], row["missed"])):
        cells = "".join(f"{row[key]:>{width}.2f}" if row[key] is not None else f"{'-':>{width}}"
                        for key, width in (("p50_ms", 9), ("p90_ms", 8), ("p99_ms", 8), ("datagrams", 6), ("feedback", 6)))
        lines.append(f"{row['scenario']:<5}{label(row):<32}{row['rate_hz']:>5.0f}{row['sent']:>8}{row['lost']:>7}{row['missed']:>10.2e}"
                     f"{row['floor_missed']:>10.1e}{cells}{row['cpu_us']:>8.1f}")
    lines.append(f"one way, from the intended send time; missed: not there within {deadline_ms:.0f} ms; dg, back: datagrams per message")
    return "\n".join(lines)


def main() -> int:
    """Runs the rounds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", type=Path, default=ROOT / "benches/transport/target/release/bench-transport")
    parser.add_argument("--openlink", type=Path, default=ROOT / "install/bin/openlink")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=float, action="append", help="control messages a second (100)")
    parser.add_argument("--deadline-ms", type=float, default=20.0)
    parser.add_argument("--scenario", action="append", choices=sorted(LINKS), help="(S0, S1, S2, H1, H2)")
    parser.add_argument("--contender", action="append", choices=sorted(CONTENDERS), help="only these")
    parser.add_argument("--video-bps", type=float, default=0.0, help="beside the control, e.g. 1.7e6 on H3")
    parser.add_argument("--first", action="store_true", help="only the first setting of each contender")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench/transport")
    args = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("network namespaces need root: sudo -E make bench-transport")
    for program in (args.program, args.openlink):
        if not program.exists():
            raise SystemExit(f"{program} is missing: make bench-transport builds it")
    out = args.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    (out / "logs").mkdir(parents=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    bench = Bench(args, out)
    cells: dict[str, list[dict]] = {}
    void, failed = [], []
    jobs = [(scenario, rate, name, settings) for scenario in args.scenario or ["S0", "S1", "S2", "H1", "H2"] for rate in args.rate or [100.0]
            for name in args.contender or CONTENDERS for settings in (CONTENDERS[name][:1] if args.first else CONTENDERS[name])]
    try:
        for turn in range(args.rounds):
            random.Random(turn).shuffle(jobs)
            for scenario, rate, name, settings in jobs:
                text = f"{scenario} {name} {settings or ''} {rate:.0f} Hz"
                try:
                    run = bench.run(scenario, name, settings, rate, args.video_bps, turn + 1)
                except StageError as error:
                    print(f"[transport] {text}: {error}", flush=True)
                    failed.append({"run": text, "round": turn, "error": str(error)})
                    continue
                late = run["emulator_p999_us"]
                print(f"[transport] round {turn + 1} {text}, emulator late by {late:.0f} us", flush=True)
                if late > LATE_EMULATOR_US:
                    void.append({"run": text, "round": turn, "emulator_p999_us": late})
                else:
                    cells.setdefault(json.dumps([scenario, rate, name, settings]), []).append(run)
    except KeyboardInterrupt:
        print("[transport] stopped; what was measured is kept", flush=True)
    rows = [summary(runs, args.deadline_ms) for runs in cells.values()]
    content = {"schema": 1, "deadline_ms": args.deadline_ms, "seconds": args.seconds, "machine": " ".join(os.uname()[0:3:2]),
               "processors": os.cpu_count(), "rows": rows, "void": void, "failed": failed}
    (out / "transport.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    (out / "transport.html").write_text(page(content, label), encoding="utf-8")
    print(f"\n{table(rows, args.deadline_ms)}")
    print(f"{len(void)} runs void because the emulator was more than {LATE_EMULATOR_US:.0f} us late; {len(failed)} failed")
    print(out / "transport.html")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
