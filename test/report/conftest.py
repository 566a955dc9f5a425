"""The command under test, results to feed it, and a headless browser to look at what comes out."""
from __future__ import annotations

import json
import math
import os
import random
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
]


@pytest.fixture(scope="session")
def openlink() -> Path:
    """The command, built when it is missing."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    path = Path(os.environ.get("OPENLINK", target / "release" / "openlink"))
    if not path.exists():
        subprocess.run(["cargo", "build", "--release", "-p", "openlink"], cwd=ROOT, check=True)
    return path


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser. Without one these tests fail: what nobody looked at is not tested."""
    assert Path(CHROMIUM).exists(), f"no browser at {CHROMIUM}: install Debian's chromium or set CHROMIUM"
    return CHROMIUM


class Browser:
    """Opens one page in a fresh profile."""

    def __init__(self, chromium: str, folder: Path):
        self.chromium, self.folder, self.runs = chromium, folder, 0

    def run(self, page: Path, *flags: str) -> subprocess.CompletedProcess:
        self.runs += 1
        profile = self.folder / f"profile-{self.runs}"
        return subprocess.run(
            [self.chromium, *FLAGS, f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0", *flags,
             page.as_uri()],
            capture_output=True, text=True, timeout=120, check=True)

    def dom(self, page: Path, width: int = 1280) -> str:
        """The document after its scripts ran; any message on the console fails."""
        done = self.run(page, "--dump-dom", "--virtual-time-budget=2000", f"--window-size={width},900")
        console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
        assert not console, "\n".join(console)
        return done.stdout

    def picture(self, page: Path, to: Path, width: int, height: int, *flags: str) -> Path:
        self.run(page, f"--screenshot={to}", f"--window-size={width},{height}", "--virtual-time-budget=2000", *flags)
        return to


@pytest.fixture
def browser(chromium: str, tmp_path: Path) -> Browser:
    return Browser(chromium, tmp_path)


def summary(samples: list[float]) -> dict:
    """Figures of samples in microseconds, null where there are too few, as the schema has it."""
    ordered = sorted(samples)
    count = len(ordered)

    def at(q: float, least: int) -> float | None:
        return ordered[min(count - 1, math.ceil(q * count) - 1)] if count >= least else None

    return {
        "min": at(0.0001, 1), "p50": at(0.5, 1), "p90": at(0.9, 10), "p99": at(0.99, 100), "p999": at(0.999, 1000),
        "max": at(1.0, 1), "mean": sum(ordered) / count if count else None,
    }


def row(link: str, path: str, size: int, median_us: float, answers: int, rate: float | None, lost: int = 0,
        domains: tuple[int, int] | None = None, seed: int = 1) -> dict:
    """A row of the contract with log-normal round trips."""
    draw = random.Random(f"{link} {path} {size} {seed}")
    rtt = [median_us * draw.lognormvariate(0, 0.25) for _ in range(answers)]
    ordered = sorted(rtt)
    ecdf = [[value, (i + 1) / answers] for i, value in enumerate(ordered)]
    step = max(1, len(ecdf) // 150)
    thin = ecdf[::step] + ([ecdf[-1]] if ecdf and ecdf[::step][-1] != ecdf[-1] else [])
    processing = [draw.uniform(3, 9) for _ in rtt]
    return {
        "link": link, "path": path, "domains": domains, "rmw": ["rmw_fastrtps_cpp"] * 2 if domains else None,
        "qos": "reliable, volatile, keep last 10" if domains else None, "payload": "crtp" if link.startswith("crtp") else "binary",
        "bytes": size, "rate_hz": rate, "mode": "rate" if rate else "ping-pong", "sent": answers + lost,
        "received": answers, "lost": lost, "late": 0, "warmup": 50, "foreign": 0, "partial": False,
        "rtt_us": summary(rtt), "latency_us": summary([(a - b) / 2 for a, b in zip(rtt, processing)]),
        "processing_us": summary(processing), "rtt_ecdf": thin, "timeout_ms": 1000, "duration_s": 10.0,
        "settings": {"rmem_max": 212992, "uri": "prrt://127.0.0.1:5000/20"},
    }


HOST = {
    "name": "bench", "kernel": "6.12.0-rt #1 SMP PREEMPT_RT", "realtime": True, "cpu": "Cortex-A76", "cores": 4,
    "governor": "performance", "memory_mib": 8064, "steal_percent": 0.0, "load": 0.12,
    "sockets": {"rmem_default": 212992, "rmem_max": 4194304}, "versions": {"crazyflie_openlink": "0.1.0"},
}


def sweep() -> list[dict]:
    """Two links and two paths over three sizes, as a real run has them."""
    rows = []
    for size, same, cross in [(64, 91, 200), (33_000, 128, 249), (1_000_000, 1215, 3927)]:
        rows.append(row("dds", "same-domain", size, same, 2000, 100.0, domains=(5, 5)))
        rows.append(row("dds", "cross-domain", size, cross, 2000, 100.0, lost=3, domains=(5, 10)))
    rows.append(row("prrt", "loopback", 64, 62, 2000, 100.0))
    rows.append(row("crtp-uart", "drone", 30, 780, 500, None))
    rows.append(row("crtp-prrt", "drone", 30, 1240, 500, None, lost=1))
    return rows


@pytest.fixture
def results(tmp_path: Path):
    """Writes a results file and returns its path."""

    def write(rows: list[dict], name: str = "results.json", host: dict | None = None) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"schema": 1, "host": host or HOST, "rows": rows}))
        return path

    return write


@pytest.fixture
def report(openlink: Path, tmp_path: Path):
    """Runs `openlink report` and returns the page."""

    def make(*files: Path) -> Path:
        page = tmp_path / "report.html"
        subprocess.run([openlink, "report", *files, "-o", page], check=True, timeout=60)
        return page

    return make
