"""Starts and ends the programs of an experiment, with a log file for each."""
from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path


class StageError(RuntimeError):
    """A step that failed, in words for the person who runs it."""


class Stage:
    """Starts programs with their logs in the output folder, and ends them all, last started first."""

    def __init__(self, out: Path):
        self.out = out
        self.running: list[tuple[str, subprocess.Popen]] = []

    def log(self, name: str) -> Path:
        """Where a program's output goes."""
        return self.out / "logs" / f"{name}.log"

    def start(self, name: str, *command: object, **env: str) -> subprocess.Popen:
        """Starts a program in the background."""
        with open(self.log(name), "w", encoding="utf-8") as log:
            process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=log, stderr=log,
                                       env={**os.environ, **env}, start_new_session=True)
        self.running.append((name, process))
        return process

    def run(self, name: str, *command: object, limit_s: float = 120, **env: str) -> None:
        """Runs a program to its end."""
        with open(self.log(name), "w", encoding="utf-8") as log:
            try:
                code = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                      env={**os.environ, **env}, timeout=limit_s, check=False).returncode
            except subprocess.TimeoutExpired as error:
                raise StageError(f"{name} did not end within {limit_s:.0f} s; {self.tail(name)}") from error
        if code != 0:
            raise StageError(f"{name} failed with exit code {code}; {self.tail(name)}")

    def tail(self, name: str) -> str:
        """The last lines of a log, for an error message."""
        lines = self.log(name).read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        return f"see {self.log(name)}:\n  " + "\n  ".join(lines)

    def wait_for(self, name: str, text: str, limit_s: float) -> None:
        """Waits until a program's log has a text."""
        end = time.monotonic() + limit_s
        while text not in self.log(name).read_text(encoding="utf-8", errors="replace"):
            self.check_alive()
            if time.monotonic() > end:
                raise StageError(f"{name} did not say {text!r} within {limit_s:.0f} s; {self.tail(name)}")
            time.sleep(0.05)

    def check_alive(self) -> None:
        """Fails if a background program has ended by itself."""
        for name, process in self.running:
            if process.poll() is not None and process.returncode != 0:
                raise StageError(f"{name} ended with exit code {process.returncode}; {self.tail(name)}")

    def stop(self, name: str) -> None:
        """Ends one program with SIGINT and waits for it."""
        for index, (other, process) in enumerate(self.running):
            if other == name:
                del self.running[index]
                self._end(name, process)
                return

    def _end(self, name: str, process: subprocess.Popen) -> None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            print(f"  {name} did not end on SIGINT; killed", flush=True)
            process.kill()
            process.wait()

    def close(self) -> None:
        """Ends everything."""
        while self.running:
            self._end(*self.running.pop())


def free_udp_port() -> int:
    """A UDP port nobody uses now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
