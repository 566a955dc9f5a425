#!/usr/bin/env bash
# Runs a command in the project's ROS 2 environment. For cargo, the staging prefix with the Rust folders of the
# message packages, as the package build made it, comes first.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"
if [ "${1:-}" = cargo ]; then
  staging="$OPENLINK_BUILD/rust_staging"
  [ -d "$staging/share" ] || { echo "the package is not built: run make build first" >&2; exit 1; }
  export AMENT_PREFIX_PATH="$staging:$AMENT_PREFIX_PATH"
  export LD_LIBRARY_PATH="$OPENLINK_BUILD:${LD_LIBRARY_PATH:-}"
  export CARGO_TARGET_DIR="${OPENLINK_ROS_TARGET:-$OPENLINK_BUILD/cargo}"
fi
exec "$@"
