"""Runs our executables beside real rclpy nodes, each test in domains of its own."""
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

INSTALL = Path(os.environ["OPENLINK_INSTALL"])
NODES = INSTALL / "lib/crazyflie_openlink"
OPENLINK = INSTALL / "bin/openlink"
_domains = itertools.cycle(range(10, 100))
for _ in range(os.getpid() % 80):
    next(_domains)


class Program:
    """A running executable with its log."""

    def __init__(self, log: Path, *command: object, **env: str):
        self.log_path = log
        with open(log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=file,
                                            stderr=file, env={**os.environ, "NO_COLOR": "1", **env})

    @property
    def log(self) -> str:
        """Everything printed so far."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, text: str, limit_s: float = 20) -> None:
        """Waits until the log has a text."""
        end = time.monotonic() + limit_s
        while text not in self.log:
            assert time.monotonic() < end, f"{text!r} did not appear:\n{self.log}"
            assert self.process.poll() is None, f"ended before {text!r}:\n{self.log}"
            time.sleep(0.02)

    def wait(self, limit_s: float = 60) -> int:
        """Waits for the end and returns the exit code."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"did not end:\n{self.log}") from None

    def stop(self, number: int = signal.SIGINT, limit_s: float = 10) -> int:
        """Sends a signal and returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait(limit_s)


@pytest.fixture
def domain():
    """A domain no other test uses now."""
    return next(_domains)


@pytest.fixture
def other_domain():
    """Another one."""
    return next(_domains)


@pytest.fixture
def third_domain():
    """A third one."""
    return next(_domains)


@pytest.fixture
def node_program(tmp_path):
    """Starts our nodes with parameters; whatever still runs at the end is killed."""
    started = []

    def start(executable: str, *flags: object, **parameters: object) -> Program:
        arguments = [part for name, value in parameters.items() for part in ("-p", f"{name.replace('__', '.')}:={value}")]
        command = [NODES / executable, "--ros-args", *arguments, *flags]
        program = Program(tmp_path / f"{executable}-{len(started)}.log", *command)
        started.append(program)
        return program

    yield start
    for program in started:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()


@pytest.fixture
def openlink(tmp_path):
    """Starts `openlink` commands; whatever still runs at the end is killed."""
    started = []

    def start(*command: object) -> Program:
        program = Program(tmp_path / f"openlink-{len(started)}.log", OPENLINK, *command)
        started.append(program)
        return program

    yield start
    for program in started:
        if program.process.poll() is None:
            program.process.kill()
            program.process.wait()


class Peer:
    """A real rclpy node in a domain, spun by a thread."""

    def __init__(self, domain_id: int, name: str = "peer"):
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain_id)
        self.node = Node(name, context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.thread = threading.Thread(target=self._spin, daemon=True)
        self.thread.start()

    def _spin(self) -> None:
        while self.context.ok():
            try:
                self.executor.spin_once(timeout_sec=0.1)
            except Exception:  # the context went away while waiting
                return

    def close(self) -> None:
        """Ends the node."""
        rclpy.shutdown(context=self.context)
        self.thread.join(5)


@pytest.fixture
def peer():
    """Makes rclpy nodes; all end with the test."""
    made = []

    def make(domain_id: int, name: str = "peer") -> Peer:
        made.append(Peer(domain_id, name))
        return made[-1]

    yield make
    for one in made:
        one.close()


def wait_until(done, limit_s: float = 20, what: str = "the condition"):
    """Waits until `done()` is true and returns it."""
    end = time.monotonic() + limit_s
    while not (result := done()):
        assert time.monotonic() < end, f"{what} did not come true within {limit_s} s"
        time.sleep(0.02)
    return result


def build_interfaces(source: Path, folder: Path, *options: str) -> dict[str, str]:
    """Builds an interface package into a prefix of its own; the variables for processes that shall know it."""
    run_path = ";".join(["$ORIGIN", *(f"{prefix}/lib" for prefix in os.environ["AMENT_PREFIX_PATH"].split(":"))])
    steps = [
        ["cmake", "-S", source, "-B", folder / "build", f"-DCMAKE_INSTALL_PREFIX={folder / 'install'}",
         f"-DCMAKE_INSTALL_RPATH={run_path}", f"-DPython3_EXECUTABLE={sys.executable}", *options],
        ["cmake", "--build", folder / "build", "-j2"],
        ["cmake", "--install", folder / "build"],
    ]
    for step in steps:
        done = subprocess.run([str(part) for part in step], capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    python, = (folder / "install").glob("**/*-packages")

    def first(name, path):
        return f"{path}:{os.environ.get(name, '')}"
    return {"LD_LIBRARY_PATH": first("LD_LIBRARY_PATH", folder / "install/lib"), "PYTHONPATH": first("PYTHONPATH", python),
            "AMENT_PREFIX_PATH": first("AMENT_PREFIX_PATH", folder / "install")}
