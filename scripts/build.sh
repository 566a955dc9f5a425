#!/usr/bin/env bash
# Builds the ROS package: environment, interfaces, executables, into build/<distro> and install/<distro>.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
die() { echo "[build] $*" >&2; exit 1; }
command -v cargo >/dev/null || die "cargo was not found: install Rust 1.89 or later (https://rustup.rs)"
command -v python3 >/dev/null || die "python3 was not found: install Python 3.10 or later"
command -v cc >/dev/null || die "a C compiler was not found: apt-get install build-essential"
[ -n "${ROS_DISTRO:-}" ] || python3 scripts/ros_env.py "${ROS:-kilted}"
. scripts/env.sh
command -v cmake >/dev/null || die "cmake was not found: apt-get install cmake"
mkdir -p "$OPENLINK_BUILD"
log="$OPENLINK_BUILD/configure.log"
echo "[build] configuring for ROS 2 $ROS_DISTRO"
cmake -S . -B "$OPENLINK_BUILD" -DCMAKE_INSTALL_PREFIX="$OPENLINK_INSTALL" -DCMAKE_BUILD_TYPE=Release \
  -DPython3_EXECUTABLE="$(command -v "$OPENLINK_ROS_PYTHON")" -DPython3_FIND_VIRTUALENV=ONLY >"$log" 2>&1 ||
  { tail -n 15 "$log" >&2; die "configuring failed; the whole log is in $log"; }
echo "[build] building (the first time takes minutes)"
cmake --build "$OPENLINK_BUILD" -j "$(nproc)" >"$OPENLINK_BUILD/build.log" 2>&1 ||
  { tail -n 40 "$OPENLINK_BUILD/build.log" >&2; die "building failed; the whole log is in $OPENLINK_BUILD/build.log"; }
cmake --install "$OPENLINK_BUILD" >"$OPENLINK_BUILD/install.log" 2>&1 ||
  { tail -n 15 "$OPENLINK_BUILD/install.log" >&2; die "installing failed"; }
echo "[build] installed in $OPENLINK_INSTALL"
