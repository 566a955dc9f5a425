#!/usr/bin/env bash
# Builds the ROS package: environment, interfaces, executables, into build/<distro> and install/<distro>.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/tools.sh build
if [ -z "${ROS_DISTRO:-}" ] || [ -n "${OPENLINK_WHEELS:-}" ]; then
  python3 scripts/ros_env.py "${ROS_DISTRO:-${ROS:-kilted}}"
fi
. scripts/env.sh
command -v cmake >/dev/null || die "cmake was not found: apt-get install cmake"
mkdir -p "$OPENLINK_BUILD"

# The Python of a prefix made anew may be another one than the cache of an older configuration knows.
echo "[build] configuring for ROS 2 $ROS_DISTRO"
cmake -S . -B "$OPENLINK_BUILD" -DCMAKE_INSTALL_PREFIX="$OPENLINK_INSTALL" -DCMAKE_BUILD_TYPE=Release \
  -DPython3_EXECUTABLE="$OPENLINK_ROS_PYTHON" >"$OPENLINK_BUILD/configure.log" 2>&1 ||
  { tail -n 15 "$OPENLINK_BUILD/configure.log" >&2; die "configuring failed: see $OPENLINK_BUILD/configure.log"; }
echo "[build] building (minutes the first time)"
# A crate that cannot be had is one line; what the compiler says is worth more of them.
build_failed() {
  local crates
  if crates=$(grep -m 1 -E '^error: (failed to (get|download|fetch|load)|no matching package|unable to update)' \
    "$OPENLINK_BUILD/build.log"); then
    die "building failed: ${crates#error: }; is there a network? Details: $OPENLINK_BUILD/build.log"
  fi
  tail -n 40 "$OPENLINK_BUILD/build.log" >&2
  die "building failed: see $OPENLINK_BUILD/build.log"
}
cmake --build "$OPENLINK_BUILD" -j "$(nproc)" >"$OPENLINK_BUILD/build.log" 2>&1 || build_failed
cmake --install "$OPENLINK_BUILD" >"$OPENLINK_BUILD/install.log" 2>&1 ||
  { tail -n 15 "$OPENLINK_BUILD/install.log" >&2; die "installing failed: see $OPENLINK_BUILD/install.log"; }
echo "[build] installed in $OPENLINK_INSTALL"
