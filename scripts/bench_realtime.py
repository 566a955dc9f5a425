#!/usr/bin/env python3
"""Wake-up latency as `openlink loop` measures it, beside cyclictest's, in turns under the same load.

Both run at 250 Hz with locked memory, the kernel's own timer slack and the same policy; stress-ng, where it is asked
for, is started here and runs through a whole pair. Both leave histograms with bins of one microsecond, which are
added up over the rounds: `out/bench/realtime.json` and a table. Without cyclictest (rt-tests) or stress-ng it says
what is missing and leaves those rows out.
"""
from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from bench import OPENLINK, ROOT

RATE_HZ = 250
CEILING_US = 50_000
QUANTILES = (0.5, 0.99, 0.999)
POLICIES = {"other": ["--policy=other"], "fifo:80": ["--policy=fifo", "--priority=80"]}
LOADS = {"none": None, "cpu": ["--cpu", "0"], "all": ["--cpu", "0", "--vm", "1", "--vm-bytes", "256M", "--hdd", "1", "--timer", "1"]}


class Failed(RuntimeError):
    """A contender that did not run, in its own words."""


def histogram(text: str, name: str) -> Counter[int]:
    """Counts by microsecond from cyclictest's histogram form; only lines of two numbers count."""
    bins: Counter[int] = Counter()
    for line in text.splitlines():
        parts = line.split()
        if len(parts) == 2 and all(part.isdigit() for part in parts):
            bins[int(parts[0])] += int(parts[1])
    if not sum(bins.values()):
        raise Failed(f"{name} left no samples:\n{text[-500:]}")
    return bins


def run(name: str, command: list[str]) -> str:
    """Runs a contender; what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise Failed(f"{name} failed with exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def cyclictest(policy: str, seconds: int) -> Counter[int]:
    """One run of cyclictest. What is beyond the histogram is counted at its end."""
    text = run("cyclictest", ["cyclictest", "--quiet", "--mlockall", "--threads=1", f"--interval={1_000_000 // RATE_HZ}",
                              f"--duration={seconds}s", f"--histogram={CEILING_US}", *POLICIES[policy]])
    bins = histogram(text, "cyclictest")
    beyond = next((line for line in text.splitlines() if line.startswith("# Histogram Overflows:")), "0").split()[-1]
    if beyond.isdigit() and int(beyond):
        bins[CEILING_US] += int(beyond)
    return bins


def ours(policy: str, seconds: int) -> Counter[int]:
    """One run of `openlink loop`. Refused policies leave no samples, which is told."""
    with tempfile.TemporaryDirectory() as folder:
        said = run("openlink loop", [str(OPENLINK), "loop", "--rate", str(RATE_HZ), "--duration", f"{seconds}s", "--policy", policy,
                                     "--slack-ns", "0", "-o", folder])
        file = Path(folder) / "histogram.csv"
        return histogram(file.read_text(encoding="utf-8").replace(",", " ") if file.exists() else said, "openlink loop")


@contextmanager
def load(arguments: list[str] | None):
    """stress-ng around a pair of runs."""
    if arguments is None:
        yield
        return
    process = subprocess.Popen(["stress-ng", "--quiet", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        yield
        if process.poll() is not None:
            raise Failed(f"stress-ng ended early: {process.stderr.read().decode(errors='replace')[-300:]}")
    finally:
        process.terminate()
        process.wait()


def summary(bins: Counter[int]) -> dict[str, float]:
    """Samples, quantiles (upper edge of the bin that has them) and the largest, us."""
    total, passed, result = sum(bins.values()), 0, {"samples": sum(bins.values())}
    wanted = list(QUANTILES)
    for microseconds in sorted(bins):
        passed += bins[microseconds]
        while wanted and passed >= wanted[0] * total:
            result[f"p{100 * wanted.pop(0):g}"] = microseconds
    result["max"] = max(bin for bin, count in bins.items() if count)
    return result


def main() -> int:
    """Every policy under every load, both contenders in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=8, help="measured time of each run")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench")
    options = parser.parse_args()
    contenders = {"openlink loop": ours}
    if shutil.which("cyclictest"):
        contenders["cyclictest"] = cyclictest
    else:
        print("cyclictest was not found (Debian: apt install rt-tests): openlink loop stands alone")
    loads = LOADS
    if not shutil.which("stress-ng"):
        print("stress-ng was not found (Debian: apt install stress-ng): no load but what the machine has")
        loads = {"none": None}
    rows, failures = [], 0
    for policy in POLICIES:
        for name, arguments in loads.items():
            added = {contender: Counter() for contender in contenders}
            try:
                for turn in range(options.rounds):
                    with load(arguments):
                        order = list(contenders.items())
                        for contender, measure in order if turn % 2 == 0 else reversed(order):
                            added[contender].update(measure(policy, options.seconds))
            except Failed as error:
                print(f"{policy}, load {name}: {error}", file=sys.stderr)
                failures += 1
                continue
            rows += [{"policy": policy, "load": name, "contender": contender, **summary(bins)} for contender, bins in added.items()]
    print(f"\nwake-up latency at {RATE_HZ} Hz, us\n{'policy':<9}{'load':<6}{'contender':<15}{'samples':>8}{'p50':>7}{'p99':>8}{'p99.9':>8}{'max':>8}")
    for row in rows:
        print(f"{row['policy']:<9}{row['load']:<6}{row['contender']:<15}{row['samples']:>8}{row['p50']:>7}{row['p99']:>8}{row['p99.9']:>8}{row['max']:>8}")
    options.out.mkdir(parents=True, exist_ok=True)
    document = {"host": {"kernel": platform.release(), "machine": platform.machine()}, "rate_hz": RATE_HZ,
                "rounds": options.rounds, "seconds": options.seconds, "rows": rows}
    (options.out / "realtime.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
