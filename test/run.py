#!/usr/bin/env python3
"""Runs every check and test of the project and ends with one line: `N passed, N failed`.

Each suite is a command; its own counts are read from what it prints (cargo test, pytest), and a suite that
prints none counts as one check. `test/run.py SUITE...` runs only those suites.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed", re.M)
PYTEST_RESULT = re.compile(r"^(?:=+ )?(\d+ (?:passed|failed|errors?|skipped|deselected|warnings?)\b.*) in [\d.]+s", re.M)
PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


@dataclass
class Suite:
    """A named command, the environment it adds and the seconds it may take."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    limit_s: int = 1500


def counts(output: str, code: int) -> tuple[int, int]:
    """Tests passed and failed, from the runners' own closing lines."""
    cargo = CARGO_RESULT.findall(output)
    passed, failed = sum(int(p) for p, _ in cargo), sum(int(f) for _, f in cargo)
    seen = bool(cargo)
    for line in PYTEST_RESULT.findall(output):
        seen = True
        for number, what in PYTEST_COUNT.findall(line):
            if what == "passed":
                passed += int(number)
            elif what != "skipped":
                failed += int(number)
    if not seen:
        return (1, 0) if code == 0 else (0, 1)
    return passed, max(failed, 1) if code else failed


def run(suite: Suite) -> tuple[int, int]:
    """Runs one suite, showing its output as it comes."""
    print(f"\n=== {suite.name}: {' '.join(suite.command)}", flush=True)
    started = time.monotonic()
    process = subprocess.Popen(
        suite.command, cwd=ROOT, env={**os.environ, **suite.env}, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()
            if time.monotonic() - started > suite.limit_s:
                process.kill()
                lines.append("\n")
                print(f"{suite.name}: stopped after {suite.limit_s} s", flush=True)
                process.wait()
                return (0, 1)
        code = process.wait()
    except KeyboardInterrupt:
        process.kill()
        raise
    passed, failed = counts("".join(lines), code)
    print(f"=== {suite.name}: {passed} passed, {failed} failed, {time.monotonic() - started:.0f} s", flush=True)
    return passed, failed


def suites() -> list[Suite]:
    """Every suite, cheapest first."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    install = Path(os.environ.get("OPENLINK_INSTALL", ROOT / "install"))
    python = os.environ.get("OPENLINK_ROS_PYTHON", sys.executable)
    tools = os.environ.get("OPENLINK_TEST_PYTHON", sys.executable)
    with_ros = ["bash", str(ROOT / "scripts/with_ros.sh")]
    # One target folder for all debug builds, so that dependencies are built once.
    shared = {"OPENLINK_ROS_TARGET": str(target)}
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"]
    binaries = {
        "OPENLINK": str(install / "bin/openlink"),
        "OPENLINK_BIN": str(install / "bin/openlink"),
        "OPENLINK_LIBRARY": str(target / "debug/libopenlink_c.so"),
        "OPENLINK_CRTP_VECTORS": str(target / "debug/examples/crtp_vectors"),
        "OPENLINK_CFCLIENT_PYTHON": str(ROOT / ".venv/cfclient/bin/python"),
    }
    library = ["--workspace", "--exclude", "crazyflie_openlink"]
    return [
        Suite("format", ["cargo", "fmt", "--all", "--check"]),
        Suite("lint", ["cargo", "clippy", "--locked", *library, "--all-targets", "--", "-D", "warnings"]),
        Suite("docs", ["cargo", "doc", "--locked", *library, "--no-deps", "-q"],
              {"RUSTDOCFLAGS": "-D warnings"}),
        Suite("rust", ["cargo", "test", "--locked", *library]),
        # The Crazyradio driver is off by default; nothing else compiles it. A missing dongle is told in words.
        Suite("radio", ["cargo", "test", "--locked", "-p", "link", "--features", "radio", "--lib", "radio"]),
        Suite("package", ["make", "build"]),
        Suite("ros-lint", [*with_ros, "cargo", "clippy", "--locked", "-p", "crazyflie_openlink", "--all-targets",
                           "--", "-D", "warnings"], shared),
        Suite("ros-rust", [*with_ros, "cargo", "test", "--locked", "-p", "crazyflie_openlink"], shared),
        Suite("launch", [*with_ros, python, *pytest, "test/launch"], binaries),
        # The shared library that the prrt:// driver of cflib loads.
        Suite("library", ["cargo", "build", "--locked", "-p", "openlink-c"]),
        Suite("cflib", [tools, *pytest, "test/cflib"], binaries),
        # The Rust client of Bitcraze, in a workspace of its own.
        Suite("rust-client", ["cargo", "test", "--locked", "--manifest-path", "test/crazyflie_lib/Cargo.toml"],
              {**binaries, "CARGO_TARGET_DIR": str(target)}),
        Suite("interop", [*with_ros, python, *pytest, "test/interop"], binaries),
        Suite("nodes", [*with_ros, python, *pytest, "test/nodes"], binaries),
        # Peers of other middleware vendors, in a workspace of its own.
        Suite("vendors-build", ["cargo", "build", "--locked", "--manifest-path", "benches/vendors/Cargo.toml"],
              {"CARGO_TARGET_DIR": str(target)}, limit_s=480),
        Suite("vendors", [*with_ros, python, *pytest, "test/vendors"],
              {**binaries, "OPENLINK_VENDOR_PEER": str(target / "debug/vendor_peer")}),
        Suite("demo", [*with_ros, "python3", "scripts/demo.py", "--out", "out/test-demo", "--count", "100"], binaries),
        Suite("report", [tools, *pytest, "test/report"], binaries),
    ]


def main() -> int:
    """Runs the suites named on the command line, or all of them."""
    wanted = sys.argv[1:]
    chosen = [suite for suite in suites() if not wanted or suite.name in wanted]
    unknown = set(wanted) - {suite.name for suite in suites()}
    if unknown:
        names = ", ".join(suite.name for suite in suites())
        print(f"unknown suite {', '.join(sorted(unknown))}; there are: {names}")
        return 2
    results = [(suite.name, *run(suite)) for suite in chosen]
    print("\nsuite        passed  failed")
    for name, passed, failed in results:
        print(f"{name:<12} {passed:>6}  {failed:>6}")
    passed, failed = sum(r[1] for r in results), sum(r[2] for r in results)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
